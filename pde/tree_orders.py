"""Polynomials for e^x on [-c, c]: Chebyshev series cut off, with bounds of their errors.

e^{ct} = I_0(c) + 2 Σ I_n(c) T_n(t) (Abramowitz and Stegun 9.6.34). The polynomial of degree p is the integral of this
series cut off after degree p − 1: its derivative is off by at most 2 Σ_{n≥p} I_n(c), and it itself by what its own
coefficients miss. (The series itself, cut off after degree p, has a derivative that is off by (p + 1)/2 times more.)
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from scipy.special import iv

Floats = NDArray[np.float64]

SMALLEST_RANGE = 0.02
RANGES_PER_OCTAVE = 4
RANGES = 38
HIGHEST_DEGREE = 24


@dataclass(frozen=True, eq=False)
class ExponentialOrders:
    """Tables over half ranges c_q = SMALLEST_RANGE 2**(q / RANGES_PER_OCTAVE) and degrees p.

    coefficients (q, p, n): the polynomial of degree p for |x| ≤ c_q in powers of x; value_errors (q, p): bound of its
    error; slope_errors (q, p): bound of its derivative's error; binomials (n, i).
    """

    ranges: Floats
    coefficients: Floats
    value_errors: Floats
    slope_errors: Floats
    binomials: Floats


@cache
def exponential_orders() -> ExponentialOrders:
    """The tables, computed once."""
    degrees = HIGHEST_DEGREE + 1
    ranges = SMALLEST_RANGE * 2.0 ** (np.arange(RANGES) / RANGES_PER_OCTAVE)
    series = np.arange(degrees + 30)
    terms = iv(series, ranges[:, None]) * np.where(series == 0, 1.0, 2.0)
    powers = np.zeros((degrees, degrees))  # of T_n, row by row
    for n in range(degrees):
        powers[n, : n + 1] = chebyshev.cheb2poly(np.eye(degrees)[n, : n + 1])
    coefficients = np.zeros((RANGES, degrees, degrees))
    value_errors, slope_errors = np.zeros((RANGES, degrees)), np.zeros((RANGES, degrees))
    for q, c in enumerate(ranges):
        rounding = 1e-15 * math.exp(2.0 * c)
        for p in range(degrees):
            kept = np.zeros(len(series))
            kept[: p + 1] = c * chebyshev.chebint(terms[q, :p]) if p else 0.0
            kept[0] = terms[q, 0]
            coefficients[q, p] = (kept[:degrees] @ powers) / c ** np.arange(degrees)
            value_errors[q, p] = np.abs(terms[q] - kept).sum() + rounding
            slope_errors[q, p] = terms[q, p:].sum() + rounding / c
    binomials = np.array([[float(math.comb(n, i)) for i in range(degrees)] for n in range(degrees)])
    return ExponentialOrders(ranges, coefficients, value_errors, slope_errors, binomials)
