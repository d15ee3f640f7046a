"""The Laplace principle against von Mises–Fisher closed forms."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ive

from tokensphere.meshes.circle import circle
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.validation.exact_fields import von_mises_fisher_mean
from tokensphere.validation.laplace import attention_limit_errors, laplace_principle

Array = NDArray[np.float64]
AXIS, SHARPNESS = np.array([0.6, 0.0, 0.8]), 3.0
INTERACTION = np.array([[1.2, 0.1, 0.0], [0.0, 0.8, 0.3], [0.2, 0.0, 1.0]])
VALUE = np.array([[1.0, 0.2, 0.0], [0.0, 0.3, 0.0], [0.1, 0.0, -0.5]])


def points() -> Array:
    x = np.random.default_rng(3).normal(size=(200, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def errors(beta: float) -> tuple[Array, Array, Array, Array]:
    """The four quantities with the exact mean and the exact ∇log ρ = κ0 P m."""
    attention, x = Attention(np.eye(3), INTERACTION, VALUE, beta), points()
    mean, _ = von_mises_fisher_mean(attention, x, SHARPNESS, AXIS)
    targets = attention.directions(x)
    slopes = SHARPNESS * (AXIS - (targets @ AXIS)[:, None] * targets)
    return attention_limit_errors(attention, x, mean, slopes)


def test_the_expansion_leaves_a_second_order_remainder() -> None:
    remainders, widths = [], []
    for beta in (200.0, 400.0):
        difference, expansion, distance, leading = errors(beta)
        remainders.append(np.linalg.norm(difference - expansion, axis=1).max())
        widths.append(np.abs(distance / leading - 1).max())
        assert np.linalg.norm(difference, axis=1).max() > 10 * remainders[-1]
    assert np.log2(remainders[0] / remainders[1]) == pytest.approx(2.0, abs=0.1)
    assert np.log2(widths[0] / widths[1]) == pytest.approx(1.0, abs=0.1)


def test_the_measured_rows_are_those_of_the_closed_form() -> None:
    mesh, axis = circle(256), np.array([0.6, 0.8])
    rho = densities.von_mises_fisher(mesh, axis, 2.0)
    attention = Attention(np.eye(2), np.diag([1.0, 0.8]), np.diag([1.0, -0.6]), 1.0)
    betas = [20.0, 80.0]
    for row in laplace_principle(mesh, attention, rho, betas):
        warm = Attention(np.eye(2), np.diag([1.0, 0.8]), np.diag([1.0, -0.6]), row.beta)
        mean, _ = von_mises_fisher_mean(warm, mesh.centers, 2.0, axis)
        targets = warm.directions(mesh.centers)
        gap = (mean - targets) @ warm.value.T
        gap -= np.sum(gap * mesh.centers, axis=1, keepdims=True) * mesh.centers
        assert row.velocity_error == pytest.approx(np.linalg.norm(gap, axis=1).max(), rel=2e-3)
        distance = np.sqrt(2 - 2 * np.sum(mean * targets, axis=1)).max()
        assert row.distance == pytest.approx(distance, rel=2e-3)
        assert row.distance_expansion == pytest.approx(np.sqrt(1 / (0.8 * row.beta)), rel=1e-3)


def test_narrow_kernels_go_to_a_finer_level() -> None:
    mesh = circle(64)
    attention = Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), 1.0)
    diagonal = np.array([[1.0, 1.0]]) / np.sqrt(2)
    found = laplace_principle(mesh, attention, densities.uniform(mesh), [10.0, 100.0, 1000.0], diagonal)
    assert [row.levels for row in found] == [0, 1, 2]
    # at the uniform density the velocities differ by (1 − A_2(β)) P V x, and |P V x| = .8 on the diagonal
    for row in found[:2]:
        assert row.velocity_error == pytest.approx((1 - ive(1, row.beta) / ive(0, row.beta)) * 0.8, rel=1e-6)
