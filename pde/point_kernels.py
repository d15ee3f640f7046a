"""Compiled loops that add a few points to an attention integral known at many targets."""

from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.pde.vector_kernels import exponential, wide

Array = Any
TILE = 128
"""Targets that fill the vector registers together; they lie side by side, so that most tiles see all points or none."""

NEGLIGIBLE = -40.0
"""Where all points are below e^NEGLIGIBLE of F each, they are not added: less than rounding."""


@njit(cache=True, parallel=True, fastmath={"contract"})
def add_points(tilts: Array, points: Array, log_masses: Array, mean: Array, log_normaliser: Array) -> None:
    """log F and ∇ log F of F(z) + Σ_j m_j e^{⟨z, y_j⟩} in place of those of F: mean (n, d) and log_normaliser (n,).

    tilts z (n, d), points y (k, d) and log m (k,), all finite; d = 2 or 3. Relative to the largest exponent of every
    target, as ``direct.log_sum_exp``; the exponentials are right to 1e-15 (1 + |exponent|).
    """
    n, d = tilts.shape
    for tile in prange((n + TILE - 1) // TILE):
        wide()
        first = tile * TILE
        size = min(n, first + TILE) - first
        z, moments = np.zeros((3, TILE)), np.zeros((3, TILE))
        known, top, total = np.empty(TILE), np.full(TILE, -np.inf), np.empty(TILE)
        for t in range(size):
            known[t] = log_normaliser[first + t]
            for k in range(d):
                z[k, t] = tilts[first + t, k]
        for j in range(len(points)):
            m, y0, y1 = log_masses[j], points[j, 0], points[j, 1]
            y2 = points[j, 2] if d == 3 else 0.0
            for t in range(size):
                top[t] = max(top[t], m + (z[0, t] * y0 + z[1, t] * y1 + z[2, t] * y2))
        nearest = -np.inf
        for t in range(size):
            nearest = max(nearest, top[t] - known[t])
        if nearest < NEGLIGIBLE:
            continue
        for t in range(size):
            top[t] = max(top[t], known[t])
            total[t] = exponential(known[t] - top[t])
            for k in range(d):
                moments[k, t] = total[t] * mean[first + t, k]
        for j in range(len(points)):
            m, y0, y1 = log_masses[j], points[j, 0], points[j, 1]
            y2 = points[j, 2] if d == 3 else 0.0
            for t in range(size):
                e = exponential((m - top[t]) + (z[0, t] * y0 + z[1, t] * y1 + z[2, t] * y2))
                total[t] += e
                moments[0, t] += e * y0
                moments[1, t] += e * y1
                moments[2, t] += e * y2
        for t in range(size):
            log_normaliser[first + t] = top[t] + np.log(total[t])
            for k in range(d):
                mean[first + t, k] = moments[k, t] / total[t]
