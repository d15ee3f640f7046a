"""Compiled loops of the distance to two atoms ±e: moments of both costs, the threshold of the plan, and its cost.

Sums go over blocks of fixed size, so that they depend on the density alone and not on the threads.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange

BLOCK = 512
HALVINGS = 40


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
    cells: Any, points: Any, weights: Any, centers: Any, atom: Any, geodesic: bool, p: float, constant: Any, linear: Any
) -> None:
    """Averages over some cells of f and of f·(x − c), f = d(x, e)^p in row 0 and d(x, −e)^p in row 1.

    points (n, q, d) and weights (q,) are a rule of the cells (n,); constant is (2, mesh cells), linear (2, cells, d).
    """
    for n in prange(len(cells)):
        i = cells[n]
        for side in range(2):
            constant[side, i] = 0.0
            linear[side, i, :] = 0.0
            for q in range(len(weights)):
                value = weights[q] * cost(points[n, q], atom, 1.0 - 2.0 * side, geodesic, p)
                constant[side, i] += value
                for k in range(centers.shape[1]):
                    linear[side, i, k] += value * (points[n, q, k] - centers[i, k])


@njit(cache=True, parallel=True)
def add_pieces(points: Any, centers: Any, atom: Any, geodesic: bool, p: float, table: Any) -> None:
    """Level ⟨x, e⟩, both costs and offset x − c of pieces (n, pieces, d) of cells with centres (n, d), in a table.

    table is (n, 3 + d, pieces).
    """
    for n in prange(len(points)):
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


@njit(cache=True, parallel=True)
def whole_cells(
    density: Any, gradient: Any, areas: Any, height: Any, level: float, cut: Any, constant: Any, linear: Any
) -> tuple[float, float]:
    """Mass of the cells above the level, and the cost of those above to e and those below to −e, without the cut ones.

    height (cells,) here is in the mesh's order, cut (cells,) marks what to leave out; see ``add_moments`` for the rest,
    here times the areas.
    """
    cells, d = gradient.shape
    blocks = (cells + BLOCK - 1) // BLOCK
    masses, costs = np.zeros(blocks), np.zeros(blocks)
    for b in prange(blocks):
        for i in range(b * BLOCK, min(cells, (b + 1) * BLOCK)):
            if cut[i]:
                continue
            side = 0 if height[i] > level else 1
            if side == 0:
                masses[b] += density[i] * areas[i]
            total = density[i] * constant[side, i]
            for k in range(d):
                total += gradient[i, k] * linear[side, i, k]
            costs[b] += total
    return masses.sum(), costs.sum()


@njit(cache=True)
def cut_cells(
    cells: Any, slots: Any, table: Any, density: Any, gradient: Any, areas: Any, low: float, high: float, window: Any
) -> tuple[float, float, int]:
    """Mass of the pieces above `high`, their cost to e with that of those below `low` to −e, and the pieces between.

    slots (n,) are the rows of the table that hold the pieces of the cells. window (4, n·pieces) takes −level, mass and
    both costs of the pieces between, and their number is returned. Where the linear reconstruction would be negative
    at a piece its cell's gradient is scaled down, as in `Pieces.masses`.
    """
    count, d = table.shape[2], gradient.shape[1]
    rises = np.empty(count)
    above, total, between = 0.0, 0.0, 0
    for n in range(len(cells)):
        i, piece = cells[n], table[slots[n]]
        mean, lowest = 0.0, 0.0
        for q in range(count):
            rise = 0.0
            for k in range(d):
                rise += piece[3 + k, q] * gradient[i, k]
            rises[q] = rise
            mean += rise / count
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
