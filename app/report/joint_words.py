"""What the run of a joint law shows, in sentences."""

import numpy as np

from tokensphere.config.building import build_kernel
from tokensphere.report.loading import RunData
from tokensphere.report.wording import Verdict, number

GAUGE = ("usa", "rope", "generalised_rope", "prefix")
DECREASE = 1e-9  # of the largest energy: a fall below this is round-off


def joint_in_words(run: RunData) -> list[Verdict]:
    """What became of the law; energy, concentration of the slices and mean of the content, as far as recorded."""
    return [*_outcome(run), *_energy(run), *_slices(run), *_mean(run)]


def greatest_energy(run: RunData) -> float | None:
    """The maximum ½g(1) of the energy for a gauge kernel, reached at x(ξ) = Q(ξ)⁻¹u0 (theory §2.3, fact 2)."""
    table = run.config.kernel
    if table is None or table.kind not in GAUGE:
        return None
    kernel = build_kernel(table, run.mesh.dimension)
    return 0.5 * float(kernel.profile.value(np.array(1.0)))


def _outcome(run: RunData) -> list[Verdict]:
    facts = run.summary.get("joint") or {}
    found = []
    if facts.get("verdict"):
        shape = f"; its points lie on: {facts['shape']}" if facts.get("shape") else ""
        found.append(Verdict("note", f"The joint law is {facts['verdict']}{shape}."))
    known = facts.get("dichotomy") or {}
    if known.get("reason"):
        found.append(Verdict("note", f"What theory expects of this kernel: {known['reason']}"))
    return found


def _energy(run: RunData) -> list[Verdict]:
    energy = run.records.get("energy")
    if energy is None or not np.isfinite(energy).any():
        return []
    values = energy[np.isfinite(energy)]
    rises = bool(np.all(np.diff(values) >= -DECREASE * np.abs(values).max()))
    sentence = (
        f"The energy {'never falls' if rises else 'falls at times'}: {number(float(values[0]), 4)} at the start, "
    )
    sentence += f"{number(float(values[-1]), 4)} at the end"
    top = greatest_energy(run)
    if top is not None:
        sentence += f", {100 * values[-1] / top:.3g} % of the greatest value possible, g(1)/2 = {number(top, 4)}"
    return [Verdict("holds" if rises else "fails", sentence + ".")]


def _slices(run: RunData) -> list[Verdict]:
    spread = run.records.get("conditional_spread")
    if spread is None or not np.isfinite(spread[-1]):
        return []
    sentence = (
        f"Conditional Diracization: the mean over labels of 1 − |∫x dμ_ξ| goes from {number(float(spread[0]))} to "
        f"{number(float(spread[-1]))}; 0 means that every label sits at one point."
    )
    return [Verdict("note", sentence)]


def _mean(run: RunData) -> list[Verdict]:
    length = run.records.get("mean_length")
    if length is None or not np.isfinite(length[-1]):
        return []
    size = float(length[-1])
    meaning = "all content in one place" if size > 0.98 else "no collapse to one point"
    return [Verdict("note", f"The mean of the content has length {number(size)} at the end: {meaning}.")]
