"""How much mass the finite-β drift carries across the separatrix {⟨x,e⟩ = 0}: the plateau of W2 for k = 1.

With δp the change of mass on e's side, W2(ρ^β, Π♯ρ0) settles at 2√|δp| (chordal) or π√|δp| (geodesic).
Densities are per unit area, dS is arc length on S² and the sum over two points on S¹.  Source: theory §1.4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from tokensphere.meshes.errors import InputError
from tokensphere.validation.exact_zero_temperature import density as density_at
from tokensphere.validation.exact_zero_temperature import flow, projective_flow, projective_time
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]
Density = Callable[[Array], Array]


def plateau_shift(projection: Projection, density: Density, points: int = 512) -> float:
    """lim β·δp for B = I: (μ1/2) ∮ ∂_eρ0(x) Σ_{j≥2} ⟨x,e_j⟩²/(μ1−μ_j) dS.

    `density` maps (n, d) unit vectors to ρ0; its derivative is taken by central differences along the great circle
    through e. Raises InputError unless k = 1 and d is 2 or 3.
    """
    separatrix, weights, e = _separatrix(projection, points)
    values, vectors = np.linalg.eigh(projection.matrix)
    top, rest = values[-1], values[:-1]
    form = (separatrix @ vectors[:, :-1]) ** 2 @ (1.0 / (top - rest))
    slope = _directional(density, separatrix, e)
    return float(0.5 * top * np.sum(weights * slope * form))


def plateau_shift_general(
    projection: Projection,
    B: Array,
    density: Density,
    *,
    end: float | None = None,
    panels: int = 40,
    points: int = 128,
) -> float:
    """lim β·δp for any invertible B: μ1 ∫_0^∞ ∮ ρ_t(x)|Bᵀx|^{−1} ⟨B^{−1}e, ∇log ρ_t(Bᵀx/|Bᵀx|)⟩ dS dt.

    ρ_t is the zero-temperature density; ∇ is the tangential gradient by central differences. Time is integrated by
    Gauss–Legendre panels on [0, end], end = 25 σmax(B)/γ unless given or out of reach of double precision.
    Raises InputError unless k = 1, and where that reach leaves a tail above 1e−3.
    """
    separatrix, weights, e = _separatrix(projection, points)
    M = projection.matrix
    initial = density(separatrix)
    pull = np.asarray(np.linalg.solve(B, e), dtype=np.float64)
    if end is None:
        end = _horizon(projection, B)
    nodes, node_weights = np.polynomial.legendre.leggauss(4)
    total = 0.0
    for panel in range(panels):
        # Panels grow: the integrand decays exponentially.
        low, high = end * (np.array([panel, panel + 1]) / panels) ** 2
        for node, weight in zip(nodes, node_weights, strict=True):
            t = float(0.5 * (low + high) + 0.5 * (high - low) * node)

            def evolved(x: Array, time: float = t) -> Array:
                return density_at(M, B, density, x, time)

            # The separatrix is invariant: its points are carried by the flow, and stay where ρ_t on it is.
            moved, mass = _carried(M, B, separatrix, e, t)
            length = np.linalg.norm(moved @ B, axis=-1)
            slope = _log_slope(evolved, moved @ B / length[:, None], pull)
            ring = float(np.sum(weights * initial * mass / length * slope))
            total += 0.5 * (high - low) * weight * ring
    return float(projection.eigenvalues[0].value * total)


def plateau_distance(shift: float, beta: float, metric: str = "chordal") -> float:
    """W2 plateau for β·δp = shift: 2√|δp| (chordal), π√|δp| (geodesic); ~ β^{−1/2}."""
    factor = np.pi if metric == "geodesic" else 2.0
    return float(factor * np.sqrt(abs(shift) / beta))


def _separatrix(projection: Projection, points: int) -> tuple[Array, Array, Array]:
    if projection.multiplicity != 1 or projection.dimension not in (2, 3):
        raise InputError("the plateau formula needs dim E = 1 and d = 2 or 3; there is no separatrix otherwise.")
    e = projection.basis[:, 0]
    across = np.linalg.svd(e[None, :])[2][1:]
    if projection.dimension == 2:
        return np.concatenate([across, -across]), np.ones(2), e
    angle = 2 * np.pi * np.arange(points) / points
    circle = np.cos(angle)[:, None] * across[0] + np.sin(angle)[:, None] * across[1]
    return circle, np.full(points, 2 * np.pi / points), e


def _horizon(projection: Projection, B: Array) -> float:
    """25 σmax/γ, but no later than the inverse flow keeps digits: e^{(μ1−μd)t/σmin} < 1e14."""
    singular = np.linalg.svd(B, compute_uv=False)
    values = projection.eigenvalues
    reach = 32.0 * float(singular[-1]) / (values[0].value - values[-1].value)
    wanted = 25.0 * float(singular[0]) / projection.gap
    if reach < wanted and np.exp(-projection.gap * reach / singular[0]) > 1e-3:
        raise InputError(
            "the plateau integral needs longer times than double precision allows for this spectrum and B; "
            "give end= yourself, or use plateau_shift if B is the identity."
        )
    return float(min(wanted, reach))


def _carried(matrix: Array, B: Array, points: Array, e: Array, t: float, step: float = 1e-3) -> tuple[Array, Array]:
    """Points of the separatrix at time t, and ρ_t dS_t / (ρ_0 dS_0) there, from forward quantities only.

    Inverting the flow instead loses the digits of e^{(μ2−μd)t}, the compression within the separatrix.
    """
    s = projective_time(matrix, B, points, t)
    moved = _onto(e, projective_flow(matrix, s, points))
    speeds = np.linalg.norm(moved @ B, axis=-1) / np.linalg.norm(points @ B, axis=-1)
    values, vectors = np.linalg.eigh(matrix)
    growth = logsumexp(2 * s[:, None] * values, b=(points @ vectors) ** 2, axis=-1) / 2
    ratio = speeds * np.exp(len(e) * growth - s * np.trace(matrix))
    if len(e) == 2:
        return moved, ratio
    tangent = np.cross(e, points)

    def at(offset: float) -> Array:
        return _onto(e, flow(matrix, B, np.cos(offset) * points + np.sin(offset) * tangent, t))

    difference = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step)
    return moved, np.asarray(ratio * np.linalg.norm(difference, axis=-1))


def _onto(e: Array, points: Array) -> Array:
    """Back onto the separatrix, which round-off leaves at rate μ1 − μ2."""
    flat = points - (points @ e)[:, None] * e
    return np.asarray(flat / np.linalg.norm(flat, axis=-1, keepdims=True))


def _directional(density: Density, points: Array, direction: Array, step: float = 1e-3) -> Array:
    """Fourth-order central difference along the great circle from x towards a direction orthogonal to it."""

    def at(offset: float) -> Array:
        return density(np.cos(offset) * points + np.sin(offset) * direction)

    return np.asarray((8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step))


def _log_slope(density: Density, points: Array, vector: Array, step: float = 1e-3) -> Array:
    """⟨vector, ∇log ρ⟩ with the tangential gradient, at each point."""
    tangent = vector - np.sum(points * vector, axis=-1, keepdims=True) * points
    size = np.linalg.norm(tangent, axis=-1, keepdims=True)
    unit = np.divide(tangent, size, out=np.zeros_like(tangent), where=size > 0)
    return np.asarray(size[:, 0] * _directional(lambda x: np.log(density(x)), points, unit, step))
