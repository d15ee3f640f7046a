"""Linear stability of the uniform density against theory §1.4, a growing Fourier mode, and a linear run."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv, spherical_in

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.harmonics import degrees_and_orders, synthesise
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.attention import Attention
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation.stability import (
    MeasuredRate,
    degree_amplitudes,
    dominant_degree,
    growth_rate,
    measured_rates,
)


@pytest.mark.parametrize("beta", [0.3, 2.0, 10.0])
@pytest.mark.parametrize("degree", [1, 2, 5])
def test_rates_are_the_bessel_formulas(degree: int, beta: float) -> None:
    circle_rate = degree**2 * iv(degree, beta) / (beta * iv(0, beta))
    assert growth_rate(2, degree, beta) == pytest.approx(circle_rate, rel=1e-12)
    plain = degree**2 * iv(degree, beta) / beta
    assert growth_rate(2, degree, beta, normalised=False) == pytest.approx(plain, rel=1e-12)
    bessel = spherical_in(degree, beta)
    laplacian = degree * (degree + 1)
    assert growth_rate(3, degree, beta, normalised=False) == pytest.approx(laplacian * bessel / beta, rel=1e-12)
    softmax = laplacian * bessel / (beta * spherical_in(0, beta))
    assert growth_rate(3, degree, beta, sign=-1) == pytest.approx(-softmax, rel=1e-12)


@pytest.mark.parametrize(
    ("dimension", "switches"), [(2, (1.044457, 3.165434, 6.211298)), (3, (1.816155, 4.425293, 7.962380))]
)
def test_dominant_degree_switches_where_theory_says(dimension: int, switches: tuple[float, ...]) -> None:
    for degree, expected in enumerate(switches, start=1):

        def difference(beta: float, degree: int = degree) -> float:
            return growth_rate(dimension, degree, beta) - growth_rate(dimension, degree + 1, beta)

        assert brentq(difference, 0.3, 12.0) == pytest.approx(expected, abs=1e-6)
        assert dominant_degree(dimension, expected - 0.01) == degree
        assert dominant_degree(dimension, expected + 0.01) == degree + 1


def test_dominant_degree_grows_like_the_root_of_two_beta() -> None:
    for beta in (200.0, 1000.0):
        assert dominant_degree(3, beta) == pytest.approx(np.sqrt(2 * beta), rel=0.05)


def test_zero_temperature_limits_and_refusals() -> None:
    assert growth_rate(2, 1, 1e-6) == pytest.approx(growth_rate(2, 1, 0.0), rel=1e-6)
    assert growth_rate(3, 1, 1e-6) == pytest.approx(growth_rate(3, 1, 0.0), rel=1e-6)
    assert growth_rate(3, 0, 2.0) == 0.0
    assert np.isfinite(growth_rate(3, 40, 1e6))
    for bad in ((4, 1, 1.0), (3, -1, 1.0), (3, 1, -1.0), (3, 1, np.inf)):
        with pytest.raises(InputError):
            growth_rate(*bad)


def test_amplitudes_of_the_circle_and_slopes() -> None:
    mesh, times = circle(64), np.linspace(0, 1, 6)
    angles = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    densities = (1 + 1e-3 * np.exp(0.7 * times)[:, None] * np.cos(3 * angles)) / (2 * np.pi)
    found = measured_rates(times, degree_amplitudes(mesh, densities, 3))
    assert isinstance(found[-1], MeasuredRate)
    assert found[-1].degree == 3
    assert found[-1].rate == pytest.approx(0.7, abs=1e-9)
    assert measured_rates(times, degree_amplitudes(mesh, densities, 3), largest=1e-5)[2:] == []


def test_the_field_of_a_perturbed_uniform_density_grows_at_the_rate() -> None:
    # d/dt of the coefficients is read off the divergence of the speeds: no time stepping, second order in the mesh
    degree, beta = 3, 5.0
    errors = []
    for nside in (8, 16):
        mesh = healpix(nside)
        degrees, orders = degrees_and_orders(degree)
        wave = np.where(degrees == degree, 1.0, 0.0) + 1j * np.where((degrees == degree) & (orders > 0), 0.5, 0.0)
        mode = cell_averages(mesh, lambda x, w=wave: synthesise(w, x.reshape(-1, 3), degree).reshape(x.shape[:-1]))
        rates = []
        for amplitude in (1e-4, -1e-4):
            density = (1 + amplitude * mode) / (4 * np.pi)
            speeds = AttentionFlow(mesh, Attention(np.eye(3), np.eye(3), np.eye(3), beta)).field(density).speeds
            faces = np.add.reduceat(speeds, mesh.face_offsets[:-1])
            divergence = (faces[mesh.cell_faces] * mesh.cell_signs).sum(axis=1) / mesh.areas
            rates.append(-(divergence @ (mode * mesh.areas)) / (amplitude * (mode**2 @ mesh.areas)))
        errors.append(abs(np.mean(rates) / growth_rate(3, degree, beta) - 1))
    assert errors[1] < 0.01
    assert errors[1] < 0.4 * errors[0]


def test_degree_amplitudes_on_the_sphere_see_only_the_degree_present() -> None:
    mesh, axis = healpix(16), np.array([2.0, -1.0, 2.0]) / 3
    density = cell_averages(mesh, lambda x: 1 + 0.1 * (3 * (x @ axis) ** 2 - 1))
    amplitudes = degree_amplitudes(mesh, density[None], 4)[0]
    # 3s²−1 = 2P_2(s), of norm 2√(4π/5) about any axis, and 1 has the norm √4π
    assert amplitudes[2] / amplitudes[0] == pytest.approx(0.2 / np.sqrt(5), rel=0.01)
    assert amplitudes[[1, 3]].max() < 1e-10
