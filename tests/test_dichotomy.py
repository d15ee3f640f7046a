"""Verdicts on kernels, and on what a joint law has become."""

import math

import numpy as np
import pytest

from tokensphere.meshes import labels
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import densities, kernels
from tokensphere.pde.joint import product
from tokensphere.validation.dichotomy import CHOICE, COLLAPSE, OPEN, SPREAD, dichotomy
from tokensphere.validation.diracization import diracization, outcome
from tokensphere.validation.exact_joint import merging_time, two_clusters

CIRCLE = labels.circle(24)
EXPONENTIAL = kernels.Exponential(2.0, "1/beta")


@pytest.mark.parametrize(
    ("kernel", "verdict"),
    [
        (kernels.usa(EXPONENTIAL), COLLAPSE),
        (kernels.distance_bias(0.3, EXPONENTIAL), COLLAPSE),
        (kernels.toeplitz(kernels.Linear(), cosines=[(0, 0.6), (1, 1.0)]), COLLAPSE),
        (kernels.toeplitz(kernels.Linear(), cosines=[(0, 1.6), (1, 1.0)]), COLLAPSE),
        (kernels.toeplitz(kernels.Linear(), cosines=[(1, 1.0)]), SPREAD),
        (kernels.toeplitz(kernels.Linear(), cosines=[(0, 0.4), (2, 1.0)]), SPREAD),
        (kernels.toeplitz(EXPONENTIAL, cosines=[(1, 1.0)]), OPEN),
        (kernels.rope(1.0, EXPONENTIAL), CHOICE),
        (kernels.rope(0.0, EXPONENTIAL), COLLAPSE),
    ],
)
def test_verdicts_on_the_sphere(kernel: kernels.Kernel, verdict: str) -> None:
    found = dichotomy(CIRCLE, kernel, 3)
    assert found.verdict == verdict
    assert found.reason


def test_a_change_of_sign_is_reported_but_does_not_decide() -> None:
    found = dichotomy(CIRCLE, kernels.toeplitz(kernels.Linear(), cosines=[(0, 0.6), (1, 1.0)]), 3)
    assert found.changes_sign
    assert found.coefficients is not None
    assert np.allclose(found.coefficients[:3], [0.6, 0.5, 0], atol=1e-14)
    assert found.energy == pytest.approx(0.3)


def test_gauges_without_a_common_axis_never_collapse() -> None:
    rope = dichotomy(CIRCLE, kernels.rope(1.0, EXPONENTIAL), 3)
    assert rope.fixed is not None
    assert np.allclose(np.abs(rope.fixed), [[0, 0, 1]])
    assert dichotomy(CIRCLE, kernels.rope(1.0, EXPONENTIAL), 2).verdict == SPREAD
    generators = [[[0, -1, 0], [1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, -1], [0, 1, 0]]]
    assert dichotomy(CIRCLE, kernels.generalised_rope(EXPONENTIAL, generators=generators), 3).verdict == SPREAD


def test_two_clusters_are_never_called_converged() -> None:
    """Pitfall P27 at β = 40: two clusters 90° apart would take e^{40} time units, and nothing moves."""
    mesh = healpix(16)
    kernel = kernels.rope(1.0, kernels.Exponential(40.0, "exp(-beta)/beta"))
    parts = [densities.von_mises_fisher(mesh, mean, 400.0) for mean in ([1, 0, 0], [0, 0, 1])]
    turns = kernel.gauge(CIRCLE, 3)
    mixed = product(CIRCLE, densities.mixture(mesh, [(0.6, parts[0]), (0.4, parts[1])]))
    assert outcome(mesh, CIRCLE, kernel, mixed, turns).verdict.startswith("not converged: slices are still spread")
    apart = np.array([parts[k % 2] for k in range(CIRCLE.count)])
    judged = outcome(mesh, CIRCLE, kernel, apart, turns)
    assert judged.verdict.startswith("not converged: every slice is narrow")
    assert judged.energy == pytest.approx(0.5 * judged.maximal, rel=0.2)
    # The lighter cluster is not on argmax V: the first variation sees it too.
    uneven = np.array([parts[0] if k % 3 else parts[1] for k in range(CIRCLE.count)])
    gaps = diracization(mesh, CIRCLE, kernel, uneven, turns).gaps
    assert gaps[1] < 0.2 < 0.5 < gaps[0]


def test_collapse_and_orbit_are_told_apart() -> None:
    mesh, kernel = healpix(16), kernels.rope(1.0, kernels.Exponential(1.0, "1/beta"))
    turns = kernel.gauge(CIRCLE, 3)
    pole = product(CIRCLE, densities.von_mises_fisher(mesh, [0, 0, 1], 800.0))
    found = outcome(mesh, CIRCLE, kernel, pole, turns)
    assert found.verdict == "collapsed at maximal energy"
    assert found.collapsed
    tilted = product(CIRCLE, densities.von_mises_fisher(mesh, [0.6, 0, 0.8], 800.0))
    found = outcome(mesh, CIRCLE, kernel, tilted, turns)
    assert found.verdict == "not collapsed: the labels hold a latitude circle at maximal energy"
    measured = diracization(mesh, CIRCLE, kernel, tilted, turns)
    angles = -CIRCLE.points
    expected = np.stack([0.6 * np.cos(angles), 0.6 * np.sin(angles), np.full(CIRCLE.count, 0.8)], axis=1)
    assert np.abs(measured.points - expected).max() < 0.2 * mesh.width
    assert measured.gaps.max() < 1e-2


def test_merging_takes_exponentially_long() -> None:
    """Facts 11 and 13: quadrature of 1/φ' against the integrated equation, and growth e^{(1−cosφ)β}."""
    profile = kernels.Exponential(3.0, "1/beta")
    duration = merging_time(profile, 1.5, 0.3)
    assert two_clusters(profile, 1.5, np.array([duration]))[0] == pytest.approx(0.3, abs=1e-8)
    betas = np.array([20.0, 40.0, 80.0])
    scaled = [kernels.Exponential(b, "exp(-beta)/beta") for b in betas]
    logs = np.log([merging_time(p, 1.2, 0.8) for p in scaled]) + np.log(betas)
    assert np.allclose(np.diff(logs) / np.diff(betas), 1 - math.cos(1.2), rtol=0.01)
