"""The attention integral as a direct log-sum-exp: the reference every faster method is measured against."""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

Array = NDArray[np.float64]

UNDERFLOW = -708.0
"""Below this exponent e^x is no normal number any more: 1e-307 of the largest term at most, and slow to compute."""

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


# Reassociation lets the sums use vector registers; infinities and NaN keep their meaning.
@njit(cache=True, parallel=True, fastmath={"reassoc", "contract"})
def _log_sum_exp(tilts, columns, log_masses, mean, log_normaliser):  # type: ignore[no-untyped-def]
    targets, dimension = tilts.shape
    count = log_masses.size
    for task in prange((targets + TARGETS - 1) // TARGETS):
        weights = np.empty(SOURCES)
        moments = np.empty(dimension)
        for target in range(task * TARGETS, min(targets, (task + 1) * TARGETS)):
            largest, total = -np.inf, 0.0
            moments[:] = 0.0
            for start in range(0, count, SOURCES):
                size = min(SOURCES, count - start)
                for j in range(size):
                    weights[j] = log_masses[start + j]
                for k in range(dimension):
                    tilt = tilts[target, k]
                    for j in range(size):
                        weights[j] += tilt * columns[k, start + j]
                block_largest = -np.inf
                for j in range(size):
                    block_largest = max(block_largest, weights[j])
                if block_largest > largest:
                    shrink = np.exp(largest - block_largest)
                    total *= shrink
                    moments *= shrink
                    largest = block_largest
                if largest == -np.inf:
                    continue
                block_total = 0.0
                for j in range(size):
                    exponent = weights[j] - largest
                    weights[j] = np.exp(exponent) if exponent > UNDERFLOW else 0.0
                    block_total += weights[j]
                total += block_total
                for k in range(dimension):
                    block_moment = 0.0
                    for j in range(size):
                        block_moment += weights[j] * columns[k, start + j]
                    moments[k] += block_moment
            if total > 0.0:
                log_normaliser[target] = largest + np.log(total)
                for k in range(dimension):
                    mean[target, k] = moments[k] / total
            else:
                log_normaliser[target] = -np.inf if largest == -np.inf else np.nan
                mean[target] = 0.0 if largest == -np.inf else np.nan
