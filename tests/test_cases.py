"""The registry of validation cases, its helpers, and two-level refinement."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tokensphere.cli import status
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import refine
from tokensphere.meshes.mesh import Mesh
from tokensphere.validation.cases import TOPICS, all_cases, registry, run_cases
from tokensphere.validation.cases.registry import Case, Row, below, case, fitted_order, order_row, pair_orders, run
from tokensphere.validation.cases.transport import solved, zero_temperature
from tokensphere.validation.exact_distances import chordal_squared
from tokensphere.validation.projection import Projection
from tokensphere.validation.refined_run import as_document, refined_run
from tokensphere.validation.refinement import density_error, observed_order, refined_functionals, two_level


def test_topics_load_and_every_case_says_what_it_shows() -> None:
    known = all_cases()
    assert {"zero_temperature_density", "circle_stability", "mesh_identities"} <= set(known)
    assert {"transport", "fields"} <= set(TOPICS)
    for each in known.values():
        assert each.level in registry.LEVELS
        assert each.summary.endswith(".")


@pytest.mark.parametrize("name", ["mesh_identities", "circle_stability", "distance_circle", "direct_extremes"])
def test_quick_cases_hold(name: str) -> None:
    reported: list[Row] = []
    rows = run_cases(names=[name], report=reported.append)
    assert rows == reported
    assert all(row.holds for row in rows)
    json.dumps([row.as_dict() for row in rows], allow_nan=False)


def test_unknown_names_and_levels_are_refused() -> None:
    with pytest.raises(InputError, match="no case"):
        run_cases(names=["flat_earth"])
    with pytest.raises(InputError, match="level"):
        run_cases("slow")
    with pytest.raises(InputError, match="exists already"):
        case("mesh_identities")(lambda: [])
    with pytest.raises(InputError, match="level"):
        case("something", level="slow")


def test_a_case_that_raises_does_not_hold_and_does_not_stop_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> list[Row]:
        raise RuntimeError("no convergence")

    rows = run([Case("broken", "quick", broken, ""), Case("sound", "quick", lambda: [below("sound", 1, 0.0, 1.0)], "")])
    assert [row.holds for row in rows] == [False, True]
    assert "no convergence" in caplog.text
    assert rows[0].as_dict()["error"] is None


def test_orders() -> None:
    resolutions = [8, 16, 32]
    errors = [3.0 / n**2 for n in resolutions]
    assert fitted_order(resolutions, errors) == pytest.approx(2.0)
    assert pair_orders(resolutions, errors) == pytest.approx([2.0, 2.0])
    assert order_row("x", resolutions, errors, 1.95, 1.85).holds
    assert not order_row("x", resolutions, [1.0, 0.3, 0.1], 1.95, 1.85).holds
    assert not order_row("x", resolutions, [1.0, 0.2, 0.07], 1.9, 1.85).holds
    assert not below("x", 1, float("nan"), 1.0).holds


def test_two_levels_bound_the_error_of_any_order() -> None:
    exact = 1.25
    for order in (1.0, 2.0, 3.0):
        coarse, fine = exact + 0.4 * 2**-order, exact + 0.4 * 4**-order
        found = two_level(coarse, fine)
        assert abs(found.value - exact) <= found.error + 1e-15
        assert two_level(coarse, fine, order).extrapolated == pytest.approx(exact)
        assert observed_order(exact + 0.4, coarse, fine) == pytest.approx(order)
    assert observed_order(1.0, 2.0, 2.0) == np.inf
    with pytest.raises(InputError, match="order"):
        two_level(1.0, 1.0, 0.0)


def averages(mesh: Mesh) -> np.ndarray:
    """Exact cell averages of e^{cos θ} by the midpoint rule on 32 parts of each cell."""
    angle = 2 * np.pi * (np.arange(32 * mesh.cells) + 0.5) / (32 * mesh.cells)
    return np.exp(np.cos(angle)).reshape(mesh.cells, 32).mean(axis=1)


def test_functionals_of_densities_come_with_their_error() -> None:
    mesh = circle(64)
    found = refined_functionals(
        averages,
        mesh,
        {
            "mass": lambda m, rho: rho @ m.areas,
            "cos²": lambda m, rho: rho @ (m.areas * m.centers[:, 0] ** 2),
        },
    )
    assert float(found["mass"].error) < 1e-9
    from scipy.special import iv

    exact = np.pi * (iv(0, 1) + iv(2, 1))
    second = found["cos²"]
    assert abs(float(second.value) - exact) <= float(second.error)
    assert abs(float(second.extrapolated) - exact) < 0.01 * abs(float(second.value) - exact)


def test_density_error_vanishes_for_refined_data() -> None:
    coarse = averages(circle(32))
    assert density_error(circle(64), coarse, refine(circle(32), coarse)) == 0.0
    assert density_error(circle(64), averages(circle(32)), averages(circle(64))) < 1e-4


def test_a_run_is_reported_with_its_discretisation_error() -> None:
    def solve(mesh: Mesh, rho0: np.ndarray) -> np.ndarray:
        return solved(mesh, zero_temperature(np.diag([1.0, 0.0])), rho0, np.array([0.0, 1.0, 2.0]))[0]

    mesh = circle(128)
    rho0 = np.full(128, 1 / (2 * np.pi))
    found = refined_run(mesh, rho0, solve, Projection(np.diag([1.0, 0.0])))
    exact = np.sqrt(chordal_squared(np.exp(-np.array([0.0, 1.0, 2.0])), 2, 1))
    distance = found["w2_to_limit"]
    assert np.all(np.abs(distance.value - exact) <= distance.error + 1e-6)
    assert np.all(distance.error < circle(64).width ** 2)
    assert np.allclose(found["mass_on_side"].value, 0.5, atol=1e-9)
    assert np.all(found["density_l1"].error[1:] > 0)
    assert {"mean_x", "mean_y", "density_min", "density_max", "w2_nearest"} <= set(found)
    document = json.loads(json.dumps(as_document(np.arange(3.0), found), allow_nan=False))
    assert len(document["w2_to_limit"]["error"]) == len(document["times"]) == 3
    assert "w2_to_limit" not in refined_run(mesh, rho0, solve, None, fine=solve(mesh, rho0))


def test_check_refine_prints_every_number_with_its_error(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_config())
    assert status(["check", path, "--refine"]) == 0
    assert "w2_to_limit = " in capsys.readouterr().out
    assert status(["check", path, "--refine", "--json", "--set", "time.end=0.5"]) == 0
    refined = json.loads(capsys.readouterr().out)["refined"]
    assert refined["times"] == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert 0 < refined["w2_to_limit"]["error"][-1] < 0.01
    assert status(["check", path, "--refine", "--set", "attention.value=[[1.0,0.2],[0.0,-0.6]]", "--json"]) == 1
    assert "w2_to_limit" not in json.loads(capsys.readouterr().out)["refined"]


def test_a_summary_carries_the_refined_numbers_when_asked(
    write_config: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(write_config()), tmp_path / "refined"
    assert status(["run", path, "--out", str(out), "--set", "output.refine=true", "--set", "output.figures=false"]) == 0
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    refined = summary["refined"]["w2_to_limit"]
    assert refined["value"][-1] == pytest.approx(summary["limit"]["w2_to_limit"], rel=1e-9)
    assert 0 < refined["error"][-1] < refined["value"][-1]
    coarsest = ["--set", "output.refine=true", "--set", "mesh.cells=18"]
    assert status(["run", path, "--out", str(tmp_path / "no"), *coarsest]) == 2
    assert "coarser level" in capsys.readouterr().err
