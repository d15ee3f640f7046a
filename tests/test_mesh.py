"""Cells and faces of HEALPix and circle: identities that hold in every cell, healpy as an independent oracle."""

import healpy
import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.edges import EDGE_DIRECTIONS, EDGE_STARTS
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.face_map import sphere_point, sphere_tangents
from tokensphere.meshes.gradients import gradient
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.locate import locate
from tokensphere.meshes.quadrature import batches, cell_averages

NSIDES = [1, 2, 4, 8, 16, 32, 64]


def divergence(mesh, vectors):
    """Σ_q ±⟨N_q, v_q⟩/A of a field given at the face points."""
    speeds = np.einsum("pd,pd->p", mesh.face_normals, vectors)
    fluxes = np.add.reduceat(speeds, mesh.face_offsets[:-1])
    return (mesh.cell_signs * fluxes[mesh.cell_faces]).sum(axis=1) / mesh.areas


def polar_cells(mesh):
    return np.argsort(-np.abs(mesh.centers[:, 2]), kind="stable")[:8]


@pytest.mark.parametrize("nside", NSIDES)
def test_every_cell_has_four_symmetric_faces(nside):
    mesh = healpix(nside)
    assert len(mesh.face_cells) == 2 * mesh.cells
    assert (mesh.face_cells[:, 0] < mesh.face_cells[:, 1]).all()
    others = mesh.face_cells[mesh.cell_faces].sum(axis=2) - np.arange(mesh.cells)[:, None]
    assert all(len(set(row)) == 4 for row in others.tolist())
    assert mesh.cell_signs.sum() == 0
    assert (np.bincount(mesh.cell_faces.ravel()) == 2).all()
    # healpy's own edge neighbours: every second of its eight.
    around = healpy.get_all_neighbours(nside, np.arange(mesh.cells), nest=True)[::2].T
    np.testing.assert_array_equal(np.sort(others, axis=1), np.sort(around, axis=1))


@pytest.mark.parametrize("nside", [1, 2, 8])
def test_a_face_is_the_same_curve_seen_from_either_side(nside):
    mesh = healpix(nside)
    ix, iy, base = (np.asarray(a, dtype=np.int64) for a in healpy.pix2xyf(nside, np.arange(mesh.cells), nest=True))
    middles = (np.stack([ix, iy], axis=1)[:, None] + EDGE_STARTS + EDGE_DIRECTIONS / 2) / nside
    middles = sphere_point(base[:, None], middles[..., 0], middles[..., 1])
    first, second = mesh.face_cells.T
    distance = np.linalg.norm(middles[first][:, :, None] - middles[second][:, None, :], axis=-1)
    assert distance.reshape(len(first), -1).min(axis=1).max() < 1e-14


@pytest.mark.parametrize("nside", NSIDES)
def test_area_from_the_boundary(nside):
    """∮(1 − z)dφ = π/(3 nside²), with ∮(−1 − z)dφ on the south (∮dφ = 0 but at the pole)."""
    cells = np.arange(12 * nside**2)
    ix, iy, base = (np.asarray(a, dtype=np.int64) for a in healpy.pix2xyf(nside, cells, nest=True))
    nodes, weights = np.polynomial.legendre.leggauss(12)
    area = np.zeros(len(cells))
    for start, direction in zip(EDGE_STARTS, EDGE_DIRECTIONS, strict=True):
        u = (ix[:, None] + start[0] + direction[0] * (nodes + 1) / 2) / nside
        v = (iy[:, None] + start[1] + direction[1] * (nodes + 1) / 2) / nside
        x = sphere_point(base[:, None], u, v)
        along_u, along_v = sphere_tangents(base[:, None], u, v)
        along = direction[0] * along_u + direction[1] * along_v
        longitude = (x[..., 0] * along[..., 1] - x[..., 1] * along[..., 0]) / (x[..., 0] ** 2 + x[..., 1] ** 2)
        height = np.where(base < 8, 1.0, -1.0)[:, None] - x[..., 2]
        area += (height * longitude) @ weights / (2 * nside)
    np.testing.assert_allclose(area, np.pi / (3 * nside**2), rtol=1e-12)
    np.testing.assert_allclose(healpix(nside).areas.sum(), 4 * np.pi, rtol=1e-14)


@pytest.mark.parametrize("nside", NSIDES)
def test_rigid_rotation_is_divergence_free(nside):
    mesh = healpix(nside)
    for axis in np.array([[0, 0, 1.0], [0.6, 0, 0.8], [0.36, -0.48, 0.8]]):
        assert np.abs(divergence(mesh, np.cross(axis, mesh.face_points))).max() * mesh.width < 1e-12


def test_divergence_of_a_projected_constant():
    """div(P_x c) = −2⟨c, x⟩: within 1e−2 in the polar cells at every nside, order 2 in L1."""
    c = np.array([0.2, 0.7, -0.4])
    errors = []
    for nside in (8, 16, 32, 64):
        mesh = healpix(nside)
        found = divergence(mesh, c - (mesh.face_points @ c)[:, None] * mesh.face_points)
        error = np.abs(found - cell_averages(mesh, lambda x: -2 * x @ c))
        assert error[polar_cells(mesh)].max() < 1e-2 * np.linalg.norm(c)
        errors.append(error.mean())
    assert (np.log2(np.divide(errors[:-1], errors[1:])) > 1.95).all()


