"""Initial densities: masses, closed-form moments, and every kind of bad input."""

import healpy
import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import densities

SPHERE, CIRCLE = healpix(16), circle(256)
# The unit vector at which the tests look.
AXIS = np.array([0.48, -0.6, 0.64])


def mean(mesh, density):
    return (density * mesh.areas) @ mesh.centers


@pytest.mark.parametrize("mesh", [SPHERE, CIRCLE], ids=repr)
def test_uniform(mesh):
    density = densities.uniform(mesh)
    assert density @ mesh.areas == pytest.approx(1, abs=1e-14)
    assert np.ptp(density) == 0


def test_polynomial_has_the_closed_form_average():
    """∫(1 + ⟨a,x⟩ + ⟨x,Ax⟩)dS/4π = 1 + tr A/3 and mean a/3 of that."""
    matrix = np.array([[0.3, 0.1, 0], [0.1, 0.2, 0], [0, 0, -0.1]])
    density = densities.polynomial(SPHERE, 1.0, [0.1, 0.3, 0.4], matrix)
    scale = 1 + np.trace(matrix) / 3
    np.testing.assert_allclose(mean(SPHERE, density), np.array([0.1, 0.3, 0.4]) / 3 / scale, atol=2e-4)
    pole = np.argmax(SPHERE.centers @ [0, 0, 1.0])
    x = SPHERE.centers[pole]
    expected = (1 + x @ [0.1, 0.3, 0.4] + x @ matrix @ x) / scale / (4 * np.pi)
    assert density[pole] == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize(
    ("mesh", "kappa", "length"),
    [(SPHERE, 5.0, 1 / np.tanh(5.0) - 1 / 5), (SPHERE, 40.0, 1 / np.tanh(40.0) - 1 / 40), (CIRCLE, 3.0, None)],
    ids=["sphere 5", "sphere 40", "circle 3"],
)
def test_von_mises_fisher_mean_is_A_of_kappa(mesh, kappa, length):
    from scipy.special import ive

    direction = AXIS if mesh is SPHERE else np.array([0.6, 0.8])
    expected = ive(1, kappa) / ive(0, kappa) if length is None else length
    found = mean(mesh, densities.von_mises_fisher(mesh, 3 * direction, kappa))
    # A cell's mass sits at its centre: the mean is off by O(h²).
    np.testing.assert_allclose(found, expected * direction, atol=mesh.width**2 / 2)


def test_mixture_weighs_its_parts():
    parts = [densities.von_mises_fisher(SPHERE, AXIS, 5), densities.uniform(SPHERE)]
    mixed = densities.mixture(SPHERE, [(3.0, parts[0]), (1.0, parts[1])])
    np.testing.assert_allclose(mixed, 0.75 * parts[0] + 0.25 * parts[1], rtol=1e-12)


@pytest.mark.parametrize("nside", [4, 16, 64])
def test_healpix_maps_in_either_order_and_at_any_level(nside):
    ring = 1 + np.array(healpy.pix2vec(nside, np.arange(12 * nside**2))).T @ AXIS / 2
    nested = healpy.reorder(ring, r2n=True)
    from_ring = densities.from_healpix_map(SPHERE, ring, "ring")
    np.testing.assert_array_equal(from_ring, densities.from_healpix_map(SPHERE, nested, "nested"))
    np.testing.assert_allclose(mean(SPHERE, from_ring), AXIS / 6, atol=2e-2)


@pytest.mark.parametrize("mesh", [SPHERE, CIRCLE], ids=repr)
def test_particles_are_smoothed_by_the_stated_kernel(mesh):
    """One token gives the von Mises–Fisher density itself; many keep their weighted mean times A(κ)."""
    axis = AXIS if mesh is SPHERE else np.array([0.6, 0.8])
    kappa = 20.0
    one = densities.from_particles(mesh, axis[None], concentration=kappa)
    exact = densities.von_mises_fisher(mesh, axis, kappa)
    # Values at centres against averages over cells: O(κ h²) of the peak.
    assert np.abs(one - exact).max() < kappa * mesh.width**2 * exact.max()
    assert np.abs(one - exact) @ mesh.areas < kappa * mesh.width**2
    tokens = np.random.default_rng(0).normal(size=(500, mesh.dimension))
    tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
    weights = np.random.default_rng(1).random(500)
    many = densities.from_particles(mesh, tokens, weights)
    width = densities.smoothing_concentration(mesh, 500) ** -0.5
    assert width == max(1.5 * mesh.width, 500 ** (-1 / (mesh.dimension + 3)))
    difference = mean(mesh, many) - weights @ tokens / weights.sum()
    assert np.linalg.norm(difference) < width**2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: densities.from_function(SPHERE, lambda x: np.full(x.shape[:-1], np.nan)), "finite"),
        (lambda: densities.from_function(SPHERE, lambda x: x[..., 2]), "negative"),
        (lambda: densities.from_function(SPHERE, lambda x: 0 * x[..., 2]), "zero everywhere"),
        (lambda: densities.normalised(SPHERE, np.ones(7)), "a value a cell"),
        (lambda: densities.normalised(SPHERE, np.full(SPHERE.cells, np.inf)), "finite"),
        (lambda: densities.polynomial(SPHERE, 1.0, [0.1, 0.3]), "linear"),
        (lambda: densities.polynomial(SPHERE, 1.0, [2.0, 0, 0]), "negative"),
        (lambda: densities.polynomial(SPHERE, 1.0, quadratic=np.ones((2, 2))), "quadratic"),
        (lambda: densities.von_mises_fisher(SPHERE, [0, 0, 0], 1.0), "zero vector"),
        (lambda: densities.von_mises_fisher(SPHERE, [0, 0, 1], -1.0), "concentration"),
        (lambda: densities.mixture(SPHERE, []), "at least one"),
        (lambda: densities.mixture(SPHERE, [(-1.0, densities.uniform(SPHERE))]), "weights"),
        (lambda: densities.from_healpix_map(SPHERE, np.ones(12 * 9)), "power of two"),
        (lambda: densities.from_healpix_map(SPHERE, np.ones(48), "nest"), '"ring" or "nested"'),
        (lambda: densities.from_healpix_map(SPHERE, np.r_[np.ones(47), healpy.UNSEEN]), "UNSEEN"),
        (lambda: densities.from_healpix_map(CIRCLE, np.ones(48)), "HEALPix mesh"),
        (lambda: densities.from_particles(SPHERE, [[1.0, 0, 0], [1.0, 0.1, 0]]), "token 1"),
        (lambda: densities.from_particles(SPHERE, [[np.nan, 0, 0]]), "token 0"),
        (lambda: densities.from_particles(SPHERE, np.ones((3, 2))), "tokens have shape"),
        (lambda: densities.from_particles(SPHERE, [[1.0, 0, 0]], weights=[-1.0]), "weights"),
        (lambda: densities.from_particles(SPHERE, [[1.0, 0, 0]], concentration=0.0), "concentration"),
    ],
)
def test_bad_input_costs_one_sentence(make, words):
    """P05, P10: refused at the border, saying what was given and what is allowed."""
    with pytest.raises(InputError, match=words) as failure:
        make()
    assert str(failure.value).endswith(".")
    assert "\n" not in str(failure.value)
