"""Transport: conservation, positivity, order, and numpy twins of the compiled loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.flux import face_fluxes, largest_step, normal_speeds, outflow, transport_rate
from tokensphere.pde.limiter import limited_gradient
from tokensphere.pde.stepping import forward_euler, heun

MESHES = [healpix(1), healpix(4), circle(32)]


def rough(mesh, seed, labels=None):
    shape = (mesh.cells,) if labels is None else (labels, mesh.cells)
    generator = np.random.default_rng(seed)
    density = generator.lognormal(sigma=6, size=shape) * (generator.random(shape) > 0.3)
    return density / (density @ mesh.areas)[..., None].max()


def face_of_points(mesh):
    return np.repeat(np.arange(len(mesh.face_cells)), np.diff(mesh.face_offsets))


def opposite_faces(mesh):
    """For both sides of every face, the face of that cell whose outward normal points the other way: (faces, 2)."""
    normals = np.zeros((len(mesh.face_cells), mesh.dimension))
    np.add.at(normals, face_of_points(mesh), mesh.face_normals)
    result = np.empty((len(normals), 2), dtype=int)
    for face, pair in enumerate(mesh.face_cells):
        for side, cell in enumerate(pair):
            around = np.flatnonzero((mesh.face_cells == cell).any(axis=1))
            outward = normals[around] * np.where(mesh.face_cells[around, :1] == cell, 1, -1)
            own = outward[around == face][0]
            result[face, side] = around[np.argmin(outward @ own / np.linalg.norm(outward, axis=1))]
    return result


def twin_releases(mesh, speeds):
    """(C⁺ − U⁺)⁺ for both sides of every face, C = (U − U_opposite)/2 of the cell on that side: (faces, 2)."""
    through = np.bincount(face_of_points(mesh), speeds)
    opposite = opposite_faces(mesh)
    releases = np.empty(opposite.shape)
    for side, sign in ((0, 1.0), (1, -1.0)):
        cells = mesh.face_cells[:, side]
        here = sign * through
        other = opposite[:, side]
        there = np.where(mesh.face_cells[other, 0] == cells, 1, -1) * through[other]
        releases[:, side] = np.maximum(0, np.maximum(0, (here - there) / 2) - np.maximum(0, here))
    return releases


def twin_bendings(mesh, density):
    opposite = opposite_faces(mesh)
    largest, steepest = np.zeros((2, mesh.cells))
    slope = np.einsum("nmd,nm->nd", mesh.gradient_weights, density[mesh.neighbours] - density[:, None])
    for side in (0, 1):
        i, j = mesh.face_cells[:, side], mesh.face_cells[:, 1 - side]
        beyond = mesh.face_cells[opposite[:, side]].sum(axis=1) - i
        around, twice = density[j] + density[beyond], 2 * density[i]
        skew = np.einsum("nd,nd->n", slope[i], mesh.centers[j] + mesh.centers[beyond] - 2 * mesh.centers[i])
        skew = np.clip(skew, -twice / 4, twice / 4)
        ratio = np.divide(twice - around + skew, twice + around, out=np.zeros_like(twice), where=twice + around > 0)
        np.maximum.at(largest, i, ratio)
        np.maximum.at(steepest, i, np.abs(ratio))
    return largest, steepest


def twin_fluxes(mesh, density, speeds, dt=np.inf):
    """``face_fluxes`` written with numpy, cell by cell and point by point."""
    raw = np.einsum("nmd,nm->nd", mesh.gradient_weights, density[mesh.neighbours] - density[:, None])
    face = face_of_points(mesh)
    largest, steepest = twin_bendings(mesh, density)
    raw *= 1 - (np.minimum(1, steepest) * np.clip(5 * steepest - 2, 0, 1))[:, None]

    def linear(side):
        i = mesh.face_cells[face, side]
        return i, np.einsum("pd,pd->p", raw[i], mesh.face_points - mesh.centers[i])

    leaving = np.zeros(mesh.cells)
    for side, sign in ((0, 1), (1, -1)):
        np.add.at(leaving, mesh.face_cells[face, side], np.maximum(sign * speeds, 0))
    np.add.at(leaving, mesh.face_cells, twin_releases(mesh, speeds))
    with np.errstate(divide="ignore"):
        cap = np.full(mesh.cells, 2.0) if dt == np.inf else np.clip(mesh.areas / (dt * leaving), 2, 3)
    releases = twin_releases(mesh, speeds)
    pairs = density[mesh.face_cells]
    weights = np.divide(pairs, pairs.max(axis=1, keepdims=True), out=np.zeros_like(pairs), where=pairs > 0)
    sharp = (weights * np.clip(4 * largest - 0.4, 0, 1)[mesh.face_cells]).max(axis=1)
    through = np.abs(np.bincount(face, speeds))
    flat = np.minimum(1, np.divide(releases.sum(axis=1), through, out=np.zeros_like(through), where=through > 0))

    resolved = np.maximum(0, 1 - 8 * steepest)

    def values(side):
        i, rises = linear(side)
        j = mesh.face_cells[face, 1 - side]
        across = np.einsum("pd,pd->p", raw[i], mesh.centers[j] - mesh.centers[i])
        value = density[i] + rises + resolved[i] * (density[j] - density[i] - across) / 6
        return density[i] + (1 - sharp * flat)[face] * (np.clip(value, 0, cap[i] * density[i]) - density[i])

    fluxes = np.bincount(face, speeds * np.where(speeds > 0, values(0), values(1)))
    released = releases * density[mesh.face_cells]
    return fluxes + sharp * (released[:, 0] - released[:, 1])


@pytest.mark.parametrize("mesh", MESHES, ids=repr)
@pytest.mark.parametrize("seed", range(3))
def test_compiled_fluxes_equal_their_numpy_twin(mesh, seed):
    density = rough(mesh, seed)
    speeds = np.random.default_rng(seed).normal(size=len(mesh.face_points))
    for dt in (0.0, largest_step(mesh, speeds), np.inf):
        twin = twin_fluxes(mesh, density, speeds, dt)
        np.testing.assert_allclose(face_fluxes(mesh, density, speeds, dt), twin, atol=1e-11 * np.abs(twin).max())
    rate = np.zeros(mesh.cells)
    np.subtract.at(rate, mesh.face_cells[:, 0], twin)
    np.add.at(rate, mesh.face_cells[:, 1], twin)
    rate /= mesh.areas
    np.testing.assert_allclose(transport_rate(mesh, density, speeds), rate, atol=1e-11 * np.abs(rate).max())
    face = face_of_points(mesh)
    leaving = np.bincount(mesh.face_cells[face, 0], np.maximum(speeds, 0), mesh.cells)
    leaving += np.bincount(mesh.face_cells[face, 1], np.maximum(-speeds, 0), mesh.cells)
    np.add.at(leaving, mesh.face_cells, twin_releases(mesh, speeds))
    np.testing.assert_allclose(outflow(mesh, speeds), leaving, rtol=1e-13)


@pytest.mark.parametrize("mesh", MESHES, ids=repr)
def test_labels_move_alone_and_shared_speeds_move_all(mesh):
    density = rough(mesh, 5, labels=3)
    speeds = np.random.default_rng(1).normal(size=(3, len(mesh.face_points)))
    together = transport_rate(mesh, density, speeds)
    for label in range(3):
        np.testing.assert_array_equal(together[label], transport_rate(mesh, density[label], speeds[label]))
    shared = transport_rate(mesh, density, speeds[0])
    np.testing.assert_array_equal(shared[2], transport_rate(mesh, density[2], speeds[0]))
    np.testing.assert_array_equal(limited_gradient(mesh, density)[1], limited_gradient(mesh, density[1]))


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 1.0))
@settings(max_examples=40, deadline=None)
def test_rough_densities_stay_non_negative_at_the_bound_and_keep_their_mass(seed, fraction):
    """P13, P14: the outflow bound itself, every stage, nothing clipped."""
    for mesh in MESHES:
        density = rough(mesh, seed)
        generator = np.random.default_rng(seed + 1)
        first, second = generator.normal(size=(2, len(mesh.face_points)))
        dt = fraction * min(largest_step(mesh, first), largest_step(mesh, second))
        stages = [forward_euler(mesh, density, first, dt)]
        stages.append(forward_euler(mesh, stages[0], second, dt))
        stages.append(heun(mesh, density, first, lambda _, speeds=second: speeds, dt))
        for stage in stages:
            assert stage.min() >= 0
            assert abs(stage @ mesh.areas - density @ mesh.areas) < 1e-13 * density @ mesh.areas


def test_a_step_beyond_the_bound_can_be_negative():
    """The bound is not idle: forty times beyond it a single full cell goes below zero."""
    mesh = healpix(4)
    density = np.zeros(mesh.cells)
    density[40] = 1.0
    speeds = normal_speeds(mesh, np.cross([0, 0, 1.0], mesh.face_points))
    assert forward_euler(mesh, density, speeds, 40 * largest_step(mesh, speeds)).min() < 0


def test_voids_keep_relative_accuracy():
    """A density scaled by 1e−250 moves exactly as the density itself (the factor is a power of two)."""
    mesh = healpix(4)
    density = cell_averages(mesh, lambda x: 1 + x[..., 0] / 2)
    speeds = normal_speeds(mesh, np.cross([0.6, 0, 0.8], mesh.face_points))
    scale = 2.0**-830
    scaled = transport_rate(mesh, density * scale, speeds)
    np.testing.assert_array_equal(scaled, transport_rate(mesh, density, speeds) * scale)


@pytest.mark.parametrize("mesh", [healpix(8), circle(64)], ids=repr)
def test_reconstruction_is_within_bounds_and_keeps_the_average(mesh):
    density = rough(mesh, 11)
    gradients = limited_gradient(mesh, density)
    for cell in range(mesh.cells):
        for face in mesh.cell_faces[cell]:
            points = mesh.face_points[mesh.face_offsets[face] : mesh.face_offsets[face + 1]]
            values = density[cell] + (points - mesh.centers[cell]) @ gradients[cell]
            assert (values >= 0).all()
            assert (values <= 2 * density[cell]).all()


def test_uniform_density_under_rotation_stays_uniform_over_a_thousand_steps():
    """P03, at several nside, poles included."""
    for mesh in (healpix(1), healpix(8)):
        speeds = normal_speeds(mesh, np.cross([0.48, 0.36, 0.8], mesh.face_points))
        density = np.ones(mesh.cells)
        dt = largest_step(mesh, speeds)
        for _ in range(1000):
            density = heun(mesh, density, speeds, lambda _, speeds=speeds: speeds, dt)
        assert np.abs(density - 1).max() < 1e-12


def test_rotation_of_a_smooth_density_is_second_order():
    """A full turn about a tilted axis brings the density back: L1 order from nside 8, 16, 32."""
    axis, errors = np.array([0.48, 0.36, 0.8]), []
    for nside in (8, 16, 32):
        mesh = healpix(nside)
        speeds = normal_speeds(mesh, np.cross(axis, mesh.face_points))
        start = cell_averages(mesh, lambda x: 1 + 0.5 * x[..., 0] + 0.4 * x[..., 1] * x[..., 2])
        steps = int(np.ceil(2 * np.pi / largest_step(mesh, speeds)))
        density = start
        for _ in range(steps):
            density = heun(mesh, density, speeds, lambda _, speeds=speeds: speeds, 2 * np.pi / steps)
        errors.append(np.abs(density - start).mean())
    assert np.polyfit(np.log([8, 16, 32]), np.log(errors), 1)[0] < -1.9
