"""Points with log masses, ordered by balanced bisection so that every node of a binary tree is a contiguous range.

One construction serves cell centres of a mesh, free tokens, the circle and the sphere: a node is halved at the median
of its widest coordinate, hence all nodes of a level hold the same number of points up to one. Level l has 2**l nodes,
and node k of it holds the rows (n k) >> l … (n (k+1)) >> l of the ordered points.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bisection:
    """Points in bisection order: ``points`` (n, 3), padded by a zero for d=2; ``points[i]`` was row ``order[i]``."""

    points: Floats
    order: Integers
    levels: int

    def bounds(self, level: int) -> Integers:
        """(2**level + 1,) first rows of the nodes of a level, closed by the number of points."""
        return (len(self.points) * np.arange(2**level + 1, dtype=np.int64)) >> level


def log_masses(masses: Floats) -> Floats:
    """log m with −inf for an empty source."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(masses))


def padded(vectors: Floats, name: str) -> Floats:
    """Vectors (n, 2) or (n, 3) as finite float64 (n, 3), refused otherwise with InputError."""
    array = np.asarray(vectors, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] not in (2, 3) or len(array) == 0:
        raise InputError(f"{name} has shape {array.shape}; give a non-empty array (n, 2) or (n, 3).")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise InputError(f"{name} is not finite in row {row}; give finite vectors only.")
    result = np.zeros((len(array), 3))
    result[:, : array.shape[1]] = array
    return result


def bisect(points: Floats, leaf: int) -> Bisection:
    """Order points (n, 3) so that the nodes of the last level hold at most ``leaf`` points."""
    levels = 0
    while (len(points) >> levels) > leaf:
        levels += 1
    ordered = np.ascontiguousarray(points, dtype=np.float64).copy()
    order = np.arange(len(points), dtype=np.int64)
    bisection_order(ordered, order, levels)
    return Bisection(ordered, order, levels)


def enclose(tree: Bisection) -> Floats:
    """Balls around the nodes of all levels of a tree of unit vectors, in heap order, one row of 9 numbers each.

    Node k of level l is row 2**l − 1 + k, its children are rows 2i + 1 and 2i + 2. Columns: centre y0 (3), axis ŷ
    parallel to it (3), radius ≥ |y − y0|, width ≥ distance from the axis, thickness ≥ |⟨ŷ, y − y0⟩|.
    """
    return np.concatenate([_enclose_level(tree.points, tree.bounds(level)) for level in range(tree.levels + 1)])


def _enclose_level(points: Floats, bounds: Integers) -> Floats:
    starts, counts = bounds[:-1], np.diff(bounds)
    means = np.add.reduceat(points, starts) / counts[:, None]
    lengths = np.linalg.norm(means, axis=1)
    directed = lengths > 1e-9  # a node around the whole sphere has no direction: any will do
    axes = np.where(directed[:, None], means, [1.0, 0.0, 0.0]) / np.where(directed, lengths, 1.0)[:, None]
    repeated = np.repeat(axes, counts, axis=0)
    along = np.einsum("nk,nk->n", points, repeated)
    lowest, highest = np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)
    heights = (lowest + highest) / 2
    across = np.linalg.norm(points - along[:, None] * repeated, axis=1)
    distances = np.hypot(across, along - np.repeat(heights, counts))
    extents = (np.maximum.reduceat(distances, starts), np.maximum.reduceat(across, starts), (highest - lowest) / 2)
    rounding = 1e-15
    return np.column_stack([heights[:, None] * axes, axes, *(extent + rounding for extent in extents)])


@njit(cache=True)
def bisection_order(points: Floats, order: Integers, levels: int) -> None:
    """Permute points and order in place, halving each node at the median of its widest coordinate."""
    n = len(points)
    for level in range(levels):
        for k in range(1 << level):
            first, last, middle = (n * k) >> level, (n * (k + 1)) >> level, (n * (2 * k + 1)) >> (level + 1)
            _select(points, order, first, last - 1, middle, _widest(points, first, last))


@njit(cache=True)
def _widest(points: Floats, first: int, last: int) -> int:
    best, axis = -1.0, 0
    for k in range(3):
        low, high = points[first, k], points[first, k]
        for i in range(first + 1, last):
            value = points[i, k]
            low, high = min(low, value), max(high, value)
        if high - low > best:
            best, axis = high - low, k
    return axis


@njit(cache=True)
def _select(points: Floats, order: Integers, low: int, high: int, rank: int, axis: int) -> None:
    """Hoare's selection: the rank-th smallest coordinate to row rank, smaller ones before it, larger ones behind."""
    while low < high:
        pivot = points[(low + high) >> 1, axis]
        i, j = low, high
        while i <= j:
            while points[i, axis] < pivot:
                i += 1
            while points[j, axis] > pivot:
                j -= 1
            if i <= j:
                for k in range(3):
                    points[i, k], points[j, k] = points[j, k], points[i, k]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            return
