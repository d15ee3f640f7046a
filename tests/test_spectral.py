"""The spectral integral against the direct one, its parts against identities, and its floor against its error."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import spherical_in

from tokensphere.meshes.harmonics import degrees_and_orders
from tokensphere.meshes.healpix import healpix
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.gridded import GriddedPlan, grid_degree, measured_tail, spectral_plan
from tokensphere.pde.radial import STEPS, band_limit, factorise, radial_weights
from tokensphere.pde.sites import Sites
from tokensphere.pde.sources import log_masses
from tokensphere.pde.spectral import SpectralPlan, _lagrange
from tokensphere.pde.threads import set_threads, threads

Array = NDArray[np.float64]


def rotation(rng: np.random.Generator) -> Array:
    return np.asarray(np.linalg.qr(rng.normal(size=(3, 3)))[0])


def conditioned(rng: np.random.Generator, condition: float) -> Array:
    return rotation(rng) @ np.diag([1.0, condition**-0.5, 1.0 / condition]) @ rotation(rng)


def head(B: Array, beta: float) -> Attention:
    return Attention(np.eye(3), B, np.eye(3), beta)


def test_radial_weights_are_modified_bessel_functions() -> None:
    radii = np.array([0.3, 5.0, 40.0, 700.0, 1e5])
    values, slopes = radial_weights(radii, 60)
    degrees = np.arange(61)
    small = radii[:3, None]
    expected = 4 * np.pi * np.exp(-small) * spherical_in(degrees, small)
    np.testing.assert_allclose(values[:3], expected, rtol=1e-12, atol=1e-290)
    # i_l' = i_{l−1} − (l+1)/r i_l, another recurrence than the one in use
    others = values[:, :-1] - (degrees[1:] + 1) / radii[:, None] * values[:, 1:]
    np.testing.assert_allclose(slopes[:, 1:], others, rtol=0, atol=2e-13 * values[:, :1].max())


@pytest.mark.parametrize("beta", [1.0, 100.0, 1000.0])
def test_band_limit_leaves_out_nothing_that_counts(beta: float) -> None:
    lmax = band_limit(beta, 1e-15)
    values, _ = radial_weights(np.array([beta]), lmax + 200)
    weights = (2 * np.arange(lmax + 201) + 1) * values[0] / (4 * np.pi)
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)  # a Dirac seen head-on: e^{−r} F = 1
    assert weights[lmax + 1 :].sum() <= 1e-15
    assert lmax <= np.sqrt(2 * beta * np.log(1e15)) + 15


def test_low_rank_weights_hold_between_the_nodes() -> None:
    beta, lmax = 100.0, 89
    factors = factorise(beta / 4, beta, lmax, 1e-13)
    assert factors.rank <= 20
    radii = np.exp(np.random.default_rng(0).uniform(np.log(beta / 4), np.log(beta), 20))
    weights, values = np.empty(8), np.empty((20, factors.rank, 2))
    for i, place in enumerate(factors.position(radii)):
        row = _lagrange(place, weights)
        values[i] = np.tensordot(weights, factors.table[:, row : row + 8], axes=(0, 1))
    np.testing.assert_allclose(factors.radius(factors.position(radii)), radii, rtol=1e-13)
    for part, expected in enumerate(radial_weights(radii, lmax)):
        error = np.abs(values[..., part] @ factors.degrees - expected) * (2 * np.arange(lmax + 1) + 1) / (4 * np.pi)
        assert error.sum(axis=1).max() < 1e-12
    assert (factors.position(np.array([beta, beta / 4])) == [0.0, STEPS]).all()


def test_sites_find_the_rings_and_agree_with_free_points() -> None:
    mesh = healpix(16)
    lmax, rng = 40, np.random.default_rng(1)
    order = degrees_and_orders(lmax)[1]
    coefficients = rng.normal(size=len(order)) + 1j * np.where(order > 0, rng.normal(size=len(order)), 0.0)
    shuffled = rng.permutation(len(mesh.face_points))
    points = mesh.face_points[shuffled]
    rings, free = Sites(points), Sites(points, look_for_rings=False)
    assert not np.array_equal(rings.order, free.order)  # two thirds of the mesh have been sorted by rings
    for kind in ("values", "gradient"):
        found = getattr(rings, kind)(coefficients, lmax)
        expected = getattr(free, kind)(coefficients, lmax)[..., rings.order]
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)
    masses = rng.uniform(size=len(points))
    found, expected = rings.analyse(masses[rings.order], lmax), free.analyse(masses, lmax)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max(), rtol=0)


def densities(mesh_centers: Array, rng: np.random.Generator) -> dict[str, Array]:
    """The measures that dynamic range breaks: smooth, rough, two clusters with and without a floor, nearly one cell."""
    count = len(mesh_centers)
    along = np.abs(mesh_centers @ rotation(rng)[0])
    one_cell = np.full(count, 1e-200)
    one_cell[count // 5] = 1.0
    return {
        "smooth": 1 + 0.5 * mesh_centers[:, 2] + 0.3 * mesh_centers[:, 0] * mesh_centers[:, 1],
        "rough": rng.uniform(size=count) ** 4,
        "clusters": np.exp(-60 * (1 - along)),
        "void": np.exp(-400 * (1 - along)) + 1e-30,
        "one cell": one_cell,
    }


@pytest.mark.parametrize("nside", [16, 32])
@pytest.mark.parametrize("condition", [1.0, 4.0])
def test_smooth_densities_to_ten_digits(nside: int, condition: float) -> None:
    rng, mesh = np.random.default_rng(nside), healpix(nside)
    sample = rng.choice(len(mesh.face_points), 300, replace=False)
    for beta in (1.0, 30.0, 1000.0):
        B = conditioned(rng, condition) if condition > 1 else np.eye(3)
        tilts = head(B, beta).tilts(mesh.face_points[sample] if beta > 100 else mesh.face_points)
        masses = densities(mesh.centers, rng)["smooth"] * mesh.areas
        mean, log_normaliser, floor = SpectralPlan(mesh.centers, tilts)(masses)
        rows = slice(None) if beta > 100 else sample
        expected_mean, expected_log = log_sum_exp(tilts[rows], mesh.centers, np.log(masses))
        np.testing.assert_allclose(mean[rows], expected_mean, atol=1e-11, rtol=0)
        np.testing.assert_allclose(log_normaliser[rows], expected_log, atol=1e-10, rtol=0)
        assert floor.max() < 1e-10


@pytest.mark.parametrize(
    ("beta", "condition"), [(1.0, 1.0), (1.0, 30.0), (100.0, 1.0), (100.0, 4.0), (100.0, 30.0), (1000.0, 1.0)]
)
def test_floor_bounds_the_error(beta: float, condition: float) -> None:
    rng, mesh = np.random.default_rng(int(beta)), healpix(8)
    tilts = head(conditioned(rng, condition), beta).tilts(mesh.face_points[::5])
    plan = SpectralPlan(mesh.centers, tilts)
    for name, density in densities(mesh.centers, rng).items():
        masses = density * mesh.areas
        mean, log_normaliser, floor = plan(masses)
        expected_mean, expected_log = log_sum_exp(tilts, mesh.centers, log_masses(masses))
        known = np.isfinite(floor)
        assert (np.linalg.norm(mean - expected_mean, axis=1) <= floor)[known].all(), name
        assert (np.abs(log_normaliser - expected_log) <= floor)[known].all(), name
        assert np.linalg.norm(mean, axis=1).max() <= 1 + 1e-15
        assert np.isfinite(log_normaliser).all()
        assert floor.min() < 1e-10, name  # somewhere it is of use
        if name == "void" and beta > 1:
            assert floor.max() == np.inf  # and it admits what it cannot see


def test_a_frame_changes_nothing_but_the_cost() -> None:
    rng, mesh = np.random.default_rng(4), healpix(8)
    Q = rotation(rng)
    tilts = head(2.0 * Q.T, 20.0).tilts(mesh.face_points)  # Bᵀ = 2Q
    masses = rng.uniform(size=mesh.cells)
    plain, framed = SpectralPlan(mesh.centers, tilts)(masses), SpectralPlan(mesh.centers, tilts, Q)(masses)
    np.testing.assert_allclose(framed[0], plain[0], atol=1e-11)
    np.testing.assert_allclose(framed[1], plain[1], atol=1e-11)


@pytest.mark.parametrize(("beta", "condition"), [(10.0, 4.0), (50.0, 1.5)])
def test_the_detour_over_a_grid_keeps_floor_and_accuracy(beta: float, condition: float) -> None:
    rng, mesh = np.random.default_rng(5), healpix(32)
    attention, sample = head(conditioned(rng, condition), beta), rng.choice(len(mesh.face_points), 300, replace=False)
    plan = spectral_plan(mesh.centers, attention, mesh.face_points)
    if condition < 4:
        assert isinstance(plan, GriddedPlan)
    else:
        plan = GriddedPlan(mesh.centers, attention, mesh.face_points, grid_degree(attention))
    for name, density in densities(mesh.centers, rng).items():
        masses = density * mesh.areas
        mean, log_normaliser, floor = (part[sample] for part in plan(masses))
        expected = log_sum_exp(attention.tilts(mesh.face_points[sample]), mesh.centers, log_masses(masses))
        known = np.isfinite(floor)
        assert (np.linalg.norm(mean - expected[0], axis=1) <= floor)[known].all(), name
        assert (np.abs(log_normaliser - expected[1]) <= floor)[known].all(), name
        assert floor.min() < 1e-9, name
    assert measured_tail(attention, grid_degree(attention) // 2) > 1e-9  # half the degree would not do


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_masses_does_not_matter(scale: float) -> None:
    rng, mesh = np.random.default_rng(7), healpix(16)
    attention = head(conditioned(rng, 1.5), 5.0)
    masses = densities(mesh.centers, rng)["clusters"]
    for plan in (
        SpectralPlan(mesh.centers, attention.tilts(mesh.face_points)),
        GriddedPlan(mesh.centers, attention, mesh.face_points, grid_degree(attention)),
    ):
        plain, moved = plan(masses), plan(masses * scale)
        np.testing.assert_allclose(moved[0], plain[0], atol=1e-10)
        np.testing.assert_allclose(moved[1], plain[1] + np.log(scale), rtol=1e-12)
        np.testing.assert_allclose(moved[2], plain[2], rtol=1e-3)
        assert np.isposinf(plan(0.0 * masses)[2]).all()


def test_threads_change_nothing_beyond_rounding_and_repeats_are_bitwise() -> None:
    rng, mesh = np.random.default_rng(6), healpix(16)
    tilts, masses = head(conditioned(rng, 2.0), 50.0).tilts(mesh.face_points), rng.uniform(size=mesh.cells)
    plan, before = SpectralPlan(mesh.centers, tilts), threads()
    results = []
    try:
        for count in (1, 2, 2, 1):
            set_threads(count)
            results.append(plan(masses))
    finally:
        set_threads(before)
    for part in range(3):
        np.testing.assert_array_equal(results[1][part], results[2][part])
        np.testing.assert_array_equal(results[0][part], results[3][part])
    np.testing.assert_allclose(results[0][0], results[1][0], atol=1e-12, rtol=0)
    np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-12, rtol=0)
