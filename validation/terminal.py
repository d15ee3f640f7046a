"""The terminal phase: stability of one and two clusters, and what Conjecture 1 says of V."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError

Floats = NDArray[np.float64]

SAME = 1e-9  # eigenvalues closer than this, relative to the spectral radius, count as one


@dataclass(frozen=True)
class Direction:
    """A real eigenvector of V: eigenvalue λ, unit vector e (d,), b = eᵀBe, and the other eigenvalues of V."""

    value: float
    vector: Floats
    interaction: float
    others: NDArray[np.complex128]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of V and what is dominant in it.

    values (d,) by falling real part; kind: "real", "complex pair" or "negative" (real with none positive).
    dominant, dominant_in_modulus: orthonormal bases (d, k) of the real invariant subspaces that belong to the largest
    real part and to the largest modulus; `rotates` says that the dominant eigenvalue is not real, with the angular
    frequency |Im|.
    """

    values: NDArray[np.complex128]
    kind: str
    dominant: Floats
    dominant_in_modulus: Floats
    rotates: bool
    frequency: float
    directions: tuple[Direction, ...]


def _invariant_subspace(value: Floats, chosen: NDArray[np.complex128], vectors: NDArray[np.complex128]) -> Floats:
    parts = np.column_stack([vectors.real, vectors.imag])
    left, singular, _ = np.linalg.svd(parts, full_matrices=False)
    return np.asarray(left[:, singular > 1e-8 * max(singular[0], 1e-300)])


def spectrum(value: Floats, interaction: Floats) -> Spectrum:
    """Spectrum of V (d, d) with the bilinear form B (d, d) along its real eigenvectors.

    Raises InputError for a matrix that is not square. Source: theory §1.6; Conjecture 1.
    """
    V, B = np.asarray(value, dtype=float), np.asarray(interaction, dtype=float)
    if V.ndim != 2 or V.shape != B.shape or V.shape[0] != V.shape[1]:
        raise InputError(f"V has shape {V.shape} and B {B.shape}; both must be square of one size, give such matrices.")
    values, vectors = np.linalg.eig(V)
    order = np.lexsort((-np.abs(values.imag), -values.real))
    values, vectors = values[order].astype(complex), vectors[:, order].astype(complex)
    close = SAME * max(float(np.abs(values).max()), np.finfo(float).tiny)
    real = np.abs(values.imag) <= close
    top = values.real >= values.real.max() - close
    largest = np.abs(values) >= np.abs(values).max() - close
    kind = "complex pair" if not real.all() else "negative" if np.all(values.real <= 0) else "real"
    rotates = not bool(real[top].any())
    directions = []
    for index in np.flatnonzero(real):
        e = vectors[:, index].real
        e = e / np.linalg.norm(e)
        e = e * np.sign(e[np.argmax(np.abs(e))])
        directions.append(Direction(float(values[index].real), e, float(e @ B @ e), np.delete(values, index)))
    return Spectrum(
        values,
        kind,
        _invariant_subspace(V, values[top], vectors[:, top]),
        _invariant_subspace(V, values[largest], vectors[:, largest]),
        rotates,
        float(np.abs(values[top].imag).max()) if rotates else 0.0,
        tuple(directions),
    )


@dataclass(frozen=True)
class ClusterRates:
    """Rates of the perturbations of one cluster δ_e or of the pair ½(δ_e + δ_−e), e an eigenvector of V.

    particle: one particle leaves (−λ for one cluster, −τλ for the pair, τ = tanh(βb));
    rotation: the cluster, or the pair as a line, turns towards another eigenvector (ν−λ; τ(ν−λ));
    symmetric: both clusters of the pair move the same way (ν−τλ; nan for one cluster).
    The largest real part over the other eigenvalues ν is given. A state is stable when all of them are negative.
    """

    clusters: int
    particle: float
    rotation: float
    symmetric: float

    @property
    def largest(self) -> float:
        return float(np.nanmax([self.particle, self.rotation, self.symmetric]))

    @property
    def stable(self) -> bool:
        return self.largest < 0


def one_cluster_rates(direction: Direction) -> ClusterRates:
    """−λ for a particle, ν−λ for the mean (the largest real part over the other ν; nan where all equal λ)."""
    return ClusterRates(1, -direction.value, _largest(_distinct(direction) - direction.value), np.nan)


def _distinct(direction: Direction) -> Floats:
    """Real parts of the eigenvalues other than λ itself: inside its eigenspace a cluster turns at no cost."""
    others = direction.others
    close = SAME * max(abs(direction.value), float(np.abs(others).max()), np.finfo(float).tiny)
    return np.asarray(others[np.abs(others - direction.value) > close].real)


def _largest(rates: Floats) -> float:
    return float(np.max(rates)) if len(rates) else np.nan


def two_cluster_rates(direction: Direction, beta: float) -> ClusterRates:
    """−τλ, τ(ν−λ) and ν−τλ with τ = tanh(βb): the largest real parts over the other eigenvalues ν.

    For the masses ½, ½ of the metastable state; softmax attention. Source: theory §1.6.
    """
    tau = float(np.tanh(beta * direction.interaction)) if np.isfinite(beta) else float(np.sign(direction.interaction))
    return ClusterRates(
        2,
        -tau * direction.value,
        _largest(tau * (_distinct(direction) - direction.value)),
        _largest(direction.others.real - tau * direction.value),
    )


