"""Universality as constructions, checked before and after solving."""

import math

import numpy as np
import pytest

import tokensphere as ts
from tokensphere.pde.joint import product
from tokensphere.validation.cases.joint import three_bumps, two_bumps
from tokensphere.validation.maximisers import graph_energy, maximal_energy
from tokensphere.validation.universality import (
    distance_to_target,
    gauge_universality,
    orbit_universality,
    quantile,
)


def test_quantiles_invert_the_distribution_function() -> None:
    inverse = quantile(lambda angle: 1 + 0.5 * np.cos(angle))
    share = np.linspace(0, 1, 101)
    angle = inverse(share)
    assert np.allclose((angle + 0.5 * np.sin(angle)) / (2 * np.pi), share, atol=1e-7)
    gap = quantile(lambda angle: (np.abs(angle - np.pi) > 1).astype(float))
    assert np.abs(gap(np.linspace(0, 1, 1000)) - np.pi).min() > 0.99


def test_orbit_realisation_is_a_maximiser_with_the_wanted_law() -> None:
    """Theorem 2: E = g(1)/2 exactly; the longitudes have the moments of the target."""
    profile = ts.kernels.Exponential(2.0, "1/beta")
    found = orbit_universality(three_bumps, 128, 1.0, profile)
    energy = graph_energy(found.labels, found.kernel, found.points)
    assert energy == pytest.approx(math.exp(2) / 4, rel=1e-12)
    assert energy == pytest.approx(maximal_energy(found.labels, found.kernel, 3).energy, rel=1e-12)
    assert np.allclose(found.points[:, 2], math.cos(1.0))
    angles = 2 * np.pi * np.arange(2000) / 2000
    law = three_bumps(angles) / three_bumps(angles).sum()
    longitudes = np.arctan2(found.points[:, 1], found.points[:, 0])
    for k in (1, 2, 3):
        moment = found.labels.weights @ np.exp(1j * k * longitudes)
        assert abs(moment - law @ np.exp(1j * k * angles)) < k * found.resolution
    assert found.resolution < 0.01


@pytest.mark.parametrize("count", [1, 7, 64])
def test_gauge_realisation_is_a_maximiser_with_the_wanted_law(count: int) -> None:
    """Theorem 4: E = g(1)/2 exactly, and the parts balance in mass and mean."""
    mesh = ts.healpix(16)
    target = two_bumps(mesh)
    found = gauge_universality(mesh, target, count, ts.kernels.Linear())
    assert graph_energy(found.labels, found.kernel, found.points) == pytest.approx(0.5, rel=1e-12)
    assert np.abs(found.labels.weights * count - 1).max() < 0.5
    mean = found.labels.weights @ found.points
    assert np.linalg.norm(mean - (target * mesh.areas) @ mesh.centers) <= found.resolution
    assert found.resolution < 1.5 / math.sqrt(count)


def test_a_law_on_an_orbit_is_reached_from_a_start_about_the_pole() -> None:
    """nside 8 and 24 labels: W1 to the target below 3h."""
    mesh = ts.healpix(8)
    found = orbit_universality(three_bumps, 24, 1.0, ts.kernels.Linear())
    start = product(found.labels, ts.densities.von_mises_fisher(mesh, [0, 0, 1], 4.0))
    run = ts.solve_joint(mesh, found.labels, found.kernel, start, [0.0, 6.0], frame="co-rotating")
    turns = found.kernel.gauge(found.labels, 3)
    assert turns is not None
    before, after = (distance_to_target(mesh, found, density, turns) for density in run.densities)
    assert after < 3 * mesh.width
    assert after < before / 3
    assert run.records["energy"][-1] > 0.98 * 0.5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: orbit_universality(lambda a: -np.ones_like(a), 8, 1.0, ts.kernels.Linear()), "non-negative"),
        (lambda: orbit_universality(three_bumps, 8, 0.0, ts.kernels.Linear()), "between 0 and π"),
        (lambda: gauge_universality(ts.healpix(2), np.ones(5), 8, ts.kernels.Linear()), r"\(48,\)"),
        (lambda: gauge_universality(ts.healpix(2), np.ones(48), 49, ts.kernels.Linear()), "use fewer"),
    ],
)
def test_impossible_targets_are_refused_in_one_sentence(make: object, said: str) -> None:
    with pytest.raises(ts.InputError, match=said):
        make()  # type: ignore[operator]
