"""Profiles, gauges and mixings against quadrature, matrix identities and the formulas of the second document."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tokensphere.meshes import labels
from tokensphere.meshes.errors import InputError
from tokensphere.pde import gauge, kernels
from tokensphere.pde.joint_field import mixing

EXPONENTIAL = kernels.Exponential(2.0, "1/beta")


@pytest.mark.parametrize("profile", [kernels.Linear(), EXPONENTIAL, kernels.Exponential(30.0, "exp(-beta)/beta")])
def test_eigenvalues_are_those_of_funk_and_hecke(profile: kernels.Linear | kernels.Exponential) -> None:
    s, w = np.polynomial.legendre.leggauss(200)
    on_sphere = [0.5 * w @ (profile.value(s) * np.polynomial.legendre.Legendre.basis(l)(s)) for l in range(9)]  # noqa: E741
    assert np.allclose(profile.eigenvalues(3, 8), on_sphere, atol=1e-12 * max(on_sphere))
    angles = 2 * np.pi * np.arange(400) / 400
    on_circle = [np.mean(profile.value(np.cos(angles)) * np.cos(l * angles)) for l in range(9)]  # noqa: E741
    assert np.allclose(profile.eigenvalues(2, 8), on_circle, atol=1e-12 * max(on_circle))


@pytest.mark.parametrize("dimension", [2, 3])
def test_degree_covers_the_profile(dimension: int) -> None:
    for beta in (0.1, 1.0, 10.0, 300.0):
        profile = kernels.Exponential(beta, "exp(-beta)/beta")
        degree = profile.degree(dimension, 1e-12)
        beyond = profile.eigenvalues(dimension, degree + 40)
        assert (np.arange(degree + 1, degree + 41) * beyond[degree + 1 :]).max() < 1e-12 * beyond[0]


def test_the_factor_is_the_time_unit() -> None:
    one, per_beta, damped = (kernels.Exponential(3.0, factor) for factor in ("1", "1/beta", "exp(-beta)/beta"))
    s = np.linspace(-1, 1, 5)
    assert np.allclose(one.value(s), np.exp(3 * s), rtol=1e-14)
    assert np.allclose(per_beta.derivative(s), np.exp(3 * s), rtol=1e-14)
    assert np.allclose(damped.derivative(s), np.exp(3 * (s - 1)), rtol=1e-14)
    assert kernels.Exponential(5000.0, "exp(-beta)/beta").derivative(np.ones(1))[0] == pytest.approx(1)
    with pytest.raises(InputError, match=r"exp\(-beta\)/beta"):
        kernels.Exponential(5000.0, "1/beta")


def test_rope_rotates_by_plus_frequency_times_the_label() -> None:
    space = labels.finite([1, 1], points=[0.0, 0.5])
    turn = kernels.rope(frequency=2.0, profile=EXPONENTIAL).gauge(space, 3)
    assert turn is not None
    assert np.allclose(turn[1] @ [1, 0, 0], [math.cos(1.0), math.sin(1.0), 0])
    assert np.allclose(turn[1] @ [0, 0, 1], [0, 0, 1])
    flat = kernels.rope(frequency=2.0, profile=EXPONENTIAL).gauge(space, 2)
    assert flat is not None
    assert np.allclose(flat[1] @ [1, 0], [math.cos(1.0), math.sin(1.0)])


def test_rotations_agree_with_scipy() -> None:
    axis, angles = np.array([1.0, -2.0, 0.5]), np.linspace(-3, 3, 7)
    expected = Rotation.from_rotvec(angles[:, None] * axis / np.linalg.norm(axis)).as_matrix()
    assert np.allclose(gauge.axis_rotations(angles, axis), expected, atol=1e-14)
    e3 = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 0]])
    e1 = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    curve = gauge.exponentials([e3, e1])(angles)
    expected = Rotation.from_euler("ZX", np.stack([angles, angles], axis=1)).as_matrix()
    assert np.allclose(curve, expected, atol=1e-13)


def test_householder_takes_every_target_to_the_pole() -> None:
    random = np.random.default_rng(0)
    targets = random.normal(size=(20, 3))
    targets /= np.linalg.norm(targets, axis=1, keepdims=True)
    targets[0] = [0, 0, 1]
    targets[1] = [0, 0, -1]
    pole = np.array([0.0, 0.0, 1.0])
    matrices = gauge.householder(targets, pole)
    assert np.allclose(np.einsum("nij,nj->ni", matrices, targets), pole, atol=1e-14)
    assert np.allclose(matrices @ matrices, np.eye(3), atol=1e-14)


def test_distance_bias_uses_the_arc_and_toeplitz_its_cosines() -> None:
    circle = labels.circle(6)
    b = kernels.distance_bias(0.7, EXPONENTIAL).mixing(circle)
    assert b[0, 5] == pytest.approx(math.exp(-np.pi / 3 / 0.7))
    kappa = kernels.toeplitz(EXPONENTIAL, cosines=[(0, 0.6), (1, 1.0)]).mixing(circle)
    assert kappa[0, 3] == pytest.approx(-0.4)
    assert np.allclose(kappa, kernels.toeplitz(EXPONENTIAL, even=lambda s: 0.6 + np.cos(s)).mixing(circle))


def test_mixing_has_the_rank_of_the_kernel_and_rebuilds_it() -> None:
    circle = labels.circle(16)
    for kernel, rank in [
        (kernels.usa(EXPONENTIAL), 1),
        (kernels.toeplitz(EXPONENTIAL, cosines=[(1, 1.0)]), 2),
        (kernels.toeplitz(EXPONENTIAL, cosines=[(0, -0.3), (2, 0.5)]), 3),
        (kernels.distance_bias(0.3, EXPONENTIAL), 16),
    ]:
        parts = mixing(circle, kernel)
        assert len(parts.values) == rank
        assert parts.shared == (kernel.name == "usa")
        rebuilt = parts.vectors * parts.values @ parts.vectors.T
        assert np.allclose(rebuilt, kernel.mixing(circle), atol=1e-13)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: kernels.Exponential(0.0), "above 0"),
        (lambda: kernels.Exponential(1.0, "beta"), "1/beta"),
        (lambda: kernels.rope(np.inf, EXPONENTIAL), "finite"),
        (lambda: kernels.rope(1.0, EXPONENTIAL, axis=(0, 0, 0)).gauge(labels.circle(3), 3), "non-zero"),
        (lambda: kernels.generalised_rope(EXPONENTIAL), "generators or a rotation"),
        (lambda: kernels.generalised_rope(EXPONENTIAL, generators=[np.eye(3)]), "skew-symmetric"),
        (lambda: kernels.generalised_rope(EXPONENTIAL, generators=[]), "at least one"),
        (lambda: kernels.prefix(np.ones((3, 3, 3)), EXPONENTIAL).gauge(labels.circle(3), 3), "label 0 is not orth"),
        (lambda: kernels.prefix(np.eye(3)[None], EXPONENTIAL).gauge(labels.circle(2), 3), "2 labels"),
        (lambda: kernels.distance_bias(-1.0, EXPONENTIAL), "above 0"),
        (lambda: kernels.nonnegative_bias(np.cos, EXPONENTIAL).mixing(labels.circle(4)), "use toeplitz"),
        (lambda: kernels.toeplitz(EXPONENTIAL), "cosines or an even"),
        (lambda: kernels.toeplitz(EXPONENTIAL, even=np.sin).mixing(labels.circle(5)), "not symmetric"),
    ],
)
def test_bad_kernels_are_refused_in_one_sentence(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()  # type: ignore[operator]
