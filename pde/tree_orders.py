"""Polynomials for e^x on [-c, c]: Chebyshev series cut off, with bounds of their errors.

e^{ct} = I_0(c) + 2 Σ I_n(c) T_n(t) (Abramowitz and Stegun 9.6.34), hence the polynomial of degree p is off by at most
2 Σ_{n>p} I_n(c), and its derivative by (2/c) Σ_{n>p} n² I_n(c).
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
RANGES = 32
HIGHEST_DEGREE = 15


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
    coefficients = np.zeros((RANGES, degrees, degrees))
    for q, c in enumerate(ranges):
        for p in range(degrees):
            converted = chebyshev.cheb2poly(terms[q, : p + 1])
            coefficients[q, p, : len(converted)] = converted / c ** np.arange(len(converted))
    rounding = 1e-15 * np.exp(2.0 * ranges)[:, None]
    value_errors = np.cumsum(terms[:, ::-1], axis=1)[:, ::-1][:, 1 : degrees + 1] + rounding
    slopes = terms * series**2 / ranges[:, None]
    slope_errors = np.cumsum(slopes[:, ::-1], axis=1)[:, ::-1][:, 1 : degrees + 1] + rounding / ranges[:, None]
    binomials = np.array([[float(math.comb(n, i)) for i in range(degrees)] for n in range(degrees)])
    return ExponentialOrders(ranges, coefficients, value_errors, slope_errors, binomials)
