"""The phases of a run: concentration, plateau, exit and terminal state, and when theory expects the exit."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.projection import Projection
from tokensphere.validation.terminal import spectrum, two_cluster_rates

Floats = NDArray[np.float64]

COARSE = 0.1  # h√(β|Bᵀe|) above which exit times are wrong by more than about a percent: numerical diffusion feeds y*


@dataclass(frozen=True)
class Thresholds:
    """Distances that bound the phases: concentrated below `concentrated`; the plateau lies within the factor
    `plateau_factor` of the smallest distance; an exit rises above `outside` after having been below `inside`.
    `still` is the root-mean-square speed, in units of |V|, below which a state counts as not moving."""

    concentrated: float = 0.2
    plateau_factor: float = 1.1
    inside: float = 0.12
    outside: float = 0.15
    still: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 < self.inside <= self.outside:
            raise InputError(
                f"inside is {self.inside} and outside {self.outside}; 0 < inside <= outside is needed, raise outside."
            )


def distance_to_eigenspace(mesh: Mesh, densities: Floats, basis: Floats) -> Floats:
    """Chordal W2 of ρ to E∩S, (∫2(1−|P_E x|)dρ)^{1/2}, for densities (saves, cells) or (cells,).

    basis (d, k) spans E. Cell averages stand at the cell centres: a collapsed cluster reads about h/3 instead of 0.
    Source: theory §1.3 (e).
    """
    squares = 2 * (1 - np.minimum(np.linalg.norm(mesh.centers @ basis, axis=1), 1.0)) * mesh.areas
    masses = np.atleast_2d(densities) @ mesh.areas
    return np.asarray(np.sqrt(np.atleast_2d(densities) @ squares / masses).reshape(np.shape(densities)[:-1]))


def crossing_time(times: Floats, values: Floats, level: float, *, rising: bool, after: int = 0) -> float:
    """First time from index `after` at which a curve crosses `level`, linear in log value between saves; inf if never.

    rising: from below to level or above, else from above to level or below. A curve that starts beyond it gives its
    first time.
    """
    sign = 1.0 if rising else -1.0
    with np.errstate(divide="ignore"):
        gap = sign * (np.log(values[after:]) - math.log(level))
    beyond = np.flatnonzero(gap >= 0)
    if len(beyond) == 0:
        return math.inf
    index = int(beyond[0])
    if index == 0:
        return float(times[after])
    low, high = gap[index - 1], gap[index]
    share = 1.0 if not np.isfinite(low) else -low / (high - low)
    start = times[after + index - 1]
    return float(start + share * (times[after + index] - start))


@dataclass(frozen=True)
class Phases:
    """Times of the phases read off one curve; inf means not reached by the end of the run.

    concentration_time; plateau_begin, plateau_end and plateau (the smallest distance; nan where the distance still
    falls at the end by more than the plateau factor per unit of the concentration time); exit_time.
    """

    concentration_time: float
    plateau_begin: float
    plateau_end: float
    plateau: float
    exit_time: float


def read_phases(times: Floats, distances: Floats, thresholds: Thresholds | None = None) -> Phases:
    """Phases of a curve distance(t), arrays (saves,): the distance to E∩S or W2 to the limit.

    Raises InputError for fewer than three saves or times that do not increase.
    """
    limits = thresholds or Thresholds()
    if len(times) < 3 or np.any(np.diff(times) <= 0) or len(times) != len(distances):
        raise InputError("phases need at least 3 increasing times and one distance each; save more often.")
    concentration = crossing_time(times, distances, limits.concentrated, rising=False)
    inside = np.flatnonzero(distances < limits.inside)
    exit_time = math.inf
    if len(inside):
        exit_time = crossing_time(times, distances, limits.outside, rising=True, after=int(inside[0]))
    before = np.flatnonzero((times >= min(concentration, times[-1])) & (times <= exit_time))
    if math.isinf(concentration) or len(before) == 0:
        return Phases(concentration, math.inf, math.inf, math.nan, exit_time)
    lowest = int(before[np.argmin(distances[before])])
    near = distances <= limits.plateau_factor * distances[lowest]
    first, last = lowest, lowest
    while first > 0 and near[first - 1]:
        first -= 1
    while last < len(times) - 1 and near[last + 1]:
        last += 1
    # a curve that is still falling at the end has no plateau yet
    falling = lowest == len(times) - 1 and times[last] - times[first] < 0.5 * concentration
    plateau = math.nan if falling else float(distances[lowest])
    begin = math.inf if falling else float(times[first])
    return Phases(concentration, begin, math.inf if falling else float(times[last]), plateau, exit_time)


@dataclass(frozen=True)
class ExitPrediction:
    """When theory expects the metastable state on E to end.

    case: "A" (e also an eigenvector of Bᵀ, exit logarithmic in β), "B" (e not one, exit linear in β), "stays" or
    "open". slope: d(exit time)/d(log β) in case A, d/dβ in case B. time: the leading-order exit time in case B, nan
    in case A, whose constant depends on ρ0; inf for "stays". decay: Γ, the rate at which ρ_t(y*) falls.
    """

    case: str
    slope: float
    time: float
    decay: float
    reason: str


def decay_at_maximiser(projection: Projection, interaction: Floats) -> float:
    """Γ: the rate at which the zero-temperature density falls at y* = Bᵀe/|Bᵀe|, for k = 1.

    Backwards in time y* runs to the eigenvector of the smallest eigenvalue μ_j it has a part in, where v = 0 and
    div v = (tr M − d μ_j)/|Bᵀe_j|. Source: theory §1.5; on S² this is not γ unless all other eigenvalues are equal.
    """
    values, vectors = np.linalg.eigh(projection.matrix)
    target = interaction.T @ projection.basis[:, 0]
    target = target / np.linalg.norm(target)
    # all eigenvectors of one value together: within a repeated eigenvalue the part that y* has counts
    for value in np.unique(np.round(values, 12)):
        space = vectors[:, np.abs(values - value) < 1e-9 * max(1.0, float(np.abs(values).max()))]
        part = space @ (space.T @ target)
        size = float(np.linalg.norm(part))
        if size > 1e-9:
            stretch = float(np.linalg.norm(interaction.T @ part)) / size
            return float((np.trace(projection.matrix) - len(target) * value) / stretch)
    raise AssertionError("a unit vector has a part in some eigenspace")


def predict_exit(attention: Attention) -> ExitPrediction:
    """The case of §1.5 an attention is in, and the exit it expects; "open" where dim E > 1 or VBᵀ is not symmetric."""
    try:
        projection = Projection(attention)
    except InputError:
        return ExitPrediction("open", math.nan, math.nan, math.nan, "VBᵀ is not symmetric: there is no E to leave.")
    if projection.multiplicity != 1 or math.isinf(attention.beta) or not attention.normalised:
        reason = "theory predicts an exit only for softmax attention, dim E = 1 and finite beta."
        return ExitPrediction("open", math.nan, math.nan, math.nan, reason)
    e = projection.basis[:, 0]
    image = attention.B.T @ e
    length = float(np.linalg.norm(image))
    cosine = float(image @ e) / length
    if 1 - abs(cosine) < 1e-10:
        return _case_a(attention, projection, length)
    decay = decay_at_maximiser(projection, attention.B)
    barrier = length * (1 - abs(cosine))
    if decay <= 0:
        reason = f"the density at y* does not fall (Γ = {decay:.4g}): theory expects no exit by release."
        return ExitPrediction("open", math.nan, math.nan, decay, reason)
    reason = (
        f"E is not an eigenspace of V; the cluster is held until the density at y* has fallen by "
        f"exp(−{barrier:.4g} beta), at the rate {decay:.4g}."
    )
    return ExitPrediction("B", barrier / decay, attention.beta * barrier / decay, decay, reason)


def _case_a(attention: Attention, projection: Projection, length: float) -> ExitPrediction:
    e = projection.basis[:, 0]
    found = spectrum(attention.value, attention.B)
    direction = max(found.directions, key=lambda item: abs(float(item.vector @ e)))
    rates = two_cluster_rates(direction, attention.beta)
    gamma = projection.gap / length
    if rates.stable:
        reason = f"the pair on E is stable with largest rate {rates.largest:.4g}: no exit."
        return ExitPrediction("stays", 0.0, math.inf, gamma, reason)
    leaving = float(np.nanmax([rates.rotation, rates.symmetric]))
    if leaving <= 0:
        reason = "on E only single particles are unstable: the cluster smears and does not move away."
        return ExitPrediction("open", math.nan, math.nan, gamma, reason)
    slope = 1 / (2 * gamma) + 1 / (2 * leaving)
    reason = f"E is an eigenspace of V but unstable at the rate {leaving:.4g}: the exit grows by {slope:.4g} log beta."
    return ExitPrediction("A", slope, math.nan, gamma, reason)


@dataclass(frozen=True)
class Resolution:
    """Whether a mesh is fine enough for exit times at this β: value h√(β|Bᵀe|), limit, and what resolution would be."""

    value: float
    limit: float
    fine_enough: bool
    needed: int
    reason: str


def resolution(mesh: Mesh, attention: Attention) -> Resolution:
    """Compare the cell width h with the kernel width (β σmax(B))^{−1/2}: cells must shrink as β^{−1/2}."""
    stretch = float(np.linalg.svd(attention.B, compute_uv=False)[0])
    value = 0.0 if math.isinf(attention.beta) else mesh.width * math.sqrt(attention.beta * stretch)
    fine = value <= COARSE
    factor = max(value / COARSE, 1.0)
    needed = mesh.resolution * 2 ** math.ceil(math.log2(factor) - 1e-9)
    word = "nside" if mesh.kind == "healpix" else "cells"
    reason = f"h·√(beta·σmax(B)) is {value:.3g}, {'at most' if fine else 'above'} {COARSE}" + (
        "." if fine else f": exit times come out wrong by per cents, take {word} = {needed}."
    )
    return Resolution(value, COARSE, fine, needed, reason)
