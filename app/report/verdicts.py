"""What a run shows, in sentences with a verdict."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokensphere.report.joint_words import joint_in_words
from tokensphere.report.loading import RunData
from tokensphere.report.wording import VERDICTS, Verdict, number

ROUND_OFF = 1e-11


def verdicts(run: RunData, plateau: float | None) -> list[Verdict]:
    """Everything the report says in words at its top."""
    return [
        completed(run),
        *hypotheses_in_words(run.summary.get("hypotheses") or []),
        *distance_in_words(run, plateau),
        *conservation(run),
        *assessed(run.summary.get("theorem") or {}),
        *next_phase(run),
    ]


def completed(run: RunData) -> Verdict:
    """Whether the run reached its end."""
    end, last = run.config.time.end, float(run.times[-1])
    facts = run.summary.get("run") or {}
    if not run.summary:
        sentence = f"The run is not finished: the density is on disk up to t = {last:.4g} of {end:.4g}."
        return Verdict("undecided", sentence)
    seconds = (run.summary.get("timings") or {}).get("march")
    took = f", in {seconds:.3g} s" if isinstance(seconds, int | float) else ""
    steps = f" after {int(facts['steps']):,} steps" if facts.get("steps") is not None else ""
    if last < end:
        return Verdict("undecided", f"The run is at t = {last:.4g} of {end:.4g}{steps}{took}.")
    return Verdict("holds", f"The run reached its end t = {last:.4g}{steps}{took}.")


def hypotheses_in_words(found: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """One sentence if all hold, else one for each that does not."""
    if not found:
        return []
    short = [item for item in found if item.get("verdict") != "holds"]
    if not short:
        names = ", ".join(str(item.get("name")) for item in found)
        return [Verdict("holds", f"The hypotheses {names} of the low-temperature theorem hold (table below).")]
    return [
        Verdict(
            item["verdict"] if item.get("verdict") in VERDICTS else "undecided",
            f"{item.get('name')} {'fails' if item.get('verdict') == 'fails' else 'is undecided'}: {item.get('reason')}",
        )
        for item in short
    ]


def distance_in_words(run: RunData, plateau: float | None) -> list[Verdict]:
    """How near the run came to Π♯ρ0, how fast, and where it settled."""
    limit = run.summary.get("limit") or {}
    if run.attention is None:
        return joint_in_words(run)
    if run.limit_basis is None:
        reason = limit.get("reason") or "VBᵀ is not symmetric or its spectral gap is 0"
        return [Verdict("note", f"No limit is predicted: {str(reason).rstrip('.')}.")]
    curve = run.records.get("w2_to_limit")
    if curve is None or not np.isfinite(curve).any():
        return [Verdict("note", "The distance to the limit was not recorded.")]
    time, least = run.records["time"], int(np.nanargmin(curve))
    floor = float(np.nanmax(run.records.get("w2_floor", np.array([np.nan])))) if "w2_floor" in run.records else np.nan
    sentence = (
        f"The distance W₂ to the limit fell from {number(float(curve[0]))} to {number(float(curve[least]))} "
        f"at t = {time[least]:.3g} and is {number(float(curve[-1]))} at the end"
    )
    if np.isfinite(floor):
        near = curve[least] <= 2.0 * floor
        sentence += f"; the floor of this mesh is {number(floor)}" + (
            ", so part of what is left may be the mesh" if near else ""
        )
    found = [Verdict("note", sentence + ".")]
    found.extend(_rate_in_words(run))
    if plateau is not None:
        # The formula is the leading term in 1/β: half and double are still agreement in kind.
        kind = "holds" if plateau / 2 <= curve[least] <= 2 * max(plateau, floor) else "note"
        below = " (below the floor of this mesh)" if plateau < floor else ""
        found.append(
            Verdict(kind, f"For large β theory predicts a plateau of W₂ at {number(plateau)}{below}, ~ β^(−1/2).")
        )
    return found


def assessed(theorem: Mapping[str, Any]) -> list[Verdict]:
    """The verdict on Theorem 1's bound and the state reached, where the summary has them."""
    found = []
    bound, terminal = theorem.get("bound") or {}, theorem.get("terminal") or {}
    if bound.get("reason"):
        kind = bound.get("verdict") if bound.get("verdict") in VERDICTS else "note"
        found.append(Verdict(str(kind), f"Bound of Theorem 1: {bound['reason']}"))
    if terminal.get("reason"):
        name = (terminal.get("reached") or {}).get("name")
        words = [name, terminal.get("state"), terminal["reason"]]
        found.append(Verdict("note", "State at the end: " + "; ".join(str(word) for word in words if word)))
    return found


def _rate_in_words(run: RunData) -> list[Verdict]:
    fit = (run.summary.get("fits") or {}).get("w2_decay")
    if not fit:
        return []
    sentence = f"On t = {fit['start']:.2g} … {fit['end']:.2g} it decays like e^(−{fit['rate']:.3f} t)"
    for item in run.summary.get("hypotheses") or []:
        supremum = (item.get("details") or {}).get("rate_supremum")
        if item.get("name") == "H2" and supremum:
            sentence += f"; at zero temperature theory promises every rate below {number(supremum)}"
    return [Verdict("note", sentence + ".")]


def conservation(run: RunData) -> list[Verdict]:
    """Mass and positivity, from the records."""
    found = []
    mass, least = run.records.get("mass"), run.records.get("density_min")
    if mass is not None and len(mass):
        defect = float(np.nanmax(np.abs(mass - mass[0])))
        kind = "holds" if defect <= ROUND_OFF else "fails"
        size = "exactly" if defect == 0 else f"to {number(defect, 2)}"
        found.append(Verdict(kind, f"Mass is conserved {size}."))
    if least is not None and len(least):
        lowest = float(np.nanmin(least))
        if lowest > 0:
            found.append(
                Verdict("holds", f"The density stays positive: its least value is {number(lowest)} {run.unit}.")
            )
        else:
            words = "reaches 0" if lowest == 0 else f"becomes negative ({number(lowest)})"
            kind = "note" if lowest == 0 else "fails"
            found.append(Verdict(kind, f"The least density {words}."))
    return found


def next_phase(run: RunData) -> list[Verdict]:
    """What theory expects after the plateau, and whether this mesh could show it."""
    if run.attention is None or run.limit_basis is None or math.isinf(run.attention.beta):
        return []
    from tokensphere.validation.phases import predict_exit, resolution
    from tokensphere.validation.terminal import predict_terminal

    attention = run.attention
    leaving = predict_exit(attention)
    terminal = predict_terminal(attention.value, attention.B, attention.beta, run.limit_basis)
    when = f" (t ≈ {leaving.time:.3g})" if math.isfinite(leaving.time) else ""
    found = [Verdict("note", f"How long the state on E lasts{when}: {leaving.reason}")]
    if leaving.case != "stays":
        found.append(Verdict("note", f"The state expected at long times: {terminal.name}; {terminal.reason}"))
        mesh = resolution(run.mesh, attention)
        if not mesh.fine_enough:
            found.append(Verdict("undecided", f"The mesh is coarse for exit times: {mesh.reason}"))
    return found
