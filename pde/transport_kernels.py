"""Compiled loops of the finite-volume transport; each has a numpy twin in the tests.

Densities are (labels, cells); speeds are (labels, points), or (1, points) where one flow moves all labels. Loops run
over blocks of cells or faces, labels inside, so that a block's geometry is read once for all labels. Vectors have three
columns; on the circle the third is zero.
"""

from typing import Any

from numba import njit, prange

Array = Any
BLOCK = 512
# A hair below 1, so that rounding cannot push a limited value below zero or above twice the average.
SAFE = 1.0 - 1e-11


@njit(cache=True, parallel=True)
def limited_gradients(
    density: Array,
    bend: float,
    neighbours: Array,
    weights: Array,
    centers: Array,
    face_cells: Array,
    cell_faces: Array,
    offsets: Array,
    points: Array,
    gradients: Array,
    scales: Array,
) -> None:
    """Least-squares gradients g and the θ = min(1, ρ/max_q|rise_q|) they are scaled by, over the face points x_q.

    rise_q = ⟨g, x_q − c_i⟩ + bend·(ρ_j − ρ_i − ⟨g, c_j − c_i⟩), j the cell across the face.
    """
    labels, cells = density.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                own = density[label, i]
                g0 = g1 = g2 = 0.0
                for k in range(neighbours.shape[1]):
                    difference = density[label, neighbours[i, k]] - own
                    g0 += weights[i, k, 0] * difference
                    g1 += weights[i, k, 1] * difference
                    g2 += weights[i, k, 2] * difference
                level = g0 * centers[i, 0] + g1 * centers[i, 1] + g2 * centers[i, 2]
                steepest = 0.0
                for k in range(cell_faces.shape[1]):
                    face = cell_faces[i, k]
                    j = face_cells[face, 0] + face_cells[face, 1] - i
                    across = g0 * centers[j, 0] + g1 * centers[j, 1] + g2 * centers[j, 2] - level
                    start = bend * (density[label, j] - own - across) - level
                    for p in range(offsets[face], offsets[face + 1]):
                        rise = g0 * points[p, 0] + g1 * points[p, 1] + g2 * points[p, 2] + start
                        steepest = max(steepest, abs(rise))
                bound = own * SAFE
                scale = 1.0 if steepest <= bound else bound / steepest
                scales[label, i] = scale
                gradients[label, i, 0] = g0 * scale
                gradients[label, i, 1] = g1 * scale
                gradients[label, i, 2] = g2 * scale


@njit(cache=True, parallel=True)
def upwind_fluxes(
    density: Array,
    gradients: Array,
    scales: Array,
    bend: float,
    speeds: Array,
    centers: Array,
    face_cells: Array,
    offsets: Array,
    points: Array,
    fluxes: Array,
) -> None:
    """Φ_f = Σ_q u_q⁺ ρ_first(x_q) + u_q⁻ ρ_second(x_q), from the first cell of the face to the second."""
    labels = density.shape[0]
    faces = face_cells.shape[0]
    shared = speeds.shape[0] == 1
    for block in prange((faces + BLOCK - 1) // BLOCK):
        for label in range(labels):
            row = 0 if shared else label
            for f in range(block * BLOCK, min(faces, (block + 1) * BLOCK)):
                total = 0.0
                known = -1
                start = g0 = g1 = g2 = 0.0
                for p in range(offsets[f], offsets[f + 1]):
                    speed = speeds[row, p]
                    upwind = 0 if speed > 0.0 else 1
                    if upwind != known:  # seldom within a face: its value is linear in x
                        known = upwind
                        i, j = face_cells[f, upwind], face_cells[f, 1 - upwind]
                        g0, g1, g2 = gradients[label, i, 0], gradients[label, i, 1], gradients[label, i, 2]
                        start = density[label, i] + bend * scales[label, i] * (density[label, j] - density[label, i])
                        start -= g0 * (centers[i, 0] + bend * (centers[j, 0] - centers[i, 0]))
                        start -= g1 * (centers[i, 1] + bend * (centers[j, 1] - centers[i, 1]))
                        start -= g2 * (centers[i, 2] + bend * (centers[j, 2] - centers[i, 2]))
                    total += speed * (start + g0 * points[p, 0] + g1 * points[p, 1] + g2 * points[p, 2])
                fluxes[label, f] = total


@njit(cache=True, parallel=True)
def divergence(fluxes: Array, cell_faces: Array, cell_signs: Array, areas: Array, rates: Array) -> None:
    """dρ_i/dt = −(1/A_i) Σ_f ±Φ_f."""
    labels, cells = rates.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                total = 0.0
                for k in range(cell_faces.shape[1]):
                    total += cell_signs[i, k] * fluxes[label, cell_faces[i, k]]
                rates[label, i] = -total / areas[i]


@njit(cache=True, parallel=True)
def outflows(speeds: Array, cell_faces: Array, cell_signs: Array, offsets: Array, result: Array) -> None:
    """Σ_q max(±u_q, 0) over every face point of every cell."""
    labels, cells = result.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                total = 0.0
                for k in range(cell_faces.shape[1]):
                    face = cell_faces[i, k]
                    for p in range(offsets[face], offsets[face + 1]):
                        total += max(cell_signs[i, k] * speeds[label, p], 0.0)
                result[label, i] = total
