"""theorem.json of a sweep over β: the bound, the plateau and the fixed-time error against β."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.folder import RunFolder
from tokensphere.records import read_records
from tokensphere.store import read_solution
from tokensphere.sweep.members import Member

Array = NDArray[np.float64]

BETA = "attention.beta"


def sweep_theorem(members: list[Member], root: Path) -> dict[str, Any]:
    """Theorem 1 over the finished members of a sweep over attention.beta alone; for other sweeps a reason."""
    if list(members[0].values) != [BETA]:
        return {"verdict": "undecided", "reason": f"the theorem is judged for a sweep over {BETA} alone."}
    found = [member for member in members if RunFolder(root / member.name).summary.exists()]
    summaries = [_summary(root / member.name) for member in found]
    if not found or not all(summary["limit"]["defined"] for summary in summaries):
        return {"verdict": "undecided", "reason": "no member is finished, or there is no limit to measure against."}
    records = [item for item in summaries[0]["hypotheses"] if item["name"] == "H2"]
    second: dict[str, Any] = (records[0].get("details") or {}) if records else {}
    if not second.get("rate") or second.get("moment") is None:
        return {"verdict": "undecided", "reason": "no rate follows from H2 for this start."}
    return _judged([(float(member.values[BETA]), root / member.name) for member in found], summaries[0], second)


def _judged(found: list[tuple[float, Path]], summary: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    from tokensphere.validation.assessment import assess_sweep
    from tokensphere.validation.bound import Curve, decay_prefactor

    curves = []
    for beta, folder in found:
        records = read_records(RunFolder(folder).records)
        curves.append(Curve(beta, records["time"], records["w2_to_limit"], records["w2_floor"]))
    prefactor = decay_prefactor(min(second["p"], 2.0), second["moment"], summary["limit"]["metric"])
    return assess_sweep(curves, second["rate"], prefactor, fixed_time=_fixed_time(found))


def _fixed_time(found: list[tuple[float, Path]]) -> tuple[float, Array, Array] | None:
    """(t, β, W2(ρ^β_t, ρ_t)) on the circle, where a member at β = inf has the same saves; t early in the run.

    On the sphere the distance between two densities closer than a cell is not known well enough for a power.
    """
    cold = [folder for beta, folder in found if math.isinf(beta)]
    warm = [(beta, folder) for beta, folder in found if math.isfinite(beta)]
    if not cold or len(warm) < 3:
        return None
    start = read_solution(RunFolder(cold[0]).solution)
    if "angle" not in start.coords and "angle" not in start:
        return None
    from tokensphere.validation.circular import circular_wasserstein

    times = start.time.values
    save = 1
    errors = []
    for _, folder in warm:
        run = read_solution(RunFolder(folder).solution)
        if not np.array_equal(run.time.values, times):
            return None
        errors.append(circular_wasserstein(run.density.values[save], start.density.values[save]))
    return float(times[save]), np.array([beta for beta, _ in warm]), np.array(errors)


def _summary(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(RunFolder(folder).summary.read_text(encoding="utf-8"))
    return document
