"""Nested indices against healpy's."""

import healpy
import numpy as np
import pytest

from tokensphere.meshes.nested import cell_of, cells_around, face_coordinates, ring_numbers


@pytest.mark.parametrize("nside", [1, 2, 8, 64])
def test_indices_are_healpys(nside: int) -> None:
    cells = np.arange(12 * nside**2)
    np.testing.assert_array_equal(face_coordinates(nside, cells), healpy.pix2xyf(nside, cells, nest=True))
    np.testing.assert_array_equal(face_coordinates(nside, cells[3:5]), healpy.pix2xyf(nside, cells[3:5], nest=True))
    np.testing.assert_array_equal(cells_around(nside).T, healpy.get_all_neighbours(nside, cells, nest=True))
    np.testing.assert_array_equal(ring_numbers(nside), healpy.nest2ring(nside, cells))


def test_points_lie_in_healpys_cells() -> None:
    points = np.random.default_rng(0).normal(size=(5000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    np.testing.assert_array_equal(cell_of(32, points), healpy.vec2pix(32, *points.T, nest=True))
    poles = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    np.testing.assert_array_equal(cell_of(32, poles), healpy.vec2pix(32, *poles.T, nest=True))
