"""The transport loops for many labels moved by one flow: labels innermost, so that they fill vector registers.

Arrays are (cells, labels), the transpose of the rest of the code; the arithmetic is that of ``transport_kernels``, the
twin in the tests. With 64 labels it takes a third of the processor time.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.pde.transport_kernels import (
    SLANT,
    flattening,
    followed,
    of_the_heavier,
    release,
    resolved,
    sharpness,
    through,
)

Array = Any
BLOCK = 64


@njit(cache=True, parallel=True)
def slopes_and_bendings(
    density: Array,
    neighbours: Array,
    weights: Array,
    skews: Array,
    slopes: Array,
    bendings: Array,
) -> None:
    """Gradients (cells, d, labels) as far as ``followed``, and bendings (cells, 2, labels): ``least_squares``."""
    cells, labels = density.shape
    half = skews.shape[1]
    for block in prange((cells + BLOCK - 1) // BLOCK):
        around = np.empty(labels)
        rise = np.empty(labels)
        for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
            slopes[i] = 0.0
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                for axis in range(weights.shape[2]):
                    weight = weights[i, k, axis]
                    for label in range(labels):
                        slopes[i, axis, label] += weight * (density[j, label] - density[i, label])
            bendings[i] = 0.0
            for side in range(half):
                around[:] = 0.0
                for k in range(side, 2 * half, half):
                    j = neighbours[i, k]
                    for label in range(labels):
                        around[label] += density[j, label]
                rise[:] = 0.0
                for axis in range(weights.shape[2]):
                    for label in range(labels):
                        rise[label] += skews[i, side, axis] * slopes[i, axis, label]
                for label in range(labels):
                    twice = 2.0 * density[i, label]
                    total = twice + around[label]
                    most = SLANT * density[i, label]
                    skew = min(most, max(-most, rise[label]))
                    ratio = (twice - around[label] + skew) / total if total > 0.0 else 0.0
                    bendings[i, 0, label] = max(bendings[i, 0, label], ratio)
                    bendings[i, 1, label] = max(bendings[i, 1, label], abs(ratio))
            for axis in range(weights.shape[2]):
                for label in range(labels):
                    slopes[i, axis, label] *= followed(bendings[i, 1, label])


@njit(cache=True, parallel=True)
def shared_fluxes(
    density: Array,
    slopes: Array,
    bendings: Array,
    caps: Array,
    bend: float,
    speeds: Array,
    centers: Array,
    face_cells: Array,
    cell_faces: Array,
    cell_signs: Array,
    offsets: Array,
    points: Array,
    fluxes: Array,
) -> None:
    """Upwind fluxes (faces, labels) under speeds (1, points) that all labels share: ``upwind_fluxes``."""
    labels = density.shape[1]
    faces = face_cells.shape[0]
    for block in prange((faces + BLOCK - 1) // BLOCK):
        rise = np.empty(labels)
        bent = np.empty(labels)
        part = np.empty(labels)
        for f in range(block * BLOCK, min(faces, (block + 1) * BLOCK)):
            first, second = face_cells[f, 0], face_cells[f, 1]
            fluxes[f] = 0.0
            bent[:] = 1.0
            sharpest = 0.0
            for label in range(labels):
                rise[label] = of_the_heavier(
                    sharpness(bendings[first, 0, label]),
                    sharpness(bendings[second, 0, label]),
                    density[first, label],
                    density[second, label],
                )
                sharpest = max(sharpest, rise[label])
            if sharpest > 0.0:
                out = release(speeds, 0, first, f, cell_faces, cell_signs, offsets)
                back = release(speeds, 0, second, f, cell_faces, cell_signs, offsets)
                flat = flattening(out + back, through(speeds, 0, f, offsets))
                for label in range(labels):
                    fluxes[f, label] = rise[label] * (out * density[first, label] - back * density[second, label])
                    bent[label] -= flat * rise[label]
            for p in range(offsets[f], offsets[f + 1]):
                speed = speeds[0, p]
                upwind = 0 if speed > 0.0 else 1
                i, j = face_cells[f, upwind], face_cells[f, 1 - upwind]
                for label in range(labels):
                    part[label] = bend * resolved(bendings[i, 1, label])
                    rise[label] = part[label] * (density[j, label] - density[i, label])
                for axis in range(centers.shape[1]):
                    place = points[p, axis] - centers[i, axis]
                    across = centers[j, axis] - centers[i, axis]
                    for label in range(labels):
                        rise[label] += (place - part[label] * across) * slopes[i, axis, label]
                for label in range(labels):
                    own = density[i, label]
                    value = min(own * caps[i], max(0.0, own + rise[label]))
                    fluxes[f, label] += speed * (own + bent[label] * (value - own))


@njit(cache=True, parallel=True)
def shared_divergence(fluxes: Array, cell_faces: Array, cell_signs: Array, areas: Array, rates: Array) -> None:
    """dρ_i/dt (labels, cells) = −(1/A_i) Σ_f ±Φ_f of fluxes (faces, labels)."""
    labels, cells = rates.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
            for label in range(labels):
                total = 0.0
                for k in range(cell_faces.shape[1]):
                    total += cell_signs[i, k] * fluxes[cell_faces[i, k], label]
                rates[label, i] = -total / areas[i]
