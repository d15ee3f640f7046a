"""The attention integral as the rest of the solver sees it: exact fields, auto's promise, purity, and its refusals."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.levels import finer
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.meshes.rings import from_nested
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.integral import AttentionIntegral, attention_mean
from tokensphere.pde.limiter import prolong
from tokensphere.pde.sources import log_masses
from tokensphere.pde.subcell import SubcellEstimate, aliasing_error, kernel_levels

Array = NDArray[np.float64]


def rotation(rng: np.random.Generator) -> Array:
    return np.asarray(np.linalg.qr(rng.normal(size=(3, 3)))[0])


def head(B: Array, beta: float) -> Attention:
    return Attention(np.eye(len(B)), B, np.eye(len(B)), beta)


def langevin(kappa: Array) -> Array:
    return np.asarray(1 / np.tanh(kappa) - 1 / kappa)


@pytest.fixture(scope="module")
def sphere() -> Mesh:
    return healpix(16)


def test_uniform_density_has_the_closed_field_at_second_order() -> None:
    """E[y] = A_3(β|Bᵀx|) Bᵀx/|Bᵀx| and log F = log(sinh κ/κ) at the uniform density (theory §1.4)."""
    rng = np.random.default_rng(2)
    value = rng.normal(size=(3, 3))
    for B in (np.eye(3), rotation(rng) @ np.diag([1.0, 0.8, 0.6]) @ rotation(rng)):
        errors = []
        for nside in (16, 32, 64):
            mesh = healpix(nside)
            x = mesh.face_points[:: nside // 16 * 4]
            attention = head(B, 100.0)
            mean, log_normaliser = attention_mean(mesh, attention, np.full(mesh.cells, 1 / (4 * np.pi)), x)
            kappa = np.linalg.norm(attention.tilts(x), axis=1)
            moved = (mean - langevin(kappa)[:, None] * attention.directions(x)) @ value.T
            moved -= np.einsum("nd,nd->n", moved, x)[:, None] * x
            logs = log_normaliser - kappa + np.log(2 * kappa)
            errors.append([np.linalg.norm(moved, axis=1).mean(), np.abs(logs).mean()])
        factors = np.array(errors[:-1]) / np.array(errors[1:])
        assert np.abs(factors - 4.0).max() < 0.3, factors


@pytest.mark.parametrize("beta", [3.0, 40.0])
def test_von_mises_fisher_density_tilts_to_another(sphere: Mesh, beta: float) -> None:
    """E[y] = A_3(|w|) w/|w| with w = βBᵀx + κ0 m (theory §1.4)."""
    rng = np.random.default_rng(3)
    B, pole, kappa = rotation(rng) @ np.diag([1.0, 0.7, 0.5]), rotation(rng)[0], 4.0
    mesh = finer(sphere)
    density = cell_averages(mesh, lambda y: np.exp(kappa * (y @ pole - 1)), degree=8)
    x = mesh.face_points[::7]
    mean, _ = attention_mean(mesh, head(B, beta), density, x)
    w = head(B, beta).tilts(x) + kappa * pole
    length = np.linalg.norm(w, axis=1)
    expected = (langevin(length) / length)[:, None] * w
    assert np.linalg.norm(mean - expected, axis=1).max() < 0.7 * mesh.width**2


def test_uniform_circle_has_its_bessel_ratio() -> None:
    mesh = circle(512)
    B = np.array([[0.9, 0.3], [-0.2, 0.7]])
    mean, log_normaliser = attention_mean(mesh, head(B, 50.0), np.full(512, 1 / (2 * np.pi)), mesh.face_points)
    kappa = np.linalg.norm(50.0 * mesh.face_points @ B, axis=1)
    expected = (ive(1, kappa) / ive(0, kappa))[:, None] * head(B, 50.0).directions(mesh.face_points)
    np.testing.assert_allclose(mean, expected, atol=1e-12)  # equidistant points: no quadrature error to see
    np.testing.assert_allclose(log_normaliser, np.log(ive(0, kappa)) + kappa, atol=1e-11)


def densities(mesh: Mesh, rng: np.random.Generator) -> dict[str, Array]:
    along = np.abs(mesh.centers @ rotation(rng)[0])
    one_cell = np.full(mesh.cells, 1e-200)
    one_cell[mesh.cells // 5] = 1.0
    return {
        "smooth": 1 + 0.5 * mesh.centers[:, 2] + 0.3 * mesh.centers[:, 0] * mesh.centers[:, 1],
        "clusters": np.exp(-60 * (1 - along)),
        "one cell": one_cell,
        "void": np.exp(-400 * (1 - along)) + 1e-30,
    }


@pytest.mark.parametrize(("beta", "condition"), [(1.0, 30.0), (100.0, 1.0), (1000.0, 4.0), (1e5, 4.0)])
def test_auto_keeps_its_promise_at_every_point(sphere: Mesh, beta: float, condition: float) -> None:
    rng = np.random.default_rng(int(beta))
    B = rotation(rng) @ np.diag([1.0, condition**-0.5, 1 / condition])
    attention, points = head(B, beta), sphere.face_points[::2]
    integral = AttentionIntegral(sphere, attention, points)
    for name, density in densities(sphere, rng).items():
        mean, log_normaliser = integral(density)
        expected = log_sum_exp(attention.tilts(points), sphere.centers, log_masses(density * sphere.areas))
        assert np.linalg.norm(mean - expected[0], axis=1).max() <= 1e-8, name
        assert np.abs(log_normaliser - expected[1]).max() <= 1e-8, name
        assert sum(integral.served.values()) == pytest.approx(1.0)
        if name == "smooth" and beta <= 100:
            assert integral.served["spectral"] == 1.0
        if name == "one cell" and beta >= 100:
            assert integral.served["tree"] > 0.8


def test_the_result_depends_on_the_density_alone(sphere: Mesh) -> None:
    rng = np.random.default_rng(8)
    attention, points = head(np.eye(3), 60.0), sphere.face_points
    cases = list(densities(sphere, rng).values())
    integral = AttentionIntegral(sphere, attention, points)
    first = [integral(density) for density in cases]
    for density, before in reversed(list(zip(cases, first, strict=True))):
        again, fresh = integral(density), attention_mean(sphere, attention, density, points)
        for part in range(2):
            np.testing.assert_array_equal(again[part], before[part])
            np.testing.assert_array_equal(fresh[part], before[part])


def test_nested_data_stay_nested(sphere: Mesh) -> None:
    """P06: harmonic transforms of nested data must not be read as ring data."""
    density = 1 + 0.5 * sphere.centers[:, 2] + 0.4 * sphere.centers[:, 0]
    attention, points = head(np.eye(3), 10.0), sphere.face_points
    spectral = attention_mean(sphere, attention, density, points, "spectral")
    direct = attention_mean(sphere, attention, density, points, "direct")
    for part in range(2):
        np.testing.assert_allclose(spectral[part], direct[part], atol=1e-11)
    misread = attention_mean(  # what a mix-up would give
        sphere, attention, from_nested(density, 16, "ring"), points, "spectral"
    )
    assert np.abs(misread[0] - direct[0]).max() > 1e-2


@pytest.mark.parametrize("beta", [1.0, 1e2, 1e4, 1e6])
def test_extreme_temperatures_are_finite_and_factors_move_between_query_and_key(sphere: Mesh, beta: float) -> None:
    """P28: shifted exponents; and only QᵀK and β enter."""
    points, density = sphere.face_points[::50], np.full(sphere.cells, 1e-300)
    results = []
    for query, key in ((1.0, 1.0), (8.0, 0.125), (0.25, 4.0)):
        attention = Attention(query * np.eye(3), key * np.eye(3), np.eye(3), beta)
        results.append(attention_mean(sphere, attention, density, points))
    mean, log_normaliser = results[0]
    assert np.isfinite(mean).all()
    assert np.isfinite(log_normaliser).all()
    assert np.linalg.norm(mean, axis=1).max() <= 1 + 1e-14
    for other in results[1:]:
        np.testing.assert_array_equal(other[0], mean)
        np.testing.assert_array_equal(other[1], log_normaliser)


def test_zero_temperature_is_the_local_closed_form(sphere: Mesh) -> None:
    rng = np.random.default_rng(9)
    attention = Attention(rotation(rng), np.diag([1.0, 2.0, 3.0]), np.eye(3), math.inf)
    integral = AttentionIntegral(sphere, attention, sphere.centers)
    mean, log_normaliser = integral(np.ones(sphere.cells))
    images = sphere.centers @ attention.B
    np.testing.assert_allclose(mean, images / np.linalg.norm(images, axis=1, keepdims=True), rtol=1e-14)
    assert (log_normaliser == np.inf).all()
    assert integral.served == {"limit": 1.0}
    cold = attention_mean(sphere, head(attention.B, 1e9), np.ones(sphere.cells), sphere.centers[:5])[0]
    assert np.linalg.norm(cold - mean[:5], axis=1).max() < sphere.width  # β → ∞ on a mesh: the nearest centre


def test_a_broken_density_is_seen(sphere: Mesh) -> None:
    density = np.ones(sphere.cells)
    density[7] = np.nan
    for method in ("direct", "auto"):
        mean, log_normaliser = AttentionIntegral(sphere, head(np.eye(3), 5.0), sphere.face_points, method)(density)
        assert np.isnan(mean).all()
        assert np.isnan(log_normaliser).all()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"method": "magic"}, "magic"),
        ({"rtol": 0.0}, "rtol = 0.0"),
        ({"points": np.ones((4, 2))}, r"points has shape \(4, 2\)"),
        ({"points": np.full((1, 3), np.nan)}, "points"),
        ({"density": np.ones(5)}, r"shape \(5,\)"),
        ({"density": np.zeros(3072)}, "somewhere positive"),
        ({"density": np.full(3072, -1.0)}, "at least 0"),
        ({"attention": head(np.eye(2), 1.0)}, "vectors of 2 coordinates"),
        ({"mesh": circle(16), "attention": head(np.eye(2), 1.0), "points": np.eye(2), "method": "spectral",
          "density": np.ones(16)}, "circle"),
    ],
)
def test_bad_input_is_refused(sphere: Mesh, changes: dict[str, object], named: str) -> None:
    arguments = {
        "mesh": sphere, "attention": head(np.eye(3), 1.0), "density": np.ones(sphere.cells), "points": np.eye(3)
    }
    with pytest.raises(InputError, match=named):
        attention_mean(**{**arguments, **changes})  # type: ignore[arg-type]


def test_kernels_narrower_than_a_cell_are_mended_by_prolongation() -> None:
    """P29: βh² = 3 to 49 on a smooth density; von Mises–Fisher is the closed form to compare with."""
    rng = np.random.default_rng(10)
    pole, beta, kappa = rotation(rng)[0], 3e3, 2.0
    x = rotation(rng)[:2].repeat(40, axis=0) + 0.3 * rng.normal(size=(80, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w = beta * x + kappa * pole
    length = np.linalg.norm(w, axis=1)
    exact = (langevin(length) / length)[:, None] * w
    attention, mended = head(np.eye(3), beta), []
    for nside in (8, 16, 32):
        mesh = healpix(nside)
        density = cell_averages(mesh, lambda y: np.exp(kappa * (y @ pole - 1)), degree=8)
        levels = kernel_levels(mesh, attention, 1e-9)
        errors = []
        for level in (0, levels):
            fine = finer(mesh, level)
            mean = attention_mean(fine, attention, prolong(mesh, density, level), x, "direct")[0]
            errors.append(float(np.linalg.norm(mean - exact, axis=1).max()))
        assert errors[0] > 1e-3
        assert 0.3 < aliasing_error(mesh, attention) / errors[0] < 3.0
        assert 0.2 < SubcellEstimate(mesh, attention, x)(density) / errors[0] < 6.0
        mended.append(errors[1])
    assert kernel_levels(healpix(64), head(np.eye(3), 100.0)) == 0
    assert aliasing_error(mesh, head(np.eye(3), math.inf)) == 0.0
    assert mended[0] < 3e-4
    assert np.log2(mended[0] / mended[2]) / 2 > 1.9, mended
