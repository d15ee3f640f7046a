"""Targets in compact blocks: the unit in which the tree is walked and expansions are evaluated."""

import numpy as np
from numpy.typing import NDArray

from tokensphere.pde.sources import Bisection
from tokensphere.pde.tree_kernels import LARGEST_BLOCK

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Blocks = tuple[Integers, Integers, Array, Array, Array, Array]

REACH = 1.2
"""Blocks have |z − z0| ≤ REACH √|z0|: e^{⟨z, ·⟩} is about 1/√|z| wide, so that blocks see about the same sources."""
SMALLEST_BLOCK = 200
FIRST_LEVEL = 6  # at least 64 blocks, to have work for all threads


def target_blocks(targets: Bisection, flat: bool) -> Blocks:
    """The coarsest nodes of the bisected targets that are small enough, as columns.

    First rows, sizes, centres z0 (b, 3), reaches ≥ |z − z0|, depths ≥ |⟨normal, z − z0⟩|, and normals (b, 3), the
    directions in which the blocks are thinnest.
    """
    parts: list[Blocks] = []
    unserved = np.ones(1, dtype=bool)
    for level in range(targets.levels + 1):
        bounds = targets.bounds(level)
        starts, sizes = bounds[:-1], np.diff(bounds)
        if level == targets.levels or (level >= FIRST_LEVEL and sizes.min() <= LARGEST_BLOCK):
            centers, reaches, depths, normals = extents(targets.points, starts, sizes, flat)
            small = reaches <= REACH * np.sqrt(np.maximum(np.linalg.norm(centers, axis=1), 1.0))
            small = (sizes <= LARGEST_BLOCK) & (small | (sizes <= SMALLEST_BLOCK))
            ready = unserved & (small | (level == targets.levels))
            parts.append(
                (starts[ready], sizes[ready], centers[ready], reaches[ready], depths[ready], normals[ready])
            )
            unserved = unserved & ~ready
            if not unserved.any():
                break
        unserved = np.repeat(unserved, 2)
    starts, sizes, centers, reaches, depths, normals = (np.concatenate(column) for column in zip(*parts, strict=True))
    return starts, sizes, centers, reaches, depths, normals


def extents(points: Array, starts: Integers, sizes: Integers, flat: bool) -> tuple[Array, Array, Array, Array]:
    """Centres (b, 3), reaches, depths and normals (b, 3) of consecutive blocks of points (n, 3)."""
    means = np.add.reduceat(points, starts) / sizes[:, None]
    away = points - np.repeat(means, sizes, axis=0)
    covariance = np.add.reduceat(away[:, :, None] * away[:, None, :], starts)
    if flat:  # the normal lies in the plane of the circle
        covariance[:, 2, 2] = 1.0 + covariance[:, 0, 0] + covariance[:, 1, 1]
    normals = np.ascontiguousarray(np.linalg.eigh(covariance)[1][:, :, 0])
    along = np.einsum("nk,nk->n", away, np.repeat(normals, sizes, axis=0))
    lowest, highest = np.minimum.reduceat(along, starts), np.maximum.reduceat(along, starts)
    centers = means + ((lowest + highest) / 2)[:, None] * normals
    distances = np.linalg.norm(points - np.repeat(centers, sizes, axis=0), axis=1)
    rounding = 1e-14 * (1.0 + np.linalg.norm(centers, axis=1))
    return centers, np.maximum.reduceat(distances, starts) + rounding, (highest - lowest) / 2 + rounding, normals
