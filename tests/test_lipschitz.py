"""Regularity by refinement: known exponents and constants, positivity, and the lower bound along a run."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation import exact_zero_temperature as zero
from tokensphere.validation.lipschitz import classify, divergence, follow, largest_compression, minimum, regularity

Array = NDArray[np.float64]
AXIS = np.array([2.0, -1.0, 2.0]) / 3


def along(function: object) -> object:
    """A function of ⟨x, a⟩ for a fixed axis off the mesh."""
    return lambda x: function(x @ AXIS)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("function", "kind", "exponent"),
    [
        (lambda s: 1 + s / 2, "Lipschitz", 1.0),
        (lambda s: 1 + np.abs(s), "Lipschitz", 1.0),
        (lambda s: 1 + np.sqrt(np.abs(s)), "Hölder", 0.5),
        (lambda s: 1 + np.abs(s - 0.2) ** 0.25, "Hölder", 0.25),
        (lambda s: 1.0 * (s > 0.3), "jump", 0.0),
        (lambda s: np.cos(s) ** 2 + np.sin(s) ** 2, "Lipschitz", 1.0),
    ],
)
def test_functions_are_classified(function: object, kind: str, exponent: float) -> None:
    found = regularity(healpix(16), along(function))
    assert found.kind == kind
    assert found.exponent == pytest.approx(exponent, abs=0.05)
    assert abs(found.exponent - exponent) <= 2 * found.uncertainty


def test_the_lipschitz_constant_is_the_largest_gradient() -> None:
    assert regularity(healpix(16), along(lambda s: 1 + s / 2)).constant == pytest.approx(0.5, rel=1e-4)
    # e^{κ(s−1)}: κ e^{κ(s−1)}√(1−s²) is largest where κ(1−s²) = s
    kappa = 30.0
    s = (-1 + np.sqrt(1 + 4 * kappa**2)) / (2 * kappa)
    exact = kappa * np.exp(kappa * (s - 1)) * np.sqrt(1 - s * s)
    found = regularity(healpix(16), along(lambda s: np.exp(kappa * (s - 1))))
    assert found.constant == pytest.approx(exact, rel=1e-6)
    assert regularity(circle(64), lambda x: 1 + 0.3 * x[..., 0]).constant == pytest.approx(0.3, rel=1e-4)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda z: 1 + z / 2, "Lipschitz"),
        (lambda z: 1 + np.sqrt(np.abs(z)), "Hölder"),
        (lambda z: 1.0 * (z > 0.3), "jump"),
    ],
)
def test_mesh_values_are_classified_by_coarsening(function: object, kind: str) -> None:
    mesh = healpix(32)
    found = regularity(mesh, cell_averages(mesh, lambda x: function(x[..., 2])))  # type: ignore[operator]
    assert found.kind == kind
    assert found.exponent == pytest.approx({"Lipschitz": 1.0, "Hölder": 0.5, "jump": 0.0}[kind], abs=0.05)


def test_an_unresolved_bump_is_undecided() -> None:
    mesh = healpix(16)
    assert regularity(mesh, cell_averages(mesh, along(lambda s: 1 + np.exp(300 * (s - 1))))).kind == "undecided"


def test_too_few_levels_are_refused() -> None:
    with pytest.raises(InputError, match="at least 3"):
        classify(np.array([0.1, 0.05]), np.array([1.0, 1.0]))


def test_minima() -> None:
    mesh = healpix(16)
    least = minimum(mesh, along(lambda s: 1 + s / 2))
    assert least.kind == "positive"
    assert least.value == pytest.approx(0.5, abs=1e-6)
    assert least.where == pytest.approx(-AXIS, abs=1e-3)
    assert minimum(mesh, along(lambda s: s**2)).kind == "zero"
    assert minimum(mesh, along(lambda s: np.abs(s) ** 0.5)).kind == "zero"
    assert minimum(mesh, along(lambda s: np.exp(80 * s))).kind == "positive"
    assert minimum(mesh, cell_averages(mesh, along(lambda s: s**2))).kind == "falling"
    assert minimum(mesh, cell_averages(mesh, along(lambda s: 1 + s / 2))).kind == "positive"
    assert minimum(mesh, cell_averages(mesh, along(lambda s: 1.0 * (s > 0.3)))).kind == "zero"


def test_the_divergence_of_speeds_is_the_closed_form() -> None:
    mesh, matrix = healpix(16), np.diag([1.0, 0.3, -0.5])
    flow = AttentionFlow(mesh, Attention(np.eye(3), np.eye(3), matrix, np.inf))
    speeds = flow.field(densities.uniform(mesh)).speeds
    exact = cell_averages(mesh, lambda x: zero.divergence(matrix, np.eye(3), x.reshape(-1, 3)).reshape(x.shape[:-1]))
    assert np.abs(divergence(mesh, speeds) - exact) @ mesh.areas < 0.01 * np.abs(exact) @ mesh.areas


def test_positivity_stays_above_its_lower_bound_along_a_run() -> None:
    mesh, matrix, times = circle(128), np.diag([1.0, -0.6]), np.linspace(0, 2, 21)
    attention = Attention(np.eye(2), np.eye(2), matrix, np.inf)
    flow = AttentionFlow(mesh, attention)
    states = march(flow, State(0.0, densities.uniform(mesh)), times)
    run = np.array([state.density for state in states if state.saved is not None])
    found = follow(mesh, times, run, np.array([largest_compression(mesh, flow.field(row).speeds) for row in run]))
    # sup div v = tr M − 2μ2 = 1.6 at e2, where the uniform density falls exactly like e^{−1.6t}: the bound is sharp
    assert found.compression == pytest.approx(1.6, rel=2e-3)
    assert found.lower_bounds == pytest.approx(np.exp(-1.6 * times) / (2 * np.pi), rel=1e-2)
    assert np.all(found.minima >= found.lower_bounds * (1 - 5e-3))
    assert found.minima[-1] < 1.1 * found.lower_bounds[-1]
    assert np.all(np.diff(found.constants) > 0)
    assert np.isnan(follow(mesh, times, run).lower_bounds[1])
