"""The circle S¹ as a finite-volume mesh."""

from functools import lru_cache

import numpy as np

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.gradients import least_squares_weights
from tokensphere.meshes.mesh import Mesh


@lru_cache(maxsize=16)
def circle(cells: int) -> Mesh:
    """The circle with equal cells; cell k covers the angles [2πk/n, 2π(k+1)/n), face k is its left end.

    Args:
        cells: n ≥ 8, even, so that the cells nest.

    Raises:
        InputError: for any other number of cells.
    """
    if isinstance(cells, bool) or not isinstance(cells, int | np.integer) or cells < 8 or cells % 2:
        raise InputError(f"the circle was given {cells!r} cells; it needs an even whole number of at least 8.")
    n = int(cells)
    index = np.arange(n, dtype=np.int32)
    angle, ends = (index + 0.5) * (2 * np.pi / n), index * (2 * np.pi / n)
    centers = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    face_cells = np.stack([(index - 1) % n, index], axis=1)
    neighbours = np.stack([(index + 1) % n, (index - 1) % n], axis=1)
    cell_faces = np.stack([(index + 1) % n, index], axis=1)
    return Mesh(
        kind="circle",
        resolution=n,
        centers=centers,
        areas=np.full(n, 2 * np.pi / n),
        face_cells=face_cells,
        face_offsets=np.arange(n + 1, dtype=np.int32),
        face_points=np.stack([np.cos(ends), np.sin(ends)], axis=1),
        face_normals=np.stack([-np.sin(ends), np.cos(ends)], axis=1),
        cell_faces=cell_faces,
        cell_signs=np.tile(np.array([1, -1], dtype=np.int8), (n, 1)),
        neighbours=neighbours,
        gradient_weights=least_squares_weights(centers, neighbours),
    )
