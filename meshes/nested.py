"""HEALPix indices in nested order through ducc0, which is at hand in milliseconds where healpy takes half a second."""

import ducc0
import numpy as np

from tokensphere.meshes.mesh import Floats, Integers


def face_coordinates(nside: int, cells: Integers) -> tuple[Integers, Integers, Integers]:
    """Column and row 0…nside−1 towards the north-east and north-west, and base face 0…11, of cells (n,)."""
    found = _base(nside).pix2xyf(np.asarray(cells, dtype=np.int64))
    ix, iy, face = np.ascontiguousarray(found.T)
    return ix, iy, face


def cells_around(nside: int) -> Integers:
    """(cells, 8): the cells to the SW, W, NW, N, NE, E, SE and S of every cell, −1 where there is none."""
    return np.asarray(_base(nside).neighbors(np.arange(12 * nside**2)))


def cell_of(nside: int, points: Floats) -> Integers:
    """The cells (n,) that unit vectors (n, 3) lie in."""
    return np.asarray(_base(nside).vec2pix(np.ascontiguousarray(points, dtype=np.float64)))


def ring_numbers(nside: int) -> Integers:
    """The index in ring order of every cell, (cells,)."""
    return np.asarray(_base(nside).nest2ring(np.arange(12 * nside**2)))


def _base(nside: int) -> ducc0.healpix.Healpix_Base:
    return ducc0.healpix.Healpix_Base(nside, "NEST")
