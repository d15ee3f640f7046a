"""Where mesh and attention meet: fields against closed forms, narrow kernels, unnormalised attention."""

import logging

import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.pde.attention import Attention
from tokensphere.pde.densities import polynomial, uniform
from tokensphere.pde.flux import normal_speeds
from tokensphere.pde.problem import AttentionFlow

# Q, K, V without any symmetry.
QUERY = np.eye(3)
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
VALUE = np.array([[1.0, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])


def field_at_uniform(mesh, attention):
    """v = A_3(β|Bᵀx|) V Bᵀx/|Bᵀx| before projection, A_3(κ) = coth κ − 1/κ (theory 1.4)."""
    tilts = attention.tilts(mesh.face_points)
    kappa = np.linalg.norm(tilts, axis=1, keepdims=True)
    return (1 / np.tanh(kappa) - 1 / kappa) * (tilts / kappa) @ attention.value.T


@pytest.mark.parametrize("beta", [3.0, 30.0])
def test_speeds_at_the_uniform_density(beta):
    mesh = healpix(16)
    attention = Attention(QUERY, KEY, VALUE, beta)
    found = AttentionFlow(mesh, attention).field(uniform(mesh)).speeds
    exact = normal_speeds(mesh, field_at_uniform(mesh, attention))
    assert np.abs(found - exact).max() < mesh.width**2 * np.abs(exact).max()


def test_unnormalised_speeds_carry_the_normaliser():
    """USA at the uniform density: F = sinh κ/κ."""
    mesh = healpix(16)
    attention = Attention(QUERY, KEY, VALUE, 3.0, normalised=False)
    kappa = np.linalg.norm(attention.tilts(mesh.face_points), axis=1, keepdims=True)
    exact = normal_speeds(mesh, np.sinh(kappa) / kappa * field_at_uniform(mesh, attention))
    found = AttentionFlow(mesh, attention).field(uniform(mesh)).speeds
    assert np.abs(found - exact).max() < 2 * mesh.width**2 * np.abs(exact).max()


@pytest.mark.parametrize("beta", [2000.0])
def test_a_kernel_narrower_than_a_cell_is_integrated_on_finer_levels(beta):
    """P29: with V = I the velocity is the drift ∇_S log ρ/β alone; cells taken as points miss it altogether."""
    mesh = healpix(16)
    density = polynomial(mesh, 1.0, [0.0, 0.0, 0.5])
    x = mesh.face_points
    drift = 0.5 * (np.array([0, 0, 1.0]) - x[:, 2:] * x) / (1 + 0.5 * x[:, 2:]) / beta
    lengths = np.linalg.norm(mesh.face_normals, axis=1)
    flow = AttentionFlow(mesh, Attention(np.eye(3), np.eye(3), np.eye(3), beta))
    assert flow.levels > 0
    scale = np.linalg.norm(drift, axis=1).max()

    def error():
        return (np.abs(flow.field(density).speeds - normal_speeds(mesh, drift)) / lengths).mean() / scale

    resolved = error()
    flow.levels = 0
    del flow._integral
    assert resolved < 0.02
    assert error() > 20 * resolved


def test_a_kernel_too_narrow_for_any_level_is_warned_about(caplog):
    with caplog.at_level(logging.WARNING):
        AttentionFlow(circle(8), Attention(np.eye(2), np.eye(2), np.eye(2), 1e6))
    assert "narrower than the cells" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        AttentionFlow(healpix(8), Attention(np.eye(3), np.eye(3), np.eye(3), 10.0))
        AttentionFlow(healpix(8), Attention(np.eye(3), np.eye(3), np.eye(3), np.inf))
    assert not caplog.text


def test_factors_may_move_between_query_and_key():
    """P28: only B = QᵀK matters."""
    mesh = healpix(4)
    density = polynomial(mesh, 1.0, [0.1, 0.3, 0.4])
    one = AttentionFlow(mesh, Attention(2 * QUERY, KEY, VALUE, 10.0)).field(density).speeds
    other = AttentionFlow(mesh, Attention(QUERY, 2 * KEY, VALUE, 10.0)).field(density).speeds
    np.testing.assert_array_equal(one, other)
    hotter = AttentionFlow(mesh, Attention(QUERY, KEY, VALUE, 20.0)).field(density).speeds
    np.testing.assert_allclose(one, hotter, rtol=1e-12, atol=1e-14)
