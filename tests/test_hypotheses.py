"""H1, H2, H3: verdicts, numbers and reasons."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde.attention import Attention
from tokensphere.validation.hypotheses import check_hypotheses, hypothesis_one, hypothesis_three

Array = NDArray[np.float64]
MATRIX = np.diag([1.0, 0.3, -0.5])


def head(value: Array = MATRIX, transposed: Array | None = None, beta: float = 50.0) -> Attention:
    d = len(value)
    return Attention(np.eye(d), np.eye(d) if transposed is None else transposed.T, value, beta)


def tilted(x: Array) -> Array:
    return 1 + x[..., 2] / 2


def test_all_hold_for_the_example() -> None:
    first, second, third = check_hypotheses(healpix(16), head(), tilted)
    assert [item.name for item in (first, second, third)] == ["H1", "H2", "H3"]
    assert [item.verdict for item in (first, second, third)] == ["holds"] * 3
    assert first.value == pytest.approx(0.7)
    assert first.details["multiplicities"] == [1, 1, 1]
    assert second.value == pytest.approx(2.0, abs=1e-6)
    assert third.value == pytest.approx(0.5, rel=1e-4)
    for item in (first, second, third):
        json.dumps(asdict(item))
        assert item.reason.endswith(".")


def test_each_failure_of_h1_has_its_own_reason() -> None:
    tilt = np.zeros((3, 3))
    tilt[0, 1] = 1e-3
    perturbed = hypothesis_one(MATRIX + tilt, np.eye(3))
    assert (perturbed.verdict, "not symmetric" in perturbed.reason) == ("fails", True)
    assert perturbed.value == pytest.approx(np.sqrt(2) * 1e-3 / np.linalg.norm(MATRIX + tilt), rel=1e-9)
    singular = hypothesis_one(MATRIX, np.diag([1.0, 1.0, 0.0]))
    assert (singular.verdict, "singular" in singular.reason, singular.value) == ("fails", True, 0.0)
    flat = hypothesis_one(np.eye(3), np.eye(3))
    assert (flat.verdict, "gap is 0" in flat.reason, flat.value) == ("fails", True, 0.0)


def test_h1_counts_multiplicities_and_conditions() -> None:
    stretch = np.diag([2.0, 2.0, 0.5])
    found = hypothesis_one(np.diag([1.0, 1.0, -0.5]) @ np.linalg.inv(stretch), stretch)
    assert found.verdict == "holds"
    assert found.value == pytest.approx(1.5)
    assert found.details["multiplicities"] == [2, 1]
    assert found.details["condition_number"] == pytest.approx(4.0)


def test_h2_at_the_power_asked_for() -> None:
    mesh = healpix(8)
    assert check_hypotheses(mesh, head(), tilted, p=0.5)[1].verdict == "holds"
    failed = check_hypotheses(mesh, head(), tilted, p=1.0)[1]
    assert (failed.verdict, failed.value) == ("fails", np.inf)
    plane = check_hypotheses(mesh, head(np.diag([1.0, 1.0, -0.5])), tilted, p=1.0)[1]
    # (1+z/2)/4π: the odd part drops out, so M_1 = π/2 as for the uniform density
    assert plane.value == pytest.approx(np.pi / 2, abs=1e-6)
    assert plane.details["largest_admissible_p"] == pytest.approx(2.0)


def test_the_rate_that_follows_from_h2() -> None:
    stretch = np.diag([1.0, 2.0, 0.5])
    attention = Attention(np.eye(3), stretch, np.linalg.solve(stretch, MATRIX).T, 50.0)
    second = check_hypotheses(healpix(8), attention, tilted, p=0.8)[1]
    assert second.details["rate"] == pytest.approx(0.4 * 0.7 / 2.0)
    # ρ0 = x1² vanishes on E^⊥: p up to 3 is admissible, of which the bound uses 2
    vanishing = check_hypotheses(healpix(8), head(), lambda x: x[..., 0] ** 2)[1]
    assert vanishing.details["largest_admissible_p"] == pytest.approx(3.0, abs=1e-6)
    assert vanishing.details["rate_supremum"] == pytest.approx(0.7)


def test_h2_is_undecided_without_an_eigenspace() -> None:
    skew = MATRIX.copy()
    skew[0, 1] = 0.1
    records = check_hypotheses(healpix(8), head(skew), tilted)
    assert [item.verdict for item in records] == ["fails", "undecided", "holds"]


def test_gap_zero_fails_h1_only() -> None:
    records = check_hypotheses(circle(64), head(np.eye(2)), lambda x: 1 + x[..., 0] / 2)
    assert [item.verdict for item in records] == ["fails", "holds", "holds"]


@pytest.mark.parametrize("from_mesh", [False, True])
def test_h3_verdicts(from_mesh: bool) -> None:
    mesh = healpix(32)

    def judged(function: object) -> tuple[str, str]:
        given = cell_averages(mesh, function) if from_mesh else function  # type: ignore[arg-type]
        found = hypothesis_three(mesh, given)  # type: ignore[arg-type]
        return found.verdict, found.reason

    assert judged(tilted)[0] == "holds"
    rough = judged(lambda x: 1 + np.sqrt(np.abs(x[..., 2])))
    assert rough[0] == "fails"
    assert "Hölder" in rough[1]
    cap = judged(lambda x: 1.0 * (x[..., 2] > 0.3))
    assert cap[0] == "fails"
    assert "not strictly positive" in cap[1]
    assert "jump" in cap[1]
    assert judged(lambda x: x[..., 0] ** 2)[0] == ("undecided" if from_mesh else "fails")


def test_mesh_values_say_how_far_they_see() -> None:
    mesh = healpix(32)
    second = check_hypotheses(mesh, head(), cell_averages(mesh, tilted))[1]
    assert second.verdict == "holds"
    assert second.value == pytest.approx(2.0, abs=1e-3)
    assert "mesh width" in second.reason
