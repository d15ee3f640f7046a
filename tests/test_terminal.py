"""Terminal phase: rates of theory §1.6 against the linearised particle system, the seven cases, what was reached."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.validation.cases.terminal import dominant_line, seven_cases
from tokensphere.validation.reached import find_clusters, reached_state, reached_tokens, turned_angle
from tokensphere.validation.stillness import dissipation, slow_rate, stillness
from tokensphere.validation.terminal import (
    one_cluster_rates,
    predict_terminal,
    smeared_variance,
    spectrum,
    two_cluster_rates,
)

Array = NDArray[np.float64]


def velocity(tokens: Array, value: Array, interaction: Array, beta: float) -> Array:
    """Softmax attention among equal tokens (n, d), written out once more."""
    exponents = beta * tokens @ interaction @ tokens.T
    weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    pulled = weights @ tokens / weights.sum(axis=1, keepdims=True) @ value.T
    return pulled - np.sum(pulled * tokens, axis=1, keepdims=True) * tokens


def linear_rates(tokens: Array, value: Array, interaction: Array, beta: float) -> Array:
    """Real parts of the eigenvalues of the linearised tokens in tangent coordinates, by central differences."""
    n = len(tokens)
    frames = [np.linalg.svd(token[None])[2][1:] for token in tokens]
    step, columns = 1e-5, []
    for i in range(n):
        for direction in frames[i]:
            change = []
            for sign in (1, -1):
                moved = tokens.copy()
                moved[i] = np.cos(step) * tokens[i] + sign * np.sin(step) * direction
                change.append(velocity(moved, value, interaction, beta))
            slope = (change[0] - change[1]) / (2 * step)
            columns.append(np.concatenate([frames[j] @ slope[j] for j in range(n)]))
    return np.sort(np.linalg.eigvals(np.array(columns).T).real)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_all_rates_of_one_and_two_clusters_are_those_of_the_linearised_tokens(sign: float) -> None:
    value, interaction, beta = np.diag([1.5, 0.4, -0.7]) * sign, np.diag([0.6, 1.0, 1.0]), 3.0
    direction = next(item for item in spectrum(value, interaction).directions if abs(item.vector[0]) > 0.9)
    one, two = one_cluster_rates(direction), two_cluster_rates(direction, beta)
    single = linear_rates(np.tile(direction.vector, (4, 1)), value, interaction, beta)
    assert np.isclose(single, one.particle, rtol=1e-5).any()
    assert np.isclose(single, one.rotation, rtol=1e-5).any()
    assert single.max() == pytest.approx(max(one.particle, one.rotation), rel=1e-5)
    both = np.concatenate([np.tile(direction.vector, (4, 1)), np.tile(-direction.vector, (4, 1))])
    pair = linear_rates(both, value, interaction, beta)
    for rate in (two.particle, two.rotation, two.symmetric):
        assert np.isclose(pair, rate, rtol=1e-4).any()
    assert pair.max() == pytest.approx(two.largest, rel=1e-4)
    assert two.stable == bool(pair.max() < 0)


@pytest.mark.parametrize("name", list(seven_cases()))
def test_the_seven_cases_are_predicted(name: str) -> None:
    value, interaction, beta, _, expected, index = seven_cases()[name]
    found = predict_terminal(value, interaction, beta, dominant_line(value, interaction))
    # with V=diag(1,2), B=diag(1,.1) a pair on e2 is as stable as one cluster
    assert found.name in (expected, "one or two clusters")
    assert (found.name == "one or two clusters") == (name == "V=diag(1,2), B=diag(1,.1)")
    if index >= 0:
        assert abs(found.basis[index, 0]) == pytest.approx(1.0)
    assert found.reason.endswith(".")


def test_dominance_tells_the_two_readings_of_the_conjecture_apart() -> None:
    known = seven_cases()
    readings = {
        name: predict_terminal(v, b, beta, dominant_line(v, b)).dominance for name, (v, b, beta, *_) in known.items()
    }
    assert readings["V=B=diag(−2,1)"] == "largest modulus"
    assert readings["V=diag(1,2), B=diag(1,.1)"] == "both"
    assert readings["V=diag(−1,1.5), B=−I"] == "both"
    assert readings["V=diag(−1,−2), B=I"] == "largest real part"


def tokens_of(value: Array, interaction: Array, beta: float, end: float) -> Array:
    """Tokens from an almost regular start, by the explicit midpoint rule."""
    angles = 2 * np.pi * (np.arange(60) + 0.3) / 60 + 0.05 * np.random.default_rng(1).normal(size=60)
    x = np.column_stack([np.cos(angles), np.sin(angles)])
    step = 0.05
    for _ in range(round(end / step)):
        middle = x + step / 2 * velocity(x, value, interaction, beta)
        x = x + step * velocity(middle, value, interaction, beta)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


# 60 tokens cannot hold a smeared state; the density does, in the validation case terminal_names
CLUSTERED = [name for name, facts in seven_cases().items() if facts[4] != "smeared"]


@pytest.mark.parametrize("name", CLUSTERED)
def test_tokens_reach_what_is_predicted(name: str) -> None:
    value, interaction, beta, end, _, index = seven_cases()[name]
    tokens = tokens_of(value, interaction, beta, 2 * end)
    found = reached_tokens(tokens, value, interaction, beta)
    predicted = predict_terminal(value, interaction, beta, dominant_line(value, interaction)).name
    assert found.name == predicted or (predicted == "one or two clusters" and found.name in predicted + "one cluster")
    if index >= 0:
        assert abs(found.vectors[found.nearest][index]) == pytest.approx(1.0)
        assert found.distances[found.nearest] < 0.2  # one stray token of 60 is allowed
    else:
        assert found.speed > 0.1


def test_spectrum_names_its_kinds_and_subspaces() -> None:
    turning = np.array([[1.0, -2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, -3.0]])
    found = spectrum(turning, np.eye(3))
    assert found.kind == "complex pair"
    assert found.rotates
    assert found.frequency == pytest.approx(2.0)
    assert np.abs(found.dominant[2]).max() < 1e-12
    assert found.dominant.shape == (3, 2)
    assert np.abs(found.dominant_in_modulus[:, 0]) == pytest.approx([0, 0, 1])
    assert spectrum(-np.diag([1.0, 2.0]), np.eye(2)).kind == "negative"
    assert spectrum(np.diag([1.0, -2.0]), np.eye(2)).kind == "real"
    with pytest.raises(InputError):
        spectrum(np.eye(2), np.eye(3))


def test_a_cluster_inside_a_repeated_eigenspace_is_terminal() -> None:
    found = predict_terminal(np.diag([1.0, 1.0, -0.5]), np.eye(3), 10.0, np.eye(3)[:, :2])
    assert found.name == "one cluster"
    assert found.basis.shape == (3, 2)
    assert np.abs(found.basis[2]).max() < 1e-12


def test_smeared_variance_balances_a_tilted_gaussian() -> None:
    for value, other in ((-1.0, -2.0), (-1.0, -3.0)):
        scaled = smeared_variance(value, other)
        assert other * scaled / (1 + scaled) == pytest.approx(value)


def test_clusters_of_points_and_of_a_density() -> None:
    points = np.array([[1, 0, 0], [0.995, 0.1, 0], [0, 0, 1.0], [0, 1, 0]], dtype=float)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = find_clusters(points, np.array([0.4, 0.2, 0.395, 0.005]), 0.2)
    assert [round(item.mass, 9) for item in found] == [0.6, 0.395]
    mesh = healpix(16)
    parts = [(0.7, np.array([0.0, 0.0, 1.0])), (0.3, np.array([1.0, 0.0, 0.0]))]
    rho = densities.mixture(mesh, [(mass, densities.von_mises_fisher(mesh, axis, 60.0)) for mass, axis in parts])
    state = reached_state(mesh, rho, np.diag([1.0, 0.3, 0.5]), np.eye(3), 1.0)
    assert [item.mass for item in state.clusters] == pytest.approx([0.7, 0.3], abs=0.01)
    assert state.clusters[0].center == pytest.approx([0, 0, 1], abs=0.02)
    # variance per tangent direction of a von Mises–Fisher law: about 1/κ
    assert state.clusters[0].variance == pytest.approx(1 / 60, rel=0.1)
    lines = {float(v): d for v, d in zip(state.values, state.distances, strict=True)}
    assert lines[0.5] < lines[1.0] < lines[0.3]


def test_turned_angle_adds_up() -> None:
    angles = np.linspace(0, 7.0, 30)
    assert turned_angle(np.column_stack([np.cos(angles), np.sin(angles)]))[-1] == pytest.approx(7.0)


def test_slow_is_not_converged() -> None:
    # two clusters at 90° under V = B = I move at e^{−β}: no eye can see it, and it is not a stationary state (P27)
    mesh, beta = circle(256), 60.0
    e1, e2 = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    parts = [(0.5, densities.von_mises_fisher(mesh, axis, 1e5)) for axis in (e1, e2)]
    rho = densities.mixture(mesh, parts)
    attention = Attention(np.eye(2), np.eye(2), np.eye(2), beta)
    found = stillness(mesh, attention, rho)
    assert found.state == "slow"
    assert "not converged" in found.reason
    assert found.slow_rate == pytest.approx(np.exp(-beta), rel=0.05)
    stable = Attention(np.eye(2), np.eye(2), np.diag([1.0, 0.2]), beta)
    assert stillness(mesh, stable, densities.von_mises_fisher(mesh, e1, 1e5)).state == "stationary"
    assert stillness(mesh, attention, densities.von_mises_fisher(mesh, e1, 2.0)).state == "moving"


def test_a_metastable_antipodal_pair_is_slow_at_large_beta() -> None:
    # V = I: the symmetric rate is 1 − tanh β = 2e^{−2β}, which is 0 in floating point
    mesh = circle(256)
    parts = [(0.5, densities.von_mises_fisher(mesh, s * np.array([1.0, 0.0]), 1e5)) for s in (1, -1)]
    found = stillness(mesh, Attention(np.eye(2), np.eye(2), np.eye(2), 60.0), densities.mixture(mesh, parts))
    assert found.state == "slow"


def test_dissipation_of_a_density_with_known_velocity() -> None:
    # at the uniform density v = A_d(β) P_x V x: ∫|v|² = A² ∫|P_x V x|² dσ
    mesh, beta = healpix(16), 4.0
    value = np.diag([1.0, 0.0, 0.0])
    length = 1 / np.tanh(beta) - 1 / beta
    found = dissipation(mesh, Attention(np.eye(3), np.eye(3), value, beta), densities.uniform(mesh))
    # ∫x1²(1−x1²)dσ = 1/3 − 1/5
    assert found == pytest.approx(length**2 * (1 / 3 - 1 / 5), rel=1e-2)
    assert slow_rate((), Attention(np.eye(3), np.eye(3), value, beta)) == 0.0