@dataclass(frozen=True)
class Prediction:
    """The terminal state that linear stability predicts.

    name: "one cluster", "two clusters", "one or two clusters", "smeared", "rotating" or "undecided".
    basis: (d, k) the eigenspace of V it lies on; value: its eigenvalue (nan where rotating).
    dominance: "largest real part", "largest modulus", "both" or "neither": which reading of Conjecture 1 it obeys.
    leaves: whether the metastable state on E is unstable and the density must move on; rate: the predicted rate of the
    slowest or leaving motion at the state on E (nan where E is not spanned by an eigenvector of V).
    reason: one sentence.
    """

    name: str
    basis: Floats
    value: float
    dominance: str
    leaves: bool
    rate: float
    reason: str


def _dominance(found: Spectrum, value: float) -> str:
    close = SAME * max(float(np.abs(found.values).max()), 1.0)
    real = value >= found.values.real.max() - close
    modulus = abs(value) >= np.abs(found.values).max() - close
    return {(True, True): "both", (True, False): "largest real part", (False, True): "largest modulus"}.get(
        (bool(real), bool(modulus)), "neither"
    )


def _metastable_direction(found: Spectrum, start: Floats | None) -> Direction | None:
    """The eigenvector of V that spans E, if E is a line and one does."""
    if start is None or start.ndim != 2 or start.shape[1] != 1:
        return None
    matching = [item for item in found.directions if abs(float(item.vector @ start[:, 0])) > 1 - 1e-9]
    return matching[0] if matching else None


def predict_terminal(value: Floats, interaction: Floats, beta: float, start: Floats | None = None) -> Prediction:
    """Which state the density ends in, from the linear stability of §1.6.

    value V (d, d), interaction B (d, d); start: basis (d, k) of E, on which the metastable state sits with mass on both
    sides (None: no preference). A stable pair on E stays. Otherwise the pair leaves along its most unstable motion:
    - V dominated by a complex pair: a cluster forms and turns for ever;
    - no cluster state of any eigenvector is stable: the density stays smeared (λ < 0 < b: particles leave one by one);
    - else the stable eigenvectors of V are candidates: one alone is the answer; of several the one with the largest
      real part.
    This is a statement about attractors, not a proof; it is Conjecture 1 where `dominance` is not "neither".
    """
    found = spectrum(value, interaction)
    begin = _metastable_direction(found, start)
    pair = two_cluster_rates(begin, beta) if begin is not None else None
    rate = pair.largest if pair is not None else np.nan
    if begin is not None and pair is not None and pair.stable:
        reason = f"the pair on E is stable: its largest rate is {rate:.4g}, so the metastable state is also terminal."
        return _stay(found, begin, rate, reason)
    if found.rotates and not _stable_states(found, beta):
        if found.values.real.max() <= 0:
            reason = "the dominant eigenvalues of V are complex with no positive real part: no cluster forms to turn."
            return Prediction("undecided", found.dominant, np.nan, "both", True, rate, reason)
        reason = f"the dominant eigenvalues of V are complex (frequency {found.frequency:.4g}): no stationary limit."
        return Prediction("rotating", found.dominant, np.nan, "both", True, rate, reason)
    stable = _stable_states(found, beta)
    if not stable:
        return _smeared(found, begin, rate)
    best, kinds = max(stable, key=lambda item: item[0].value)
    name = kinds[0] if len(kinds) == 1 else "one or two clusters"
    reason = f"of the stable eigenvalues of V {best.value:.4g} has the largest real part; {name} on its eigenvector."
    same = [item.vector for item in found.directions if abs(item.value - best.value) <= SAME * abs(best.value)]
    space = np.column_stack(same)
    return Prediction(name, np.linalg.qr(space)[0], best.value, _dominance(found, best.value), True, rate, reason)


def _stay(found: Spectrum, begin: Direction, rate: float, reason: str) -> Prediction:
    return Prediction(
        "two clusters", begin.vector[:, None], begin.value, _dominance(found, begin.value), False, rate, reason
    )


def _stable_states(found: Spectrum, beta: float) -> list[tuple[Direction, list[str]]]:
    states = []
    for direction in found.directions:
        kinds = []
        if one_cluster_rates(direction).stable:
            kinds.append("one cluster")
        if two_cluster_rates(direction, beta).stable:
            kinds.append("two clusters")
        if kinds:
            states.append((direction, kinds))
    return states


def smeared_variance(value: float, other: float) -> float:
    """β·Var, along the eigenvector of ν = `other`, of a density smeared about that of λ = `value`: λ/(ν−λ), ν < λ < 0.

    A Gaussian of variance s² tilted by the kernel has its mean at θβs²/(1+βs²); P_x V of it vanishes for all θ when
    that factor is λ/ν. 1 for V = diag(−1, −2). Leading order in 1/β.
    """
    return value / (other - value)


def _smeared(found: Spectrum, begin: Direction | None, rate: float) -> Prediction:
    """No cluster is stable: attention repels (λ < 0 < b); the density balances about the least repelling axis."""
    axis = begin if begin is not None else max(found.directions, key=lambda item: item.value)
    widths = [smeared_variance(axis.value, float(other)) for other in _distinct(axis) if other < axis.value < 0]
    listed = ", ".join(f"{width:.3g}" for width in widths)
    balance = f", with beta times its variance tending to {listed}" if widths else ""
    reason = (
        "no cluster on an eigenvector of V is stable, because every eigenvalue that attracts is negative: the density "
        f"stays smeared about the eigenvector of {axis.value:.4g}{balance}."
    )
    return Prediction("smeared", axis.vector[:, None], axis.value, _dominance(found, axis.value), False, rate, reason)
