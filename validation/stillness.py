"""Slow is not converged: dissipation, the predicted slow rate, and whether a state may be called stationary."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.validation.reached import Cluster, Reached, reached_state
from tokensphere.validation.terminal import ClusterRates, one_cluster_rates, spectrum, two_cluster_rates

Floats = NDArray[np.float64]

ALIGNED = 0.02  # radians beyond the mesh width within which a cluster centre counts as lying on an eigenvector


def dissipation(mesh: Mesh, attention: Attention, density: Floats) -> float:
    """∫|v[ρ]|² dρ at the cell centres for cell averages (cells,): 0 exactly at a stationary state.

    A collapsed cluster keeps about (|λ|h)²/10 on a mesh of width h.
    """
    points = mesh.centers
    mean, log_normaliser = AttentionIntegral(mesh, attention, points)(density)
    pulled = mean @ attention.value.T
    if not attention.normalised and not attention.zero_temperature:
        pulled = pulled * np.exp(log_normaliser)[:, None]
    velocity = pulled - np.sum(pulled * points, axis=1, keepdims=True) * points
    return float(np.sum(velocity**2, axis=1) @ (density * mesh.areas))


def slow_rate(clusters: tuple[Cluster, ...], attention: Attention) -> float:
    """Rate |V| m_j/m_i e^{−β(⟨Bᵀc_i,c_i⟩−⟨Bᵀc_i,c_j⟩)}, largest over pairs: how fast clusters move each other.

    For B = I and equal masses it is e^{−β(1−cos φ)} of theory §1.6. 0 for fewer than two clusters.
    """
    largest = 0.0
    for one in clusters:
        image = attention.B.T @ one.center
        for other in clusters:
            if other is not one:
                gap = attention.beta * float(image @ (one.center - other.center))
                largest = max(largest, other.mass / one.mass * math.exp(-max(gap, 0.0)))
    return largest * float(np.linalg.norm(attention.value, 2))


def _rates(reached: Reached, attention: Attention, mesh: Mesh) -> ClusterRates | None:
    """Stability rates where the clusters are one or a pair ±e on a real eigenvector of V, else None."""
    if reached.name not in ("one cluster", "two clusters") or reached.nearest < 0:
        return None
    direction = spectrum(attention.value, attention.B).directions[reached.nearest]
    cosines = np.array([float(cluster.center @ direction.vector) for cluster in reached.clusters])
    aligned = np.arccos(np.minimum(np.abs(cosines), 1.0)).max() <= ALIGNED + mesh.width
    if not aligned:
        return None
    if len(cosines) == 1:
        return one_cluster_rates(direction)
    return two_cluster_rates(direction, attention.beta) if cosines[0] * cosines[1] < 0 else None


@dataclass(frozen=True)
class Stillness:
    """Verdict on the last state of a run.

    state: "stationary" (still, and a stable state of §1.6), "rotating", "slow" (still for the eye, but not a stable
    state: it will move on) or "moving". speed: √dissipation in units of |V|; threshold: what counts as still, at least
    the mesh's own floor; slow_rate: the predicted rate of the slow motion; rates: those of §1.6 where they apply.
    """

    state: str
    dissipation: float
    speed: float
    threshold: float
    slow_rate: float
    rates: ClusterRates | None
    reached: Reached
    reason: str


def stillness(mesh: Mesh, attention: Attention, density: Floats, still: float = 1e-3) -> Stillness:
    """Is a density (cells,) stationary, slow or moving? A metastable state is never called stationary.

    still: root-mean-square speed in units of |V| below which nothing seems to move; the floor h/2 of a collapsed
    cluster is added. Finite β. Source: theory §1.6, "slowing down is not convergence".
    """
    reached = reached_state(mesh, density, attention.value, attention.B, attention.beta)
    loss = dissipation(mesh, attention, density)
    size = float(np.linalg.norm(attention.value, 2))
    speed = math.sqrt(loss) / size
    threshold = still + mesh.width / 2
    slow = slow_rate(reached.clusters, attention)
    rates = _rates(reached, attention, mesh)

    def answer(state: str, reason: str) -> Stillness:
        return Stillness(state, loss, speed, threshold, slow, rates, reached, reason)

    if reached.name == "rotating":
        return answer("rotating", f"the cluster turns at the speed {speed:.3g}|V|: no stationary limit.")
    if speed > threshold:
        return answer("moving", f"the density moves at {speed:.3g}|V|, above {threshold:.3g}.")
    if rates is not None and rates.stable:
        return answer("stationary", f"{reached.name} on an eigenvector of V, stable: largest rate {rates.largest:.3g}.")
    why = f"it is made of {len(reached.clusters)} parts"
    if reached.name == "smeared":
        why = f"it is smeared, beta times its variance is {reached.scaled_variance:.3g}"
    elif rates is not None:
        why = f"its largest rate is {rates.largest:.3g}"
    return answer(
        "slow",
        f"nothing moves faster than {threshold:.3g}|V|, but the state is not a stable one ({why}); "
        f"clusters pull each other at the rate {slow:.3g}: not converged.",
    )
