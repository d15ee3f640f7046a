"""Every closed form against an independent computation: integration in time, quadrature, finite differences."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention
from tokensphere.validation import exact_distances, exact_fields, exact_plateau
from tokensphere.validation import exact_zero_temperature as zero
from tokensphere.validation.projection import Projection

RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order() -> None:
    """Every test draws from the start of the stream, whichever tests ran before it in its process."""
    RANDOM.bit_generator.state = np.random.default_rng(5).bit_generator.state


def unit(n: int, d: int) -> np.ndarray:
    x = RANDOM.normal(size=(n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def problem(d: int) -> tuple[np.ndarray, np.ndarray]:
    A = RANDOM.normal(size=(d, d))
    return A + A.T, RANDOM.normal(size=(d, d)) + 2 * np.eye(d)


def sphere_rule(d: int, n: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the uniform probability: Gauss × trapezoid, spectrally exact for smooth integrands."""
    angle = 2 * np.pi * np.arange(2 * n) / (2 * n)
    if d == 2:
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(2 * n, 0.5 / n)
    z, w = np.polynomial.legendre.leggauss(n)
    s = np.sqrt(1 - z**2)
    points = np.stack(
        [s[:, None] * np.cos(angle), s[:, None] * np.sin(angle), np.repeat(z[:, None], 2 * n, 1)], axis=-1
    )
    return points.reshape(-1, 3), np.repeat(w / 2 / (2 * n), 2 * n)


