"""Compiled loops of the distance to two atoms ±e: moments of both costs, the threshold of the plan, and its cost.

Sums go over blocks, which keeps their rounding small. A record's loops take less than a millisecond and run on one
thread: waking another one can take longer than that.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.pde.transport_kernels import SAFE, gradient

BLOCK = 512
HALVINGS = 16


@njit(cache=True)
def cost(point: Any, atom: Any, sign: float, geodesic: bool, p: float) -> Any:
    """d(x, ±e)^p without the cancellation of 1 − ⟨x, e⟩ at small distances."""
    squared = 0.0
    for k in range(len(point)):
        squared += (point[k] - sign * atom[k]) ** 2
    if not geodesic and p == 2.0:
        return squared
    chord = math.sqrt(squared)
    distance = 2.0 * math.asin(min(0.5 * chord, 1.0)) if geodesic else chord
    return distance**p


@njit(cache=True, parallel=True)
def add_moments(
    cells: Any, points: Any, weights: Any, centers: Any, atom: Any, geodesic: bool, p: float, moments: Any
) -> None:
    """Averages over some cells of f and f·(x − c), f = d(x, e)^p in moments[0] and d(x, −e)^p in moments[1].

    points (n, q, d) and weights (q,) are a rule of the cells (n,); moments is (2, mesh cells, 4), zero at first.
    """
    for n in prange(len(cells)):
        i = cells[n]
        for side in range(2):
            for q in range(len(weights)):
                value = weights[q] * cost(points[n, q], atom, 1.0 - 2.0 * side, geodesic, p)
                moments[side, i, 0] += value
                for k in range(len(atom)):
                    moments[side, i, 1 + k] += value * (points[n, q, k] - centers[i, k])


@njit(cache=True)
def add_pieces(points: Any, centers: Any, atom: Any, geodesic: bool, p: float, table: Any) -> None:
    """Level ⟨x, e⟩, both costs and offset x − c of pieces (n, pieces, d) of cells with centres (n, d), in a table.

    table is (n, 6, pieces), its last row zero on the circle.
    """
    for n in range(len(points)):
        table[n, 5] = 0.0
        for q in range(points.shape[1]):
            level = 0.0
            for k in range(len(atom)):
                level += points[n, q, k] * atom[k]
                table[n, 3 + k, q] = points[n, q, k] - centers[n, k]
            table[n, 0, q] = level
            table[n, 1, q] = cost(points[n, q], atom, 1.0, geodesic, p)
            table[n, 2, q] = cost(points[n, q], atom, -1.0, geodesic, p)


@njit(cache=True)
def threshold(
    density: Any, areas: Any, order: Any, height: Any, swing: Any, reach: float, share: float
) -> tuple[float, float]:
    """The whole mass, and the level above which about `share` of it lies.

    order: cells by falling height ⟨c, e⟩; height and swing (cells,) in that order. A cell is taken as spread evenly
    over height ± swing ≤ reach. Cells farther than `reach` from the height at which half cells count are whole.
    """
    cells = len(order)
    blocks = (cells + BLOCK - 1) // BLOCK
    partial = np.zeros(blocks)
    for b in range(blocks):
        for k in range(b * BLOCK, min(cells, (b + 1) * BLOCK)):
            partial[b] += density[order[k]] * areas[order[k]]
    total = partial.sum()
    above, b = 0.0, 0
    while b < blocks - 1 and above + partial[b] < share * total:
        above += partial[b]
        b += 1
    middle = b * BLOCK
    while middle < cells - 1 and above + density[order[middle]] * areas[order[middle]] < share * total:
        above += density[order[middle]] * areas[order[middle]]
        middle += 1
    first, last = middle, middle
    while first > 0 and height[first - 1] < height[middle] + 2.0 * reach:
        first -= 1
        above -= density[order[first]] * areas[order[first]]
    while last < cells and height[last] > height[middle] - 2.0 * reach:
        last += 1
    low, high = height[middle] - reach, height[middle] + reach
    for _ in range(HALVINGS):
        level = 0.5 * (low + high)
        mass = above
        for k in range(first, last):
            part = 0.5 + 0.5 * (height[k] - level) / swing[k]
            mass += density[order[k]] * areas[order[k]] * min(max(part, 0.0), 1.0)
        if mass > share * total:
            low = level
        else:
            high = level
    return total, 0.5 * (low + high)


@njit(cache=True)
def limited_slope(density: Any, i: int, geometry: Any) -> tuple[float, float, float]:
    """The gradient of one cell as `limited_gradient` has it; its face points are looked at only where they may matter.

    geometry: neighbours, least-squares weights, centres, radii, faces of cells, offsets and points of faces.
    """
    neighbours, weights, centers, radii, cell_faces, offsets, points = geometry
    g0, g1, g2 = gradient(density, i, neighbours, weights)
    bound = density[i] * SAFE
    if (g0 * g0 + g1 * g1 + g2 * g2) * radii[i] ** 2 <= bound * bound:
        return g0, g1, g2
    steepest = 0.0
    for k in range(cell_faces.shape[1]):
        for p in range(offsets[cell_faces[i, k]], offsets[cell_faces[i, k] + 1]):
            rise = g0 * (points[p, 0] - centers[i, 0])
            rise += g1 * (points[p, 1] - centers[i, 1])
            rise += g2 * (points[p, 2] - centers[i, 2])
            steepest = max(steepest, abs(rise))
    scale = 1.0 if steepest <= bound else bound / steepest
    return g0 * scale, g1 * scale, g2 * scale


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def whole_cells(
    density: Any, geometry: Any, areas: Any, height: Any, level: float, cut: Any, moments: Any, shares: Any, steep: Any
) -> tuple[float, float]:
    """Mass of the cells above the level, and the cost of those above to e and those below to −e, without the cut ones.

    height (cells,) here is in the mesh's order, cut (cells,) marks what to leave out; moments as in ``add_moments``.
    Where steep_i Σ_k|ρ_k − ρ_i| ≤ ρ_i the gradient of a cell is not limited, and its part of the cost is
    Σ_k shares_ik (ρ_k − ρ_i) with shares (2, cells, neighbours).
    """
    neighbours = geometry[0]
    cells = len(density)
    blocks = (cells + BLOCK - 1) // BLOCK
    masses, costs = np.zeros(blocks), np.zeros(blocks)
    for b in range(blocks):
        mass = cost = 0.0
        for i in range(b * BLOCK, min(cells, (b + 1) * BLOCK)):
            if not cut[i]:
                side = 0 if height[i] > level else 1
                own = density[i]
                rise = size = 0.0
                for k in range(neighbours.shape[1]):
                    difference = density[neighbours[i, k]] - own
                    rise += shares[side, i, k] * difference
                    size += abs(difference)
                if steep[i] * size > own * SAFE:
                    g0, g1, g2 = limited_slope(density, i, geometry)
                    rise = g0 * moments[side, i, 1] + g1 * moments[side, i, 2] + g2 * moments[side, i, 3]
                cost += (own * moments[side, i, 0] + rise) * areas[i]
                if side == 0:
                    mass += density[i] * areas[i]
        masses[b], costs[b] = mass, cost
    return masses.sum(), costs.sum()


@njit(cache=True)
def cut_cells(
    cells: Any, slots: Any, table: Any, density: Any, geometry: Any, areas: Any, low: float, high: float, window: Any
) -> tuple[float, float, int]:
    """Mass of the pieces above `high`, their cost to e with that of those below `low` to −e, and the pieces between.

    slots (n,) are the rows of the table that hold the pieces of the cells. window (4, n·pieces) takes −level, mass and
    both costs of the pieces between, and their number is returned. Where the linear reconstruction would be negative
    at a piece its cell's gradient is scaled down, as in `Pieces.masses`.
    """
    count = table.shape[2]
    rises = np.empty(count)
    above, total, between = 0.0, 0.0, 0
    for n in range(len(cells)):
        i, piece = cells[n], table[slots[n]]
        g0, g1, g2 = limited_slope(density, i, geometry)
        mean, lowest = 0.0, 0.0
        for q in range(count):
            rises[q] = piece[3, q] * g0 + piece[4, q] * g1 + piece[5, q] * g2
            mean += rises[q] / count
        for q in range(count):
            rises[q] -= mean
            lowest = min(lowest, rises[q])
        scale = density[i] / -lowest if -lowest > density[i] else 1.0
        for q in range(count):
            mass = (density[i] + scale * rises[q]) * areas[i] / count
            if piece[0, q] >= high:
                above += mass
                total += mass * piece[1, q]
            elif piece[0, q] <= low:
                total += mass * piece[2, q]
            else:
                window[0, between], window[1, between] = -piece[0, q], mass
                window[2, between], window[3, between] = piece[1, q], piece[2, q]
                between += 1
    return above, total, between