def test_gradients_converge_in_the_maximum_norm():
    errors = []
    for nside in (8, 16, 32, 64):
        mesh = healpix(nside)
        x = mesh.centers
        value = np.exp(x[:, 0] + x[:, 1] * x[:, 2] / 2)
        exact = value[:, None] * np.stack([np.ones(mesh.cells), x[:, 2] / 2, x[:, 1] / 2], axis=1)
        exact -= np.einsum("nd,nd->n", exact, x)[:, None] * x
        found = gradient(mesh, cell_averages(mesh, lambda x: np.exp(x[..., 0] + x[..., 1] * x[..., 2] / 2)))
        assert np.abs(np.einsum("nd,nd->n", found, x)).max() < 1e-12
        errors.append(np.abs(found - exact).max())
    assert np.polyfit(np.log([8, 16, 32, 64]), np.log(errors), 1)[0] < -1.5


def test_face_map_against_healpy():
    nside, cells = 8, np.arange(12 * 64)
    ix, iy, base = (np.asarray(a, dtype=np.int64) for a in healpy.pix2xyf(nside, cells, nest=True))
    centres = sphere_point(base, (ix + 0.5) / nside, (iy + 0.5) / nside)
    np.testing.assert_allclose(centres, np.stack(healpy.pix2vec(nside, cells, nest=True), axis=1), atol=1e-14)
    north = sphere_point(base, (ix + 1.0) / nside, (iy + 1.0) / nside)
    np.testing.assert_allclose(north, healpy.boundaries(nside, cells, nest=True)[:, :, 0], atol=1e-14)


@pytest.mark.parametrize("cap", [0, 5, 9])
def test_tangents_are_derivatives(cap):
    u, v, step = np.array([0.3, 0.8, 0.55]), np.array([0.15, 0.6, 0.7]), 1e-6
    along_u, along_v = sphere_tangents(np.array(cap), u, v)
    difference = sphere_point(np.array(cap), u + step, v) - sphere_point(np.array(cap), u - step, v)
    np.testing.assert_allclose(along_u, difference / (2 * step), atol=1e-9)
    difference = sphere_point(np.array(cap), u, v + step) - sphere_point(np.array(cap), u, v - step)
    np.testing.assert_allclose(along_v, difference / (2 * step), atol=1e-9)
    # Equal area: |X_u × X_v| = π/3.
    np.testing.assert_allclose(np.linalg.norm(np.cross(along_u, along_v), axis=-1), np.pi / 3, rtol=1e-13)


@pytest.mark.parametrize("nside", [1, 2, 8, 32])
def test_cell_averages_add_up_to_exact_integrals(nside):
    """∫z² = 4π/3, ∫x⁴ = 4π/5, ∫e^{z} = 4π sinh 1: kinked and polar cells included."""
    mesh = healpix(nside)
    for function, exact in (
        (lambda x: x[..., 2] ** 2, 1 / 3),
        (lambda x: x[..., 0] ** 4, 1 / 5),
        (lambda x: np.exp(x[..., 2]), np.sinh(1.0)),
    ):
        assert abs(cell_averages(mesh, function, degree=15).mean() - exact) < 3e-8 / nside**2


def test_averages_of_single_cells_converge_also_on_the_kink_and_at_the_poles():
    mesh = healpix(4)

    def function(x):
        return np.exp(2 * x[..., 0] - x[..., 1] + x[..., 2])

    coarse, fine = cell_averages(mesh, function, degree=13), cell_averages(mesh, function, degree=25)
    assert np.abs(coarse / fine - 1).max() < 1e-8


def test_quadrature_weights_and_points():
    for mesh in (healpix(4), circle(16)):
        seen = np.concatenate([cells for cells, _, _ in batches(mesh, 5)])
        np.testing.assert_array_equal(np.sort(seen), np.arange(mesh.cells))
        for cells, points, weights in batches(mesh, 5):
            np.testing.assert_allclose(np.linalg.norm(points, axis=-1), 1, atol=1e-14)
            assert abs(weights.sum() - 1) < 1e-13
            inside = locate(mesh, points.reshape(-1, mesh.dimension)).reshape(points.shape[:-1])
            np.testing.assert_array_equal(inside, np.broadcast_to(cells[:, None], inside.shape))


@pytest.mark.parametrize("mesh", [healpix(8), circle(64)], ids=repr)
def test_a_cell_holds_its_centre(mesh):
    np.testing.assert_array_equal(locate(mesh, mesh.centers), np.arange(mesh.cells))


def test_circle_is_a_ring_of_arcs():
    mesh = circle(64)
    np.testing.assert_allclose(mesh.areas.sum(), 2 * np.pi)
    tangent = np.stack([-mesh.face_points[:, 1], mesh.face_points[:, 0]], axis=1)
    np.testing.assert_allclose(divergence(mesh, tangent), 0, atol=1e-12)
    c = np.array([0.3, -0.8])
    found = divergence(mesh, c - (mesh.face_points @ c)[:, None] * mesh.face_points)
    np.testing.assert_allclose(found, cell_averages(mesh, lambda x: -x @ c), atol=1e-12)


@pytest.mark.parametrize("nside", [0, -4, 3, 12, 1024, 2.0, True, "32", None])
def test_nside_must_be_a_power_of_two(nside):
    with pytest.raises(InputError, match="nside"):
        healpix(nside)


@pytest.mark.parametrize("cells", [0, 7, 9, 16.0, True, None])
def test_circle_needs_an_even_number_of_cells(cells):
    with pytest.raises(InputError, match="cells"):
        circle(cells)


def test_a_mesh_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        healpix(1).areas[0] = 1.0
