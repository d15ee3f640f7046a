"""Transport through POT is checked: faults of the solver or of the input are raised, never returned as a distance."""

import warnings

import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.errors import PredictedMemoryError
from tokensphere.validation.entropic import entropic_bracket
from tokensphere.validation.general import coarsening_levels, smearing, wasserstein
from tokensphere.validation.transport import TransportError, optimal_plan

RANDOM = np.random.default_rng(9)


@pytest.fixture(autouse=True)
def same_numbers_in_any_order() -> None:
    """Every test draws from the start of the stream, whichever tests ran before it in its process."""
    RANDOM.bit_generator.state = np.random.default_rng(9).bit_generator.state


def laws(n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    x, y = RANDOM.normal(size=(n, 3)), RANDOM.normal(size=(m, 3))
    x, y = x / np.linalg.norm(x, axis=1, keepdims=True), y / np.linalg.norm(y, axis=1, keepdims=True)
    a, b = RANDOM.random(n), RANDOM.random(m)
    return x, a / a.sum(), y, b / b.sum()


def squared(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((x[:, None] - y) ** 2).sum(axis=-1)


def test_a_plan_with_a_known_answer() -> None:
    # On the line the optimal plan is monotone.
    a, b = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    plan = optimal_plan(a, b, np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert plan.cost == pytest.approx(0.25)
    assert np.allclose(plan.plan, [[0.25, 0.25], [0.0, 0.5]])
    assert plan.gap <= 1e-12


def test_iteration_cap_raises() -> None:
    x, a, y, b = laws(120, 120)
    with pytest.raises(TransportError, match="optimum"):
        optimal_plan(a, b, squared(x, y), iterations=10)


def test_negative_weight_raises_however_small() -> None:
    x, a, y, b = laws(20, 20)
    a[3] = -1e-17
    with pytest.raises(InputError, match="negative mass"):
        optimal_plan(a, b, squared(x, y))
    with pytest.raises(InputError, match="negative mass"):
        entropic_bracket(x, a, y, b)


def test_unequal_masses_raise_and_round_off_is_rescaled() -> None:
    x, a, y, b = laws(20, 25)
    cost = squared(x, y)
    for solve in (lambda w: optimal_plan(w, b, cost), lambda w: entropic_bracket(x, w, y, b)):
        with pytest.raises(InputError, match="total masses"):
            solve(1.1 * a)
    exact = optimal_plan(a, b, cost).cost
    assert optimal_plan(a * (1 + 1e-12), b, cost).cost == pytest.approx(exact, rel=1e-9)
    assert exact > 0.01


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_non_finite_input_raises(bad: float) -> None:
    x, a, y, b = laws(5, 5)
    cost = squared(x, y)
    with pytest.raises(InputError):
        optimal_plan(np.where(np.arange(5) == 2, bad, a), b, cost)
    with pytest.raises(InputError):
        optimal_plan(a, b, np.where(np.eye(5) > 0, bad, cost))
    with pytest.raises(InputError, match="no mass"):
        optimal_plan(0 * a, b, cost)


def test_memory_is_refused_before_anything_is_allocated() -> None:
    masses = np.full(50_000, 1 / 50_000)
    cost = np.broadcast_to(np.float64(1.0), (50_000, 50_000))
    with pytest.raises(PredictedMemoryError, match="entropic"):
        optimal_plan(masses, masses, cost)


def test_a_lying_solver_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import ot

    x, a, y, b = laws(12, 12)
    cost = squared(x, y)
    honest = ot.emd

    def wrong_marginal(*args: object, **keywords: object) -> object:
        plan, log = honest(*args, **keywords)
        return 0.5 * plan, log

    def not_optimal(*args: object, **keywords: object) -> object:
        _, log = honest(*args, **keywords)
        return np.outer(a, b), log

    def silent_cap(*args: object, **keywords: object) -> object:
        plan, log = honest(*args, **keywords)
        return plan, {**log, "result_code": 3}

    for lie, match in ((wrong_marginal, "marginal"), (not_optimal, "dual"), (silent_cap, "optimum")):
        monkeypatch.setattr(ot, "emd", lie)
        with pytest.raises(TransportError, match=match):
            optimal_plan(a, b, cost)


def test_points_without_mass_do_not_disturb_the_certificate() -> None:
    x, a, y, b = laws(15, 15)
    a[4], b[7] = 0.0, 0.0
    b *= a.sum() / b.sum()
    plan = optimal_plan(a, b, squared(x, y))
    assert np.allclose(plan.plan.sum(axis=1), a, atol=1e-12)
    assert plan.plan[4].sum() == 0


@pytest.mark.parametrize(("metric", "p"), [("chordal", 2.0), ("geodesic", 2.0), ("chordal", 1.0)])
def test_entropic_bracket_holds_the_exact_value(metric: str, p: float) -> None:
    x, a, y, b = laws(60, 50)
    a[5] = 0.0
    a /= a.sum()
    s = np.clip(x @ y.T, -1, 1)
    cost = np.arccos(s) ** p if metric == "geodesic" else (2 - 2 * s) ** (p / 2)
    exact = optimal_plan(a, b, cost).cost
    for epsilon in (0.2, 0.02):
        found = entropic_bracket(x, a, y, b, metric=metric, p=p, epsilon=epsilon)
        assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
        assert found.lower <= found.value <= found.upper
    assert found.upper - found.lower < 0.1 * exact


def test_small_regularisation_neither_overflows_nor_lies() -> None:
    x, a, y, b = laws(20, 20)
    exact = optimal_plan(a, b, squared(x, y)).cost
    found = entropic_bracket(x, a, y, b, epsilon=2e-3, tolerance=1e-2, iterations=5000)
    assert found.lower <= exact <= found.upper
    with pytest.raises(TransportError, match="not converged"):
        entropic_bracket(x, a, y, b, epsilon=1e-6, iterations=60)
    with pytest.raises(InputError, match="epsilon"):
        entropic_bracket(x, a, y, b, epsilon=0.0)


def test_debiasing_makes_equal_laws_equal() -> None:
    x, a, _, _ = laws(40, 1)
    found = entropic_bracket(x, a, x, a, epsilon=0.2, tolerance=1e-5)
    assert abs(found.debiased) < 1e-4
    assert found.lower <= 1e-12
    assert found.value <= 1e-4


def two_bumps(nside: int) -> tuple[np.ndarray, np.ndarray]:
    mesh = healpix(nside)
    first, second = (
        cell_averages(mesh, lambda x, m=m: np.exp(6 * (x @ m - 1)))
        for m in (np.array([1.0, 0, 0]), np.array([0.6, 0.8, 0]))
    )
    return first / (first @ mesh.areas), second / (second @ mesh.areas)


def test_rotation_of_a_bump_on_the_sphere() -> None:
    mesh = healpix(8)
    first, second = two_bumps(8)
    exact = wasserstein(mesh, first, mesh, second)
    coarse = wasserstein(mesh, first, mesh, second, memory=2e6)
    entropic = wasserstein(mesh, first, mesh, second, method="entropic", epsilon=0.05)
    # Lower bound for any two laws: the distance of their means.
    means = [np.sum((rho * mesh.areas)[:, None] * mesh.centers, axis=0) for rho in (first, second)]
    assert np.linalg.norm(means[0] - means[1]) <= float(exact)
    # A rotation by arccos .6 is a plan: it moves x by 2 sin(angle/2)·|x ∧ e3|, less than the chord.
    assert float(exact) <= np.sqrt(2 - 2 * 0.6)
    assert abs(float(coarse) - float(exact)) < 0.05
    for found in (coarse, entropic):
        assert found.lower <= float(exact) <= found.upper
    assert coarse.error > exact.error


def test_meshes_of_two_sizes_and_levels() -> None:
    fine, coarse = healpix(8), healpix(4)
    first, _ = two_bumps(8)
    _, second = two_bumps(4)
    assert float(wasserstein(fine, first, coarse, second, p=1.0, metric="geodesic")) > 0.5
    assert coarsening_levels(healpix(64), healpix(64), 5e8) == (2, 2)
    assert coarsening_levels(fine, coarse, 5e8) == (0, 0)
    with pytest.raises(InputError, match="memory"):
        coarsening_levels(fine, fine, 100.0)
    masses = first * fine.areas
    assert smearing(fine, masses, 1, 2.0, "chordal") > smearing(fine, masses, 0, 2.0, "chordal")


def test_circle_methods_agree() -> None:
    mesh = circle(128)
    first = (1 + 0.8 * mesh.centers[:, 0]) / (2 * np.pi)
    second = np.roll(first, 20)
    exact = wasserstein(mesh, first, mesh, second, metric="geodesic", p=1.0)
    simplex = wasserstein(mesh, first, mesh, second, metric="geodesic", p=1.0, method="exact")
    assert float(exact) == pytest.approx(float(simplex), abs=1e-3)
    assert simplex.lower <= float(exact) <= simplex.upper
    chordal = wasserstein(mesh, first, mesh, second)
    assert float(chordal) < float(wasserstein(mesh, first, mesh, second, metric="geodesic"))


def test_front_of_general_transport_refuses() -> None:
    mesh = healpix(2)
    rho = np.full(mesh.cells, 1 / (4 * np.pi))
    with pytest.raises(InputError, match="dimension"):
        wasserstein(mesh, rho, circle(8), np.full(8, 1 / (2 * np.pi)))
    with pytest.raises(InputError, match="method"):
        wasserstein(mesh, rho, mesh, rho, method="magic")
    with pytest.raises(InputError, match="total masses"):
        wasserstein(mesh, rho, mesh, 2 * rho)
    with pytest.raises(InputError, match="circle"):
        wasserstein(mesh, rho, mesh, rho, method="circle")


def test_no_warning_escapes() -> None:
    x, a, y, b = laws(80, 80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimal_plan(a, b, squared(x, y))
        with pytest.raises(TransportError):
            optimal_plan(a, b, squared(x, y), iterations=5)
