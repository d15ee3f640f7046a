"""The attention integral as a direct log-sum-exp: the reference every faster method is measured against."""

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST = -708.0
"""Exponents are not taken below this: such a term is 1e-307 of the largest one, an empty source counts as one."""

C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(k) for k in range(3, 13))
LOG2_E, LN2_HIGH, LN2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
SHIFT = 1.5 * 2.0**52  # adding it rounds to a whole number, kept in the low bits

TARGETS, SOURCES = 32, 1024
"""Targets per parallel task, and sources per block (a block's exponents stay in the first-level cache)."""


def log_sum_exp(tilts: Array, sources: Array, log_masses: Array) -> tuple[Array, Array]:
    """log F(z) and ∇ log F(z) of F(z) = Σ_j m_j e^{⟨z, y_j⟩}, for any dimension d.

    tilts z (n, d), sources y (m, d), log_masses log m_j (m,), where −inf is an empty source.
    Returns the mean ∇ log F (n, d) and log F (n,).  Each block of sources is summed relative to the largest exponent
    met so far, so that no exponent overflows and none that matters underflows, whatever β and however small the
    masses; memory is O(n + m).  If every source is empty, log F is −inf and the mean is 0.
    """
    mean, log_normaliser = np.empty(tilts.shape), np.empty(len(tilts))
    _log_sum_exp(
        np.ascontiguousarray(tilts, dtype=np.float64),
        np.ascontiguousarray(sources.T, dtype=np.float64),
        np.ascontiguousarray(log_masses, dtype=np.float64),
        mean,
        log_normaliser,
    )
    return mean, log_normaliser


# Whole loops in functions of their own run in vector registers.  Reassociation is what sums need for that; it would
# undo the rounding by SHIFT in the exponentials.  Infinities keep their meaning.
@njit(cache=True, fastmath={"reassoc", "contract", "nnan", "nsz"})
def _largest(values):  # type: ignore[no-untyped-def]
    result = -np.inf
    for j in range(values.size):
        result = max(result, values[j])
    return result


@njit(cache=True, fastmath={"contract"})
def _add_products(factor, column, values):  # type: ignore[no-untyped-def]
    """values += factor·column."""
    for j in range(values.size):
        values[j] += factor * column[j]


@njit(cache=True, fastmath={"contract"})
def _exponentials(values, powers, largest):  # type: ignore[no-untyped-def]
    """e^{values − largest} = values·powers in place: 2^n e^r with |r| ≤ ln(2)/2 by Taylor's series, right to 2e-16."""
    for j in range(values.size):
        x = max(values[j] - largest, LEAST)
        shifted = x * LOG2_E + SHIFT
        n = shifted - SHIFT
        r = (x - n * LN2_HIGH) - n * LN2_LOW
        series = C8 + r * (C9 + r * (C10 + r * (C11 + r * C12)))
        series = C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * series))))
        values[j] = 1.0 + r * (1.0 + r * (0.5 + r * series))
        powers[j] = shifted
    bits = powers.view(np.int64)
    for j in range(bits.size):
        bits[j] = (bits[j] + 1023) << 52


@njit(cache=True, fastmath={"reassoc", "contract"})
def _weigh(values, powers):  # type: ignore[no-untyped-def]
    """values *= powers; their sum."""
    total = 0.0
    for j in range(values.size):
        values[j] *= powers[j]
        total += values[j]
    return total


@njit(cache=True, fastmath={"reassoc", "contract"})
def _product(values, column):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(values.size):
        total += values[j] * column[j]
    return total


@njit(cache=True, parallel=True)
def _log_sum_exp(tilts, columns, log_masses, mean, log_normaliser):  # type: ignore[no-untyped-def]
    targets, dimension = tilts.shape
    count = log_masses.size
    for task in prange((targets + TARGETS - 1) // TARGETS):
        buffer, powers = np.empty(SOURCES), np.empty(SOURCES)
        moments = np.empty(dimension)
        for target in range(task * TARGETS, min(targets, (task + 1) * TARGETS)):
            largest, total = -np.inf, 0.0
            moments[:] = 0.0
            for start in range(0, count, SOURCES):
                stop = min(count, start + SOURCES)
                weights = buffer[: stop - start]
                weights[:] = log_masses[start:stop]
                for k in range(dimension):
                    _add_products(tilts[target, k], columns[k, start:stop], weights)
                block_largest = _largest(weights)
                if block_largest > largest:
                    shrink = np.exp(largest - block_largest)
                    total *= shrink
                    moments *= shrink
                    largest = block_largest
                if largest == -np.inf:
                    continue
                _exponentials(weights, powers[: stop - start], largest)
                total += _weigh(weights, powers)
                for k in range(dimension):
                    moments[k] += _product(weights, columns[k, start:stop])
            log_normaliser[target] = -np.inf if total == 0.0 else largest + np.log(total)
            for k in range(dimension):
                mean[target, k] = 0.0 if total == 0.0 else moments[k] / total
