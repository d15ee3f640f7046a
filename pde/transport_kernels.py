"""Compiled loops of the finite-volume transport; those of the scheme have a numpy twin in the tests.

Densities are (labels, cells); speeds are (labels, points), or (1, points) where one flow moves all labels. Loops run
over blocks of cells or faces, labels inside, so that a block's geometry is read once for all labels. Vectors have three
columns; on the circle the third is zero.
"""

from typing import Any

from numba import njit, prange

Array = Any
BLOCK = 512
# A hair below 1, so that rounding cannot push a value below zero or a cell's outflow above what it holds.
SAFE = 1.0 - 1e-11
# At the foot of a cliff the slope is not the cell's own: unequal cells may explain a bend of this share of its value.
SLANT = 0.5


@njit(cache=True, inline="always")
def gradient(density: Array, i: int, neighbours: Array, weights: Array) -> tuple[float, float, float]:
    """The least-squares gradient g_i = Σ_k w_ik (ρ_k − ρ_i)."""
    g0 = g1 = g2 = 0.0
    for k in range(neighbours.shape[1]):
        difference = density[neighbours[i, k]] - density[i]
        g0 += weights[i, k, 0] * difference
        g1 += weights[i, k, 1] * difference
        g2 += weights[i, k, 2] * difference
    return g0, g1, g2


@njit(cache=True, inline="always")
def gradient_and_bendings(
    density: Array, i: int, neighbours: Array, weights: Array, skews: Array
) -> tuple[float, float, float, float, float]:
    """Least-squares gradient g_i (3 numbers), the largest bending of cell i, at least 0, and the largest absolute one.

    A bending is (2ρ_i − ρ_− − ρ_+ + ⟨g_i, s⟩)/(2ρ_i + ρ_− + ρ_+); ρ_± are across opposite faces. The skew
    s = c_− + c_+ − 2c_i keeps a slope from passing for a bend where cells are unequal; its term is cut to ±ρ_i/2.
    """
    own = density[i]
    g0, g1, g2 = gradient(density, i, neighbours, weights)
    largest = steepest = 0.0
    half = skews.shape[1]
    for side in range(half):
        around = density[neighbours[i, side]] + density[neighbours[i, side + half]]
        skew = g0 * skews[i, side, 0] + g1 * skews[i, side, 1] + g2 * skews[i, side, 2]
        skew = min(SLANT * own, max(-SLANT * own, skew))
        ratio = (2.0 * own - around + skew) / (2.0 * own + around) if around + own > 0.0 else 0.0
        largest = max(largest, ratio)
        steepest = max(steepest, abs(ratio))
    return g0, g1, g2, largest, steepest


@njit(cache=True, parallel=True, error_model="numpy")
def least_squares(
    density: Array, neighbours: Array, weights: Array, skews: Array, gradients: Array, bendings: Array
) -> None:
    """Gradients (labels, cells, 3) and bendings (labels, cells, 2) of all cells: ``gradient_and_bendings``."""
    labels, cells = density.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            row = density[label]
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                g0, g1, g2, largest, steepest = gradient_and_bendings(row, i, neighbours, weights, skews)
                gradients[label, i, 0], gradients[label, i, 1], gradients[label, i, 2] = g0, g1, g2
                bendings[label, i, 0], bendings[label, i, 1] = largest, steepest


@njit(cache=True, parallel=True)
def limit(
    density: Array, centers: Array, cell_faces: Array, offsets: Array, points: Array, gradients: Array
) -> None:
    """Scales gradients in place by θ = min(1, ρ/max_q|⟨g, x_q − c_i⟩|) over the face points x_q of the cell."""
    labels, cells = density.shape
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                g0, g1, g2 = gradients[label, i, 0], gradients[label, i, 1], gradients[label, i, 2]
                level = g0 * centers[i, 0] + g1 * centers[i, 1] + g2 * centers[i, 2]
                steepest = 0.0
                for k in range(cell_faces.shape[1]):
                    for p in range(offsets[cell_faces[i, k]], offsets[cell_faces[i, k] + 1]):
                        rise = g0 * points[p, 0] + g1 * points[p, 1] + g2 * points[p, 2] - level
                        steepest = max(steepest, abs(rise))
                bound = density[label, i] * SAFE
                if steepest > bound:
                    gradients[label, i, 0] = g0 * (bound / steepest)
                    gradients[label, i, 1] = g1 * (bound / steepest)
                    gradients[label, i, 2] = g2 * (bound / steepest)


@njit(cache=True, inline="always")
def sharpness(bending: float) -> float:
    """From 0 for a peak wider than 1.5 cells (standard deviation) to 1 for one within two cells.

    The bending is about 1/(4σ²) at the top of a Gaussian σ cells wide, a third where two cells share all mass equally,
    1 in a lone cell.
    """
    return min(1.0, max(0.0, 4.0 * bending - 0.4))