def extended(field, d: int, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Surface divergence of a tangent field as the divergence of its extension constant along rays."""
    total = np.zeros(len(x))
    for axis in np.eye(d):
        for sign in (1, -1):
            y = x + sign * step * axis
            total += sign * (field(y / np.linalg.norm(y, axis=1, keepdims=True)) @ axis) / (2 * step)
    return total


@pytest.mark.parametrize("d", [2, 3])
def test_zero_temperature_flow_density_and_divergence(d: int) -> None:
    M, B = problem(d)
    x, t = unit(12, d), 0.9

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        rows = y[: 12 * d].reshape(-1, d)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return np.concatenate([zero.velocity(M, B, rows).ravel(), -zero.divergence(M, B, rows)])

    solution = solve_ivp(
        rate, (0, t), np.concatenate([x.ravel(), np.zeros(12)]), rtol=1e-11, atol=1e-12, method="DOP853"
    )
    end, log_growth = solution.y[: 12 * d, -1].reshape(-1, d), solution.y[12 * d :, -1]
    assert np.allclose(zero.flow(M, B, x, t), end, atol=1e-9)
    assert np.allclose(zero.flow(M, B, end, -t), x, atol=1e-8)
    assert np.allclose(zero.divergence(M, B, x), extended(lambda y: zero.velocity(M, B, y), d, x), atol=1e-6)

    def start(y: np.ndarray) -> np.ndarray:
        return 1 + 0.4 * y[..., 0] + 0.3 * y[..., 1] ** 2

    assert np.allclose(zero.density(M, B, start, end, t), start(x) * np.exp(log_growth), rtol=1e-8)
    s = zero.projective_time(M, B, x, t)
    singular = np.linalg.svd(B, compute_uv=False)
    assert np.all((s >= t / singular[0]) & (s <= t / singular[-1]))


def test_orthogonal_b_leaves_time_alone_and_mass_is_one() -> None:
    M, _ = problem(3)
    Q = np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]
    assert np.allclose(zero.projective_time(M, Q, unit(4, 3), 1.7), 1.7)
    points, weights = sphere_rule(3, 120)
    mass = weights @ zero.density(M / 3, Q, lambda y: 1 + 0.5 * y[..., 0], points, 1.0)
    assert mass == pytest.approx(1.0, abs=1e-9)


def test_angle_and_moment_bounds_hold() -> None:
    Q = np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]
    M, B = Q @ np.diag([1.0, 0.2, -0.5]) @ Q.T, np.diag([1.4, 1.0, 0.7])
    projection = Projection(M)
    x, sigma = unit(200, 3), 1.4

    def tangent(y: np.ndarray) -> np.ndarray:
        return np.tan(projection.nearest_distance(y, "geodesic"))

    moved = zero.flow(M, B, x, 2.0)
    assert np.all(tangent(moved) <= zero.angle_bound(projection.gap, sigma, 2.0, tangent(x)) * (1 + 1e-9))
    for metric in ("chordal", "geodesic"):
        measured = np.sqrt(np.mean(projection.nearest_distance(moved, metric) ** 2))
        for p in (0.5, 1.0, 2.0):
            moment = float(np.mean(tangent(x) ** p))
            assert measured <= zero.moment_bound(projection.gap, sigma, 2.0, p, moment, metric)


@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 1), (3, 2)])
def test_distance_closed_forms_against_quadrature(d: int, k: int) -> None:
    for t in (0.0, 1e-7, 1e-4, 0.3, 2.0, 6.0, 12.0):
        a = float(np.exp(-t))
        value = float(exact_distances.chordal_squared(a, d, k))
        assert value == pytest.approx(exact_distances.uniform_distance(a, d, k) ** 2, rel=1e-9, abs=1e-14)


def test_geodesic_w1_and_a_direct_sphere_integral() -> None:
    for a in (1.0, 1 - 1e-7, 0.5, 1e-3):
        expected = exact_distances.uniform_distance(a, 3, 1, 1.0, "geodesic")
        assert float(exact_distances.geodesic_w1(a)) == pytest.approx(expected, rel=1e-9)
    # Theory §1.3(e) with the flow itself: mean of 2(1 − |P_E x_t|) over uniform points.
    points, weights = sphere_rule(3, 200)
    M, t = np.diag([1.0, 1.0, 0.0]), 0.5
    projection = Projection(M)
    moved = zero.flow(M, np.eye(3), points, t)
    mean = float(weights @ projection.nearest_distance(moved) ** 2)
    assert mean == pytest.approx(float(exact_distances.chordal_squared(np.exp(-t), 3, 2)), rel=1e-4)


@pytest.mark.parametrize("d", [2, 3, 5])
def test_bessel_ratio(d: int) -> None:
    u, w = np.polynomial.legendre.leggauss(400)
    for kappa in (1e-3, 0.099, 0.101, 1.0, 30.0):
        theta = 0.5 * np.pi * (u + 1)
        weight = w * np.sin(theta) ** (d - 2) * np.exp(kappa * (np.cos(theta) - 1))
        assert float(exact_fields.bessel_ratio(d, kappa)) == pytest.approx(
            float(weight @ np.cos(theta) / weight.sum()), rel=1e-11
        )
    assert float(exact_fields.bessel_ratio(d, 0.0)) == 0.0
    assert float(exact_fields.bessel_ratio(d, 1e9)) == pytest.approx(1 - (d - 1) / 2e9, abs=1e-15)
    for kappa in (1e-9, 1e-7):
        assert float(exact_fields.bessel_ratio(d, kappa)) == pytest.approx(kappa / d, rel=1e-9)
    below, above = exact_fields.bessel_ratio(d, np.array([0.99999e6, 1.00001e6]))
    assert 0 < above - below < 1e-10


@pytest.mark.parametrize("d", [2, 3])
def test_mixture_field_against_quadrature(d: int) -> None:
    attention = Attention(query=np.eye(d), key=problem(d)[1], value=np.eye(d), beta=1.5)
    points, weights = sphere_rule(d)
    means, kappas, shares = unit(2, d), (2.0, 5.0), (0.6, 0.4)
    density = sum(
        share * np.exp(kappa * points @ m - float(exact_fields.log_partition(d, kappa)))
        for share, kappa, m in zip(shares, kappas, means, strict=True)
    )
    x = unit(6, d)
    kernel = np.exp(attention.tilts(x) @ points.T) * density * weights
    mean, log_normaliser = exact_fields.mixture_mean(attention, x, list(zip(shares, kappas, means, strict=True)))
    assert np.allclose(log_normaliser, np.log(kernel.sum(axis=1)), rtol=1e-10)
    assert np.allclose(mean, kernel @ points / kernel.sum(axis=1, keepdims=True), atol=1e-10)
    uniform, _ = exact_fields.von_mises_fisher_mean(attention, x)
    plain = np.exp(attention.tilts(x) @ points.T) * weights
    assert np.allclose(uniform, plain @ points / plain.sum(axis=1, keepdims=True), atol=1e-10)


def test_log_partition_is_finite_and_small_at_small_kappa() -> None:
    assert float(exact_fields.log_partition(3, 1e-6)) == pytest.approx(1e-12 / 6, rel=1e-6)
    assert float(exact_fields.log_partition(3, 0.0)) == 0.0
    assert np.isfinite(exact_fields.log_partition(3, 1e6))
    assert float(exact_fields.log_partition(2, 1e5)) == pytest.approx(1e5 - 0.5 * np.log(2 * np.pi * 1e5), rel=1e-9)


def particles(attention: Attention, x: np.ndarray, t: float) -> np.ndarray:
    """The N-token equation, written out anew."""
    n, d = x.shape

    def rate(_: float, flat: np.ndarray) -> np.ndarray:
        y = flat.reshape(n, d)
        logits = attention.beta * (y @ attention.query.T) @ (y @ attention.key.T).T
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        image = (weight @ y / weight.sum(axis=1, keepdims=True)) @ attention.value.T
        return (image - np.sum(image * y, axis=1, keepdims=True) * y).ravel()

    return solve_ivp(rate, (0, t), x.ravel(), rtol=1e-11, atol=1e-13, method="DOP853").y[:, -1].reshape(n, d)


def test_reduced_dynamics_against_particles() -> None:
    V, key = RANDOM.normal(size=(3, 3)), RANDOM.normal(size=(3, 3)) + np.eye(3)
    attention = Attention(query=np.eye(3), key=key, value=V, beta=1.3)
    x = unit(1, 3)
    assert np.allclose(particles(attention, x, 0.8)[0], exact_fields.one_token(V, x[0], 0.8), atol=1e-9)
    pair = np.concatenate([x, -x])
    expected = exact_fields.antipodal_pair(attention, x[0], np.array([0.0, 0.8]))[-1]
    assert np.allclose(particles(attention, pair, 0.8)[0], expected, atol=1e-8)
    n, c, beta = 4, 0.1, 2.0
    gram = np.full((n, n), c) + (1 - c) * np.eye(n)
    tokens = np.linalg.cholesky(gram)
    moved = particles(Attention(query=np.eye(n), key=np.eye(n), value=np.eye(n), beta=beta), tokens, 1.0)
    cosine = exact_fields.simplex_cosine(n, beta, c, np.array([0.0, 1.0]))[-1]
    assert np.allclose(moved @ moved.T - np.eye(n), cosine * (1 - np.eye(n)), atol=1e-8)


@pytest.mark.parametrize("d", [2, 3])
def test_poisson_family_is_invariant_at_beta_zero(d: int) -> None:
    r, e = 0.4, unit(1, d)[0]
    points, weights = sphere_rule(d, 60)
    area = 2 * np.pi if d == 2 else 4 * np.pi
    density = exact_fields.poisson_density(d, r, e, points) * area
    mean = (weights * density) @ points
    assert weights @ density == pytest.approx(1.0, abs=1e-10)
    assert np.allclose(mean, float(exact_fields.poisson_mean(d, r)) * e, atol=1e-10)
    assert float(exact_fields.poisson_mean(d, 1e-2)) == pytest.approx(
        float(exact_fields.poisson_mean(d, 0.99999e-2)), rel=2e-5
    )
    x, step = unit(5, d), 1e-4
    forward, backward = exact_fields.poisson_radius(d, r, np.array([0.0, step])), r
    slope = (forward[-1] - backward) / step
    growth = (
        (exact_fields.poisson_density(d, r + 1e-6, e, x) - exact_fields.poisson_density(d, r - 1e-6, e, x))
        / 2e-6
        * slope
    )

    def flux(y: np.ndarray) -> np.ndarray:
        return exact_fields.poisson_density(d, r, e, y)[:, None] * (mean - (y @ mean)[:, None] * y)

    assert np.allclose(growth, -extended(flux, d, x), atol=2e-4)


def planar(x: np.ndarray) -> np.ndarray:
    return (1 + 0.4 * x[..., 0] + 0.3 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]) / (2 * np.pi)


def test_plateau_formulas() -> None:
    line = Projection(np.diag([1.0, -0.6]))
    # Theory §1.4: .0398 on S¹; (μ1/2γβ)∮∂_eρ0 dS = 1/(2·1.6) · 2·.4/2π.
    assert exact_plateau.plateau_shift(line, planar) == pytest.approx(0.8 / (2 * np.pi) / 3.2, rel=1e-9)
    assert exact_plateau.plateau_shift_general(line, np.eye(2), planar) == pytest.approx(0.0397887, rel=1e-6)
    Q = np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]

    def start(x: np.ndarray) -> np.ndarray:
        y = x @ Q
        return (1 + 0.4 * y[..., 0] + 0.3 * y[..., 1] + 0.3 * y[..., 0] * y[..., 1]) / (4 * np.pi)

    sphere = Projection(Q @ np.diag([1.0, 0.3, -0.6]) @ Q.T)
    expected = exact_plateau.plateau_shift(sphere, start)
    assert exact_plateau.plateau_shift_general(sphere, np.eye(3), start, points=64) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(InputError, match="dim E = 1"):
        exact_plateau.plateau_shift(Projection(np.diag([1.0, 1.0, 0.0])), start)
    assert exact_plateau.plateau_distance(0.04, 160.0) == pytest.approx(2 * np.sqrt(0.04 / 160))


def test_asymmetric_m_is_refused() -> None:
    with pytest.raises(InputError, match="symmetric"):
        zero.projective_flow(np.array([[1.0, 0.5], [0.0, 1.0]]), 1.0, unit(2, 2))
    with pytest.raises(InputError, match="singular"):
        zero.projective_time(np.eye(2), np.array([[1.0, 0.0], [0.0, 0.0]]), unit(2, 2), 1.0)
