"""The transport loops for many labels moved by one flow: labels innermost, so that they fill vector registers.

Arrays are (cells, labels), the transpose of the rest of the code; the arithmetic is that of ``transport_kernels``, the
twin in the tests. With 64 labels it takes a third of the processor time.
"""

from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.pde.transport_kernels import SAFE

Array = Any
BLOCK = 64


@njit(cache=True, parallel=True)
def limited_slopes(
    density: Array,
    bend: float,
    neighbours: Array,
    weights: Array,
    centers: Array,
    face_cells: Array,
    cell_faces: Array,
    offsets: Array,
    points: Array,
    slopes: Array,
    scales: Array,
) -> None:
    """Limited gradients (cells, d, labels) and their factors θ (cells, labels): ``limited_gradients``."""
    cells, labels = density.shape
    dimension = centers.shape[1]
    for block in prange((cells + BLOCK - 1) // BLOCK):
        steepest = np.empty(labels)
        curve = np.empty(labels)
        rise = np.empty(labels)
        for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
            slopes[i] = 0.0
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                for axis in range(dimension):
                    weight = weights[i, k, axis]
                    for label in range(labels):
                        slopes[i, axis, label] += weight * (density[j, label] - density[i, label])
            steepest[:] = 0.0
            for k in range(cell_faces.shape[1]):
                face = cell_faces[i, k]
                j = face_cells[face, 0] + face_cells[face, 1] - i
                for label in range(labels):
                    curve[label] = bend * (density[j, label] - density[i, label])
                for axis in range(dimension):
                    across = bend * (centers[j, axis] - centers[i, axis])
                    for label in range(labels):
                        curve[label] -= across * slopes[i, axis, label]
                for p in range(offsets[face], offsets[face + 1]):
                    rise[:] = curve
                    for axis in range(dimension):
                        place = points[p, axis] - centers[i, axis]
                        for label in range(labels):
                            rise[label] += place * slopes[i, axis, label]
                    for label in range(labels):
                        size = abs(rise[label])
                        steepest[label] = size if size > steepest[label] else steepest[label]
            for label in range(labels):
                bound = density[i, label] * SAFE
                scales[i, label] = 1.0 if steepest[label] <= bound else bound / steepest[label]
            for axis in range(dimension):
                for label in range(labels):
                    slopes[i, axis, label] *= scales[i, label]


@njit(cache=True, parallel=True)
def shared_fluxes(
    density: Array,
    slopes: Array,
    scales: Array,
    bend: float,
    speeds: Array,
    centers: Array,
    face_cells: Array,
    offsets: Array,
    points: Array,
    fluxes: Array,
) -> None:
    """Upwind fluxes (faces, labels) under speeds (points,) that all labels share: ``upwind_fluxes``."""
    labels = density.shape[1]
    faces = face_cells.shape[0]
    for block in prange((faces + BLOCK - 1) // BLOCK):
        for f in range(block * BLOCK, min(faces, (block + 1) * BLOCK)):
            fluxes[f] = 0.0
            for p in range(offsets[f], offsets[f + 1]):
                speed = speeds[p]
                upwind = 0 if speed > 0.0 else 1
                i, j = face_cells[f, upwind], face_cells[f, 1 - upwind]
                for label in range(labels):
                    bent = bend * scales[i, label] * (density[j, label] - density[i, label])
                    fluxes[f, label] += speed * (density[i, label] + bent)
                for axis in range(centers.shape[1]):
                    place = points[p, axis] - centers[i, axis] - bend * (centers[j, axis] - centers[i, axis])
                    for label in range(labels):
                        fluxes[f, label] += speed * place * slopes[i, axis, label]


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
