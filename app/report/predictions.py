"""What theory says about W2(ρ_t, Π♯ρ0) of a run: zero-temperature curve, bound, plateau and phases."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config import Config
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import subcells
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.exact_plateau import plateau_distance, plateau_shift, plateau_shift_general
from tokensphere.validation.exact_zero_temperature import moment_bound, projective_flow, projective_time
from tokensphere.validation.phases import read_phases
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]
Curve = tuple[Array, Array]
Function = Callable[[Array], Array]

POINTS = 60_000


def zero_temperature_curve(
    mesh: Mesh, attention: Attention, projection: Projection, rho0: Array, times: Array, metric: str = "chordal"
) -> Curve:
    """W2 of the β = ∞ solution from the same start: W2² = ∫ d(x_t, Πx_0)² dρ0 along the exact flow (theory §1.3 e).

    Points are equal-area parts of the cells. It ends where e^{−γt/σmin(B)} falls under their spacing: later the mass
    next to the separatrix, which is all that is left, is no longer resolved.
    """
    branching = 4 if mesh.kind == "healpix" else 2
    depth = 0
    while mesh.cells * branching ** (depth + 1) <= POINTS:
        depth += 1
    points = subcells(mesh, np.arange(mesh.cells), depth).reshape(-1, mesh.dimension)
    masses = np.repeat(rho0 * mesh.areas, len(points) // mesh.cells) * mesh.cells / len(points)
    singular = np.linalg.svd(attention.B, compute_uv=False)
    spacing = mesh.width * 0.5**depth
    reached = times[np.exp(-projection.gap * times / singular[-1]) >= spacing]
    # Φ_s multiplies the coordinates in the eigenbasis of M by e^{sμ}: no point needs to be moved to measure it, only to
    # find s where |Bᵀx| varies.
    exponents, vectors = np.linalg.eigh(projection.matrix)
    parts = (points @ vectors).T ** 2
    outside = mesh.dimension - projection.multiplicity
    along, falling = parts[outside:].sum(axis=0), 2.0 * (exponents[-1] - exponents[:outside])
    s, before, values = np.zeros(len(points)), 0.0, []
    still = np.ptp(singular) <= 1e-13 * singular[0]
    for time in reached:
        moved = points if still else projective_flow(projection.matrix, s, points)
        s = s + projective_time(projection.matrix, attention.B, moved, float(time) - before)
        before = float(time)
        across = sum(part * np.exp(-rate * s) for part, rate in zip(parts[:outside], falling, strict=True))
        squares = _squared_distances(along, np.asarray(across), metric)
        values.append(math.sqrt(float(masses @ squares) / float(masses.sum())))
    return reached, np.array(values)


def _squared_distances(along: Array, across: Array, metric: str) -> Array:
    """d(x, E∩S)² from |P_E x|² and |x − P_E x|² up to a common factor: chordal 2(1 − cos∠), or geodesic ∠²."""
    if metric == "geodesic":
        return np.arctan2(np.sqrt(across), np.sqrt(along)) ** 2
    length = np.sqrt(along + across)
    return np.asarray(2.0 * across / (length * (length + np.sqrt(along))))


def bound_curve(attention: Attention, projection: Projection, p: float, moment: float, times: Array) -> Curve:
    """Upper bound of W2 at β = ∞ from the moment M_p of H2, chordal (theory §1.3 f; ∫tan^p ≤ M_p)."""
    largest = float(np.linalg.svd(attention.B, compute_uv=False)[0])
    return times, np.array([moment_bound(projection.gap, largest, float(t), p, moment) for t in times])


def plateau_level(
    attention: Attention, projection: Projection, start: Function | None, metric: str = "chordal"
) -> float | None:
    """W2's plateau for large finite β and dim E = 1, 2√|δp| (theory §1.4); None where no formula applies."""
    if start is None or projection.multiplicity != 1 or math.isinf(attention.beta) or not attention.normalised:
        return None
    try:
        if np.allclose(attention.B, np.eye(attention.dimension), atol=1e-12):
            shift = plateau_shift(projection, start)
        else:
            shift = plateau_shift_general(projection, attention.B, start)
    except InputError:
        return None
    return plateau_distance(shift, attention.beta, metric) if math.isfinite(shift) else None


def initial_function(config: Config) -> Function | None:
    """ρ0 as a function of points (n, d) per unit area, where the configuration gives it in closed form."""
    d = config.dimension
    table = config.initial
    if table.kind == "mixture":
        parts = [(part.weight, _simple_function(part, d)) for part in table.components]
        known = [(weight, part) for weight, part in parts if part is not None]
        if len(known) < len(parts):
            return None
        total = sum(weight for weight, _ in known)
        return lambda x: np.asarray(sum(weight / total * part(x) for weight, part in known))
    return _simple_function(table, d)


def _simple_function(table: Any, d: int) -> Function | None:
    area = 4.0 * np.pi if d == 3 else 2.0 * np.pi
    match table.kind:
        case "uniform":
            return lambda x: np.full(x.shape[:-1], 1.0 / area)
        case "polynomial":
            linear = np.zeros(d) if table.linear is None else np.asarray(table.linear, dtype=float)
            quadratic = np.zeros((d, d)) if table.quadratic is None else np.asarray(table.quadratic, dtype=float)
            mass = area * (table.constant + float(np.trace(quadratic)) / d)
            return lambda x: (table.constant + x @ linear + np.sum(x @ quadratic * x, axis=-1)) / mass
        case "von_mises_fisher":
            mean = np.asarray(table.mean, dtype=float) / np.linalg.norm(table.mean)
            kappa = float(table.concentration)
            return lambda x: np.exp(kappa * (x @ mean - 1.0)) / _vmf_mass(kappa, d)
        case _:
            return None


def _vmf_mass(kappa: float, d: int) -> float:
    """∫ e^{κ(⟨m,x⟩−1)} over the sphere or the circle."""
    from scipy.special import i0e

    if d == 2:
        return float(2.0 * np.pi * i0e(kappa))
    return float(2.0 * np.pi * -np.expm1(-2.0 * kappa) / kappa) if kappa > 0 else 4.0 * np.pi


def phase_intervals(times: Array, distances: Array) -> list[tuple[str, float, float]]:
    """Named time intervals read off the curve: approach, plateau, and what follows an exit."""
    usable = np.isfinite(distances) & (distances > 0)
    time, distance = times[usable], distances[usable]
    fresh = np.concatenate([[True], np.diff(time) > 0]) if time.size else np.zeros(0, dtype=bool)
    time, distance = time[fresh], distance[fresh]
    if time.size < 3:
        return []
    found, end = read_phases(time, distance), float(time[-1])
    if math.isinf(found.plateau_begin) or found.plateau_begin >= end:
        return [("approaching the limit", 0.0, end)]
    last = min(found.plateau_end, end)
    phases = [("approaching the limit", 0.0, found.plateau_begin), ("plateau", found.plateau_begin, last)]
    if last < 0.98 * end:
        phases.append(("leaving" if math.isfinite(found.exit_time) else "drifting off", last, end))
    return [phase for phase in phases if phase[2] > phase[1]]
