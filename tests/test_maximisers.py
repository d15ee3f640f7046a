"""Maximal energies of theory §2.3 found again by ascent from random starts."""

import math

import numpy as np
import pytest
from scipy.special import iv

from tokensphere.meshes import labels
from tokensphere.meshes.errors import InputError
from tokensphere.pde import kernels
from tokensphere.validation.exact_joint import distance_bias_energy, partial_period_mean
from tokensphere.validation.maximisers import graph_energy, maximal_energy, search
from tokensphere.validation.order_parameters import recognise

CIRCLE = labels.circle(32)


def cosine(beta: float) -> kernels.Kernel:
    return kernels.toeplitz(kernels.Exponential(beta), cosines=[(1, 1.0)])


def test_rope_maximisers_are_orbits_of_one_point() -> None:
    """Fact 2: E = g(1)/2 and u = Q(ξ)x is constant; x* runs round a latitude circle."""
    kernel = kernels.rope(1.0, kernels.Exponential(2.0, "1/beta"))
    found = search(CIRCLE, kernel, 3, np.random.default_rng(0), restarts=2)
    assert found.energy == pytest.approx(math.exp(2) / 4, rel=1e-12)
    assert maximal_energy(CIRCLE, kernel, 3).energy == pytest.approx(math.exp(2) / 4, rel=1e-14)
    assert found.shape.name == "latitude circle"
    turns = kernel.gauge(CIRCLE, 3)
    assert turns is not None
    assert np.ptp(np.einsum("lij,lj->li", turns, found.points), axis=0).max() < 1e-6
    assert np.linalg.norm(CIRCLE.weights @ found.points) == pytest.approx(found.shape.height, abs=1e-9)


def test_partial_period_mean() -> None:
    """Fact 12: labels on an arc of length Φ."""
    arc, turn, colatitude = labels.gauss_interval(24), 4.0, 1.1
    kernel = kernels.rope(turn, kernels.Linear())
    turns = kernel.gauge(arc, 3)
    assert turns is not None
    points = np.array([math.sin(colatitude), 0, math.cos(colatitude)]) @ turns
    assert graph_energy(arc, kernel, points) == pytest.approx(0.5, rel=1e-13)
    assert np.sum((arc.weights @ points) ** 2) == pytest.approx(partial_period_mean(colatitude, turn), rel=1e-12)


def test_linear_toeplitz_follows_its_largest_fourier_coefficient() -> None:
    """Fact 8: cos gives a great circle at E = 1/4; a change of sign alone is not enough: .6 + cos gives a Dirac."""
    for cosines, energy, shape in [
        ([(1, 1.0)], 0.25, "great circle"),
        ([(3, 1.0)], 0.25, "great circle"),
        ([(0, 0.6), (1, 1.0)], 0.3, "Dirac"),
        ([(0, 0.3), (1, 1.0)], 0.25, "great circle"),
    ]:
        kernel = kernels.toeplitz(kernels.Linear(), cosines=cosines)
        found = search(CIRCLE, kernel, 3, np.random.default_rng(1), restarts=2)
        known = maximal_energy(CIRCLE, kernel, 3)
        assert known.energy == pytest.approx(energy, rel=1e-12)
        assert found.energy == pytest.approx(energy, rel=1e-12)
        assert found.shape.name == known.shape == shape


