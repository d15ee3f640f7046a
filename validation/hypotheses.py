"""The hypotheses H1, H2, H3 of the low-temperature theorem: one record each, with the number behind the verdict."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import SINGULAR, Attention
from tokensphere.validation.lipschitz import minimum, regularity
from tokensphere.validation.moments import Admissible, admissible, mesh_density, moment
from tokensphere.validation.projection import Projection, distinct_eigenvalues, relative_asymmetry

Floats = NDArray[np.float64]
Density = Callable[[Floats], Floats]

ASYMMETRY = 1e-10  # relative asymmetry of VBᵀ that counts as round-off; the same as Projection's
SAME_EIGENVALUE = 1e-9  # relative to the largest modulus


@dataclass(frozen=True)
class Hypothesis:
    """Verdict on one hypothesis: "holds", "fails" or "undecided".

    value: the number the verdict rests on; tolerance: what it was compared with or its uncertainty; reason: one
    sentence; details: further numbers by name (plain floats, strings and lists).
    """

    name: str
    verdict: str
    value: float
    tolerance: float
    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)


def hypothesis_one(value: Floats, interaction: Floats) -> Hypothesis:
    """H1 for V (d, d) and B = QᵀK (d, d): B invertible, VBᵀ symmetric, spectral gap γ = μ1 − μ2 > 0.

    μ1 > μ2 are the two largest distinct eigenvalues. The value is γ where all is well, else the quantity that fails.
    Source: low-temperature document, hypothesis 1. A singular B is judged here, not refused.
    """
    V, B = np.asarray(value, dtype=float), np.asarray(interaction, dtype=float)
    M = V @ B.T
    singular = np.linalg.svd(B, compute_uv=False)
    smallest, largest = float(singular[-1]), float(singular[0])
    asymmetry = relative_asymmetry(M)
    eigenvalues = distinct_eigenvalues(np.linalg.eigvalsh((M + M.T) / 2)[::-1], SAME_EIGENVALUE)
    gap = eigenvalues[0].value - eigenvalues[1].value if len(eigenvalues) > 1 else 0.0
    details = {
        "smallest_singular_value": smallest,
        "largest_singular_value": largest,
        "condition_number": largest / smallest if smallest > 0 else math.inf,
        "asymmetry": asymmetry,
        "eigenvalues": [item.value for item in eigenvalues],
        "multiplicities": [item.multiplicity for item in eigenvalues],
        "gap": gap,
    }
    if smallest <= SINGULAR * largest:
        reason = f"B is singular: its smallest singular value is {smallest:.3g}, its largest {largest:.3g}."
        return Hypothesis("H1", "fails", smallest, SINGULAR * largest, reason, details)
    if asymmetry > ASYMMETRY:
        reason = f"VBᵀ is not symmetric: its relative asymmetry is {asymmetry:.3g}."
        return Hypothesis("H1", "fails", asymmetry, ASYMMETRY, reason, details)
    tolerance = SAME_EIGENVALUE * float(max(abs(item.value) for item in eigenvalues))
    if gap <= tolerance:
        reason = f"VBᵀ is {eigenvalues[0].value:.4g} times the identity: the spectral gap is 0 and nothing is selected."
        return Hypothesis("H1", "fails", 0.0, tolerance, reason, details)
    reason = (
        f"B is invertible (condition number {details['condition_number']:.3g}), VBᵀ is symmetric and its gap is "
        f"{eigenvalues[0].value:.4g} − {eigenvalues[1].value:.4g} = {gap:.4g}, dim E = {eigenvalues[0].multiplicity}."
    )
    return Hypothesis("H1", "holds", gap, tolerance, reason, details)


def hypothesis_two(
    mesh: Mesh, projection: Projection, largest_stretch: float, rho0: Density | Floats, p: float | None = None
) -> Hypothesis:
    """H2: M_p = ∫|P_E x|^{−p} dρ0 is finite for the p asked for, or for some p > 0.

    largest_stretch is σmax(B); rho0 a function of points (n, d) or cell averages (cells,). The value is M_p at p, or at
    half the supremum of admissible p (at most ½ dim E). The rate that follows is c = (p/2)γ/σmax(B), p ≤ 2 (theory
    §1.3 f).
    """
    basis = projection.basis
    if callable(rho0):
        density, limit = rho0, admissible(rho0, basis)
    else:
        density = mesh_density(mesh, np.asarray(rho0, dtype=float))
        limit = admissible(density, basis, scale=2 * mesh.width)
    asked = p if p is not None else min(limit.supremum, basis.shape[1]) / 2
    found = moment(density, basis, asked, limit) if limit.supremum > 0 else None
    best = min(limit.supremum, 2.0)
    details = {
        "p": asked,
        "moment": found.value if found else math.inf,
        "moment_error": found.error if found else 0.0,
        "largest_admissible_p": limit.supremum,
        "largest_admissible_p_uncertainty": limit.uncertainty,
        "smallest_scale_seen": limit.scale,
        "rate": min(asked, 2.0) / 2 * projection.gap / largest_stretch if found and math.isfinite(found.value) else 0.0,
        "rate_supremum": max(best, 0.0) / 2 * projection.gap / largest_stretch,
    }
    verdict = _moment_verdict(limit, asked, p is not None)
    size = "infinite" if found is None or math.isinf(found.value) else f"{found.value:.6g}"
    reason = (
        f"M_p is {size} at p = {asked:.4g}, the powers below {limit.supremum:.4g} are admissible"
        + ("" if callable(rho0) else f" (seen down to the mesh width, {mesh.width:.3g})")
        + f", so every rate c below {details['rate_supremum']:.4g} follows."
    )
    return Hypothesis("H2", verdict, details["moment"], details["moment_error"], reason, details)


def _moment_verdict(limit: Admissible, p: float, asked: bool) -> str:
    doubt = min(limit.uncertainty, 1.0)
    if not asked:
        return "fails" if limit.supremum <= 0 else "holds" if limit.supremum > doubt else "undecided"
    if limit.uncertainty > 0.05 and abs(p - limit.supremum) <= doubt:
        return "undecided"
    return "holds" if p < limit.supremum - min(limit.uncertainty, 0.1) - 1e-6 else "fails"


def hypothesis_three(mesh: Mesh, rho0: Density | Floats) -> Hypothesis:
    """H3: ρ0 has a strictly positive, Lipschitz density.

    rho0 is a function of points (n, d) or cell averages (cells,). Positivity is the minimum found; the Lipschitz
    constant comes from difference quotients on a ladder of widths, classified as Lipschitz, Hölder or jump.
    """
    density = rho0 if callable(rho0) else np.asarray(rho0, dtype=float)
    least = minimum(mesh, density)
    smooth = regularity(mesh, density)
    details = {
        "minimum": least.value,
        "positivity": least.kind,
        "minimum_at": [float(c) for c in least.where],
        "kind": smooth.kind,
        "exponent": smooth.exponent,
        "exponent_uncertainty": smooth.uncertainty,
        "lipschitz_constant": smooth.constant,
        "lipschitz_constant_error": smooth.constant_error,
        "widths": smooth.widths.tolist(),
        "difference_quotients": smooth.quotients.tolist(),
    }
    place = ", ".join(f"{c:.3f}" for c in least.where)
    positive = f"its minimum is {least.value:.4g} at ({place})"
    if smooth.kind == "Lipschitz":
        size = f"it is Lipschitz with constant {smooth.constant:.4g} ± {smooth.constant_error:.1g}"
    elif smooth.kind == "Hölder":
        size = f"it is only Hölder with exponent {smooth.exponent:.3g} ± {smooth.uncertainty:.1g}"
    elif smooth.kind == "jump":
        size = "it has a jump: its difference quotients grow like 1/h"
    else:
        size = f"its difference quotients have not settled on widths down to {smooth.widths[-1]:.3g}"
    if least.kind == "zero":
        return Hypothesis("H3", "fails", least.value, 0.0, f"ρ0 is not strictly positive: {positive}; {size}.", details)
    if least.kind == "falling" and smooth.kind in ("Lipschitz", "undecided"):
        reason = f"{positive}, but falls with the cell width as it does at a zero, so positivity is open; {size}."
        return Hypothesis("H3", "undecided", least.value, least.value, reason, details)
    if smooth.kind == "undecided":
        return Hypothesis("H3", "undecided", smooth.exponent, smooth.uncertainty, f"{positive}; {size}.", details)
    verdict = "holds" if smooth.kind == "Lipschitz" else "fails"
    value = smooth.constant if verdict == "holds" else smooth.exponent
    tolerance = smooth.constant_error if verdict == "holds" else smooth.uncertainty
    return Hypothesis("H3", verdict, value, tolerance, f"ρ0 is positive, {positive}; {size}.", details)


def check_hypotheses(
    mesh: Mesh, attention: Attention, rho0: Density | Floats, p: float | None = None
) -> list[Hypothesis]:
    """H1, H2 and H3, one record each.

    rho0 is a function of points (…, d) or cell averages (cells,); a function is judged below the mesh width too.
    p: the power H2 is asked for (None: any). Where VBᵀ is not symmetric there is no E, and H2 is undecided.
    Source: low-temperature document, hypotheses 1–3; theory §1.2.
    """
    first = hypothesis_one(attention.value, attention.B)
    if first.details["asymmetry"] > ASYMMETRY:
        reason = "VBᵀ is not symmetric, so there is no dominant eigenspace E to take the moment about."
        second = Hypothesis("H2", "undecided", math.nan, math.nan, reason)
    else:
        stretch = first.details["largest_singular_value"]
        second = hypothesis_two(mesh, Projection(attention), stretch, rho0, p)
    return [first, second, hypothesis_three(mesh, rho0)]