@njit(cache=True, inline="always")
def of_the_heavier(first: float, second: float, weight_of_first: float, weight_of_second: float) -> float:
    """The larger value, that of the lighter side times the ratio of weights: a ripple beside a peak is no peak."""
    if weight_of_first < weight_of_second:
        return max(second, first * (weight_of_first / weight_of_second))
    return max(first, second * (weight_of_second / weight_of_first)) if weight_of_first > 0.0 else 0.0


@njit(cache=True, inline="always")
def followed(bending: float) -> float:
    """The share of the gradient that is used: all up to a bending of .4, 1 − bending (van Leer's mean) from .6 on.

    There one neighbour outweighs the other side by far, as at the foot of a cluster: the gradient is the cluster's, and
    the cell, which has little, would be drained.
    """
    return 1.0 - min(1.0, bending) * min(1.0, max(0.0, 5.0 * bending - 2.0))


@njit(cache=True, inline="always")
def resolved(bending: float) -> float:
    """The share of the second difference that a cell uses: 1 − O(h²) where the density is smooth, 0 in steep flanks."""
    return max(0.0, 1.0 - 8.0 * bending)


@njit(cache=True)
def release(speeds: Array, row: int, i: int, face: int, cell_faces: Array, cell_signs: Array, offsets: Array) -> float:
    """How much faster than at the face, U⁺, the middle of cell i flows towards it, C⁺ with C = (U − U_opposite)/2.

    U is the outward volume per unit time through the face, U_opposite that through the opposite one.
    """
    count = cell_faces.shape[1]
    k = 0
    while cell_faces[i, k] != face:
        k += 1
    opposite = (k + count // 2) % count
    here = cell_signs[i, k] * through(speeds, row, face, offsets)
    there = cell_signs[i, opposite] * through(speeds, row, cell_faces[i, opposite], offsets)
    return float(max(0.0, max(0.0, 0.5 * (here - there)) - max(0.0, here)))


@njit(cache=True)
def through(speeds: Array, row: int, face: int, offsets: Array) -> float:
    """Volume per unit time through a face, first cell to second."""
    total = 0.0
    for p in range(offsets[face], offsets[face + 1]):
        total += speeds[row, p]
    return total


@njit(cache=True, inline="always")
def flattening(released: float, through: float) -> float:
    """The share of the reconstruction that a peak's face goes without: 1 where the flow is stopped, 0 where it passes.

    At rest on a peak, plain averages and ``release`` balance exactly where the flow's centre is the peak's own.
    """
    return 0.0 if released == 0.0 else min(1.0, released / max(abs(through), 1e-300))


@njit(cache=True, parallel=True, error_model="numpy", fastmath={"contract"})
def reconstruct(
    density: Array,
    neighbours: Array,
    weights: Array,
    skews: Array,
    centers: Array,
    affordable: Array,
    caps: tuple[float, float],
    bend: float,
    lines: Array,
    traits: Array,
) -> None:
    """What a face has to know of the cells beside it: lines and traits (labels, cells, 4).

    A line is ρ_i − ⟨g_i, c_i⟩ and the gradient g_i, as far as ``followed``; the traits are ρ_i, its largest face value
    C_i ρ_i, bend·r_i with r_i ``resolved``, and the ``sharpness``. C_i is ``affordable`` (rows, cells) within the caps.
    """
    labels, cells = density.shape
    shared = affordable.shape[0] == 1
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for label in range(labels):
            row, values = 0 if shared else label, density[label]
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                g0, g1, g2, largest, steepest = gradient_and_bendings(values, i, neighbours, weights, skews)
                own, part = values[i], followed(steepest)
                g0, g1, g2 = part * g0, part * g1, part * g2
                lines[label, i, 0] = own - (g0 * centers[i, 0] + g1 * centers[i, 1] + g2 * centers[i, 2])
                lines[label, i, 1], lines[label, i, 2], lines[label, i, 3] = g0, g1, g2
                traits[label, i, 0] = own
                traits[label, i, 1] = own * min(caps[1], max(caps[0], affordable[row, i])) * SAFE
                traits[label, i, 2] = bend * resolved(steepest)
                traits[label, i, 3] = sharpness(largest)


@njit(cache=True, parallel=True)
def upwind_fluxes(
    lines: Array,
    traits: Array,
    speeds: Array,
    centers: Array,
    face_cells: Array,
    cell_faces: Array,
    cell_signs: Array,
    offsets: Array,
    points: Array,
    fluxes: Array,
) -> None:
    """Φ_f = Σ_q u_q⁺ ρ_first(x_q) + u_q⁻ ρ_second(x_q) + s (E_first ρ_first − E_second ρ_second), first cell to second.

    ρ_i(x_q) = ρ_i + ⟨g_i, x_q − c_i⟩ + bend·r_i·(ρ_j − ρ_i − ⟨g_i, c_j − c_i⟩) from the lines and traits of
    ``reconstruct``, cut to [0, C_i ρ_i] and, at a face where the flow stops on a peak, drawn to ρ_i (``flattening``);
    s is the ``sharpness`` ``of_the_heavier`` cell, E ``release``.
    """
    labels = lines.shape[0]
    faces = face_cells.shape[0]
    shared = speeds.shape[0] == 1
    for block in prange((faces + BLOCK - 1) // BLOCK):
        for label in range(labels):
            row = 0 if shared else label
            for f in range(block * BLOCK, min(faces, (block + 1) * BLOCK)):
                first, second = face_cells[f, 0], face_cells[f, 1]
                total = 0.0
                bent = 1.0
                if traits[label, first, 3] > 0.0 or traits[label, second, 3] > 0.0:
                    left, right = traits[label, first, 0], traits[label, second, 0]
                    sharp = of_the_heavier(traits[label, first, 3], traits[label, second, 3], left, right)
                    out = release(speeds, row, first, f, cell_faces, cell_signs, offsets)
                    back = release(speeds, row, second, f, cell_faces, cell_signs, offsets)
                    total += sharp * (out * left - back * right)
                    bent -= sharp * flattening(out + back, through(speeds, row, f, offsets))
                known = -1
                own = most = start = g0 = g1 = g2 = 0.0
                for p in range(offsets[f], offsets[f + 1]):
                    speed = speeds[row, p]
                    upwind = 0 if speed > 0.0 else 1
                    if upwind != known:  # seldom within a face: its value is linear in x
                        known = upwind
                        i, j = (first, second) if upwind == 0 else (second, first)
                        own, most, part = traits[label, i, 0], traits[label, i, 1], traits[label, i, 2]
                        start, g0 = lines[label, i, 0], lines[label, i, 1]
                        g1, g2 = lines[label, i, 2], lines[label, i, 3]
                        across = start + (g0 * centers[j, 0] + g1 * centers[j, 1] + g2 * centers[j, 2])
                        start += part * (traits[label, j, 0] - across)
                    value = start + (g0 * points[p, 0] + g1 * points[p, 1] + g2 * points[p, 2])
                    total += speed * (own + bent * (min(most, max(0.0, value)) - own))
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
def outflows(
    speeds: Array, cell_faces: Array, cell_signs: Array, offsets: Array, forward: Array, backward: Array, result: Array
) -> None:
    """The most that can leave every cell (rows, cells) per unit time, in volume.

    That is Σ_q max(±u_q, 0) over the points of its faces plus the ``release`` of its faces. forward and backward
    (rows, faces) take the volume that flows through every face from the first cell to the second and back.
    """
    rows, cells = result.shape
    faces, half = forward.shape[1], cell_faces.shape[1] // 2
    for block in prange((faces + BLOCK - 1) // BLOCK):
        for row in range(rows):
            for f in range(block * BLOCK, min(faces, (block + 1) * BLOCK)):
                ahead = back = 0.0
                for p in range(offsets[f], offsets[f + 1]):
                    ahead += max(speeds[row, p], 0.0)
                    back += max(-speeds[row, p], 0.0)
                forward[row, f], backward[row, f] = ahead, back
    for block in prange((cells + BLOCK - 1) // BLOCK):
        for row in range(rows):
            for i in range(block * BLOCK, min(cells, (block + 1) * BLOCK)):
                total = 0.0
                for k in range(half):
                    f, g = cell_faces[i, k], cell_faces[i, k + half]
                    ahead, back = cell_signs[i, k] * forward[row, f], cell_signs[i, k] * backward[row, f]
                    here = ahead - back
                    total += max(ahead, -back)
                    ahead, back = cell_signs[i, k + half] * forward[row, g], cell_signs[i, k + half] * backward[row, g]
                    there = ahead - back
                    total += max(ahead, -back)
                    middle = 0.5 * (here - there)
                    total += max(0.0, max(0.0, middle) - max(0.0, here))
                    total += max(0.0, max(0.0, -middle) - max(0.0, there))
                result[row, i] = total


@njit(cache=True, parallel=True)
def weighted_sum(weights: Array, rows: Array, result: Array) -> None:
    """result_i = Σ_k weights_k rows_ki."""
    size = len(result)
    for block in prange((size + BLOCK - 1) // BLOCK):
        for i in range(block * BLOCK, min(size, (block + 1) * BLOCK)):
            total = weights[0] * rows[0, i]
            for k in range(1, len(weights)):
                total += weights[k] * rows[k, i]
            result[i] = total