def test_local_rates_at_the_great_circle() -> None:
    """Fact 8: the second variation at the cosine maximiser has rates 0 (three times), −1/4 and −1/2."""
    kernel, n = kernels.toeplitz(kernels.Linear(), cosines=[(1, 1.0)]), 16
    space = labels.circle(n)
    angles = space.points
    points = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    tangents = np.stack([np.stack([-np.sin(angles), np.cos(angles), 0 * angles], 1), np.tile([0, 0, 1.0], (n, 1))], 1)

    def velocity(x: np.ndarray) -> np.ndarray:
        pull = (kernel.mixing(space) * space.weights) @ x
        return pull - np.sum(pull * x, axis=1, keepdims=True) * x

    jacobian = np.zeros((2 * n, 2 * n))
    for column in range(2 * n):
        moved = [points.copy(), points.copy()]
        for sign, x in zip((1e-6, -1e-6), moved, strict=True):
            x[column // 2] += sign * tangents[column // 2, column % 2]
            x /= np.linalg.norm(x, axis=1, keepdims=True)
        slope = (velocity(moved[0]) - velocity(moved[1])) / 2e-6
        jacobian[:, column] = np.einsum("lkd,ld->lk", tangents, slope).ravel()
    rates = np.sort(np.linalg.eigvals(jacobian).real)
    assert np.allclose(rates[-3:], 0, atol=1e-8)
    assert np.abs(rates[:, None] - [0, -0.25, -0.5]).min(axis=1).max() < 1e-8
    assert {round(4 * r) for r in rates} == {0, -1, -2}


@pytest.mark.parametrize(
    ("beta", "energy", "height", "shape"),
    [
        (1.0, iv(1, 1.0) / 2, 0.0, "great circle"),
        (1.56, 0.10954599 * math.exp(1.56), math.sqrt(1 - 1.5451273 / 1.56), "latitude circle"),
        (1.58, 0.10954599 * math.exp(1.58), math.sqrt(1 - 1.5451273 / 1.58), "latitude circle"),
    ],
)
def test_cosine_exponential_leaves_the_great_circle(beta: float, energy: float, height: float, shape: str) -> None:
    """Fact 9: a great circle below β = 1.5451, a latitude circle up to about 1.61."""
    found = search(CIRCLE, cosine(beta), 3, np.random.default_rng(2), restarts=10)
    assert maximal_energy(CIRCLE, cosine(beta), 3).energy is None
    assert found.energy == pytest.approx(energy, rel=1e-7)
    assert np.linalg.norm(CIRCLE.weights @ found.points) == pytest.approx(height, abs=1e-4)
    # The latitude circle is so close to the equator that the default tolerance of .05 would round it.
    assert recognise(found.points, CIRCLE.weights, 0.02).name == shape


def test_cosine_exponential_beyond_the_latitude_circle() -> None:
    """Fact 9: beyond β ≈ 1.61 non-uniform curves beat both circles."""
    found = search(CIRCLE, cosine(1.8), 3, np.random.default_rng(3), restarts=6)
    assert found.energy > 0.10954599 * math.exp(1.8) + 0.005
    assert found.shape.name.startswith("non-uniform")
    assert found.gradient < 1e-5


def test_distance_bias_collapses_with_its_closed_energy() -> None:
    """Fact 10."""
    profile, space = kernels.Exponential(1.0), labels.interval(64)
    kernel = kernels.distance_bias(0.3, profile)
    found = search(space, kernel, 3, np.random.default_rng(4), restarts=1)
    assert found.shape.name == "Dirac"
    assert found.energy == pytest.approx(distance_bias_energy(profile, 0.3), rel=1e-3)
    exact = distance_bias_energy(profile, 0.3)
    errors = []
    for count in (64, 128):
        energy = maximal_energy(labels.interval(count), kernel, 3).energy
        assert energy is not None
        errors.append(energy - exact)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.05)
    assert errors[1] < 2e-4 * exact


def test_no_graph_law_maximises_repulsion_on_one_atom() -> None:
    """Fact 3, negative: for h = −e^{β⟨x,y⟩} and one label the uniform law beats every Dirac."""
    beta, atom = 2.0, labels.finite([1.0])
    kernel = kernels.toeplitz(kernels.Exponential(beta), cosines=[(0, -1.0)])
    found = search(atom, kernel, 3, np.random.default_rng(5), restarts=2)
    assert found.energy == pytest.approx(-math.exp(beta) / 2, rel=1e-12)
    uniform = -0.5 * math.sinh(beta) / beta
    assert uniform > found.energy + 1
    assert maximal_energy(atom, kernel, 3).energy is None


def test_shapes_are_named_by_their_plane() -> None:
    t = 2 * np.pi * np.arange(40) / 40
    even = np.full(40, 1 / 40)
    ring = np.stack([np.cos(t), np.sin(t), 0 * t], axis=1)
    assert recognise(ring, even).name == "great circle"
    low = np.stack([0.8 * np.cos(t), 0.8 * np.sin(t), 0.6 + 0 * t], axis=1)
    named = recognise(low, even)
    assert (named.name, named.height) == ("latitude circle", pytest.approx(0.6))
    assert recognise(low, (1 + 0.5 * np.cos(t)) / 40).name == "non-uniform latitude circle"
    wave = np.stack([np.cos(t), np.sin(t), 0.5 * np.cos(3 * t)], axis=1)
    assert recognise(wave / np.linalg.norm(wave, axis=1, keepdims=True), even).name == "curve"
    assert recognise(np.tile([0, 0.6, 0.8], (40, 1)), even).name == "Dirac"


def test_search_needs_a_start() -> None:
    with pytest.raises(InputError, match="0 restarts"):
        search(CIRCLE, cosine(1.0), 3, np.random.default_rng(0), restarts=0)
