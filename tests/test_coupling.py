"""Both sides of the stability estimate."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.validation import exact_zero_temperature as zero
from tokensphere.validation.cases.theorem import attention_of, planar, solved
from tokensphere.validation.circular import circular_wasserstein
from tokensphere.validation.coupling import (
    coupling_estimate,
    covariant_gradient,
    gronwall,
    one_sided_constant,
    velocity_errors,
)

Array = NDArray[np.float64]
MATRIX = np.diag([1.0, 0.3, -0.5])
INTERACTION = np.array([[1.2, 0.1, 0.0], [0.0, 0.8, 0.3], [0.2, 0.0, 1.0]])


def points(count: int = 40) -> Array:
    x = np.random.default_rng(1).normal(size=(count, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_the_covariant_gradient_is_the_derivative_and_its_trace_the_divergence() -> None:
    x, step = points(), 1e-6
    found = covariant_gradient(MATRIX, INTERACTION, x)
    assert np.trace(found, axis1=1, axis2=2) == pytest.approx(zero.divergence(MATRIX, INTERACTION, x), abs=1e-12)
    for direction in np.eye(3):
        tangent = direction - (x @ direction)[:, None] * x
        ahead, behind = (x + s * step * tangent for s in (1, -1))
        ahead, behind = (y / np.linalg.norm(y, axis=1, keepdims=True) for y in (ahead, behind))
        change = (zero.velocity(MATRIX, INTERACTION, ahead) - zero.velocity(MATRIX, INTERACTION, behind)) / (2 * step)
        change -= np.sum(change * x, axis=1, keepdims=True) * x
        assert change == pytest.approx(np.einsum("nij,nj->ni", found, tangent), abs=1e-8)


def test_the_one_sided_constant_for_the_identity() -> None:
    # ∇v = P M P − ⟨x, Mx⟩P is largest at the eigenvector of the smallest μ, towards the largest: μ1 − μd
    x = np.concatenate([points(), np.eye(3)])
    assert one_sided_constant(MATRIX, np.eye(3), x) == pytest.approx(1.5)
    # everything contracts towards the top eigenvector: the largest eigenvalue there is negative
    assert one_sided_constant(MATRIX, np.eye(3), np.eye(3)[:1]) == pytest.approx(-0.7)


def test_trajectories_separate_no_faster_than_the_constant() -> None:
    x = points(200)
    constant = one_sided_constant(MATRIX, INTERACTION, points(4000))
    y = x + 1e-3 * np.random.default_rng(2).normal(size=x.shape)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    before = np.linalg.norm(x - y, axis=1)
    after = np.linalg.norm(zero.flow(MATRIX, INTERACTION, x, 0.5) - zero.flow(MATRIX, INTERACTION, y, 0.5), axis=1)
    assert np.all(after <= before * np.exp(0.5 * constant) * 1.01)
    assert np.max(after / before) > np.exp(0.25 * constant)


@pytest.mark.parametrize("constant", [0.0, 1e-5, 0.7, -1.5])
def test_gronwall_integral(constant: float) -> None:
    times = np.linspace(0, 2, 2001)
    found = gronwall(times, np.exp(-0.3 * times), constant)
    exact = (np.exp(constant * 2) - np.exp(-0.6)) / (constant + 0.3)
    assert found[0] == 0.0
    assert found[-1] == pytest.approx(exact, rel=1e-6)
    # exact for an ε linear in time, whatever the step
    coarse = gronwall(np.array([0.0, 0.5, 2.0]), np.array([1.0, 1.5, 3.0]), constant)
    fine = gronwall(times, 1 + times, constant)
    assert coarse[-1] == pytest.approx(fine[-1], rel=1e-9)


def test_the_velocity_error_of_the_uniform_density() -> None:
    mesh, beta = circle(256), 6.0
    attention = Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), beta)
    mean_square, largest = velocity_errors(mesh, attention, densities.uniform(mesh)[None])
    from scipy.special import ive

    short = 1 - ive(1, beta) / ive(0, beta)
    # |P_x M x| = .8 |sin 2θ|
    assert largest[0] == pytest.approx(0.8 * short, rel=1e-3)
    assert mean_square[0] == pytest.approx(0.8 * short / np.sqrt(2), rel=1e-3)


def test_the_estimate_holds_on_the_circle_and_is_not_empty() -> None:
    mesh, matrix, times = circle(256), np.diag([1.0, -0.6]), np.linspace(0, 1, 11)
    rho0 = densities.from_function(mesh, planar)
    cold = solved(mesh, attention_of(matrix, np.eye(2), np.inf), rho0, times)
    warm = attention_of(matrix, np.eye(2), 40.0)
    run = solved(mesh, warm, rho0, times)

    def distance(one: Array, other: Array) -> float:
        return circular_wasserstein(one * mesh.areas, other * mesh.areas)

    found = coupling_estimate(mesh, warm, times, run, cold, distance, 0.0)
    assert found.holds
    assert found.constant == pytest.approx(1.6, rel=1e-3)
    assert found.left[-1] > 0.2 * found.right[-1]
    # from one start the distance grows at the L² velocity error: left/right is near 1 at first where v^β−v^∞ is smooth
    assert 0.5 < found.left[1] / found.right[1] <= 1.0
    halved = coupling_estimate(mesh, warm, times, run, cold, lambda a, b: 3 * distance(a, b), 0.0)
    assert not halved.holds
