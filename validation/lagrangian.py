"""A deterministic Lagrangian solver: the cells of a mesh carried by the flow with their masses and log densities.

An oracle for the finite volumes that shares no flux with them.  The nodes of every piece are moved by the flow; the
masses sit at the centroids and attract by exact all-pairs attention.  A piece stretched beyond its size is halved
across its longest edge, so that a separatrix never leaves one torn between two clusters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.integrators import checked_times, integrate, on_sphere
from tokensphere.validation.particle_fields import velocity_at
from tokensphere.validation.projection import Projection
from tokensphere.validation.simplices import corners_of, edges, equal_parts, halving, mesh_simplices, shape_values

Array = NDArray[np.float64]
Field = Callable[[Array], Array]
Torn = Callable[[Array, Array], NDArray[np.bool_]]

STRETCH = 0.5
"""Pieces may stretch by e^STRETCH between two looks at their size."""

STEPS = 2
"""RK4 steps between two looks."""

TOLERANCE = 1e-8
"""Local error of a step where the steps adapt."""

LONGEST = 2.0
"""A piece longer than this many cell widths is halved."""

DIFFERENCE = 1e-4
"""Step of the central differences in div v: its square, and round-off over it, are both about 1e−8."""

INSIDE = 4
"""Parts of an edge of a piece where something is integrated over it."""


@dataclass(frozen=True, eq=False)
class Parcels:
    """Pieces of mass carried by the flow, at one time.

    Attributes:
        time: t.
        points: (n, nodes, d) nodes of quadratic simplices, or (n, 1, d) for plain weighted tokens.
        log_densities: (n, nodes) log ρ at the nodes, or None where it is not followed.
        masses: (n,) of sum 1.
        width: h of the mesh they started on.
    """

    time: float
    points: Array
    log_densities: Array | None
    masses: Array
    width: float

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.masses)

    @property
    def pieces(self) -> bool:
        """Whether the parcels have an extent."""
        return bool(self.points.shape[1] > 1)

    def inside(self, parts: int) -> Iterator[Array]:
        """Points (n, d) at the middles of equal parts of every piece, one place after another."""
        if not self.pieces:
            yield self.points[:, 0]
            return
        for weights in shape_values(equal_parts(corners_of(self.points.shape[1]), parts)):
            yield on_sphere(np.einsum("k,nkd->nd", weights, self.points))

    @property
    def centers(self) -> Array:
        """(n, d) where the masses act."""
        return next(self.inside(1))


def mesh_parcels(mesh: Mesh, density: ArrayLike, *, pieces: bool = True, log_densities: bool = False) -> Parcels:
    """A density as parcels: its cells, cut into simplices, or with pieces=False weighted tokens at the centroids.

    Raises InputError for a density that is not (cells,), finite and non-negative with mass 1.
    """
    averages = np.asarray(density, dtype=np.float64)
    if averages.shape != (mesh.cells,) or not np.isfinite(averages).all() or averages.min() < 0:
        raise InputError(
            f"a density of shape {averages.shape} cannot be carried from {mesh.cells} cells; give one finite value "
            "of at least 0 per cell."
        )
    masses = averages * mesh.areas
    if abs(masses.sum() - 1) > 1e-9:
        raise InputError(f"the density has mass {masses.sum():.12g}, but a law has mass 1; divide it by its mass.")
    points = mesh_simplices(mesh) if pieces else np.array(mesh.centers[:, None])
    shares = len(points) // mesh.cells
    with np.errstate(divide="ignore"):
        logs = np.repeat(np.log(averages), shares)[:, None] + np.zeros(points.shape[:2]) if log_densities else None
    return Parcels(0.0, points, logs, np.repeat(masses / masses.sum() / shares, shares), mesh.width)


def everywhere(points: Array, lengths: Array) -> NDArray[np.bool_]:
    """Every long piece may be halved."""
    return np.ones(len(points), dtype=bool)


def near_separatrix(projection: Projection) -> Torn:
    """Only pieces within half their length of E^⊥, which the flow tears: the others go whole to one place of E."""

    def torn(points: Array, lengths: Array) -> NDArray[np.bool_]:
        return np.asarray(projection.length(points).min(axis=1) <= lengths / 2)

    return torn


def advance_parcels(
    attention: Attention,
    start: Parcels,
    times: ArrayLike,
    *,
    method: str = "auto",
    tolerance: float | None = None,
    torn: Torn = everywhere,
) -> Iterator[Parcels]:
    """Parcels at each of `times` (none before start.time), moved by v = P_x V E[y] with the law Σ m_i δ(x_i).

    Masses never change; d log ρ/dt = −div v along the flow.  Pieces are halved where the flow stretches them and `torn`
    (nodes (n, nodes, d), longest edges (n,)) agrees: `near_separatrix` keeps their number small.  Without `tolerance`
    pieces take two RK4 steps per look, which errs less than their size; tokens keep a local error of 1e−8.
    Source: first document, equation (2); theory §1.3 for the density.
    """
    parcels = start
    for end in checked_times(times):
        while parcels.time < end:
            parcels = _advance(attention, parcels, float(end), method, tolerance, torn)
        yield parcels


def distance_to_limit(parcels: Parcels, projection: Projection, metric: str = "chordal", p: float = 2.0) -> float:
    """W_p(ρ, Π♯ρ) = (∫ d(x, Πx)^p dρ)^{1/p}, integrated inside the pieces.

    At β = inf no mass crosses the separatrix and Π♯ρ_t = Π♯ρ_0.  Source: theory §1.3(d), (e).
    """
    powers = [parcels.masses @ projection.nearest_distance(place, metric) ** p for place in parcels.inside(INSIDE)]
    return float(np.mean(powers) ** (1.0 / p))


def deposit(mesh: Mesh, parcels: Parcels, parts: int = 16) -> Array:
    """Cell averages (cells,) on a mesh: every piece in equal parts (parts per edge), each to the cell it lies in.

    Mass is kept to round-off; the error is that of counting parts across the borders of a cell.
    """
    held = [np.bincount(locate(mesh, place), parcels.masses, minlength=mesh.cells) for place in parcels.inside(parts)]
    return np.asarray(np.mean(held, axis=0) / mesh.areas)


def divergence(field: Field, points: Array) -> tuple[Array, Array]:
    """v (n, d) and div v (n,) at points (n, d): Σ_k ⟨e_k, ∂_k v⟩ over a tangent basis, by central differences."""
    basis = tangent_basis(points)
    sites = [points]
    for axis in range(basis.shape[1]):
        sites += [on_sphere(points + s * DIFFERENCE * basis[:, axis]) for s in (1.0, -1.0)]
    values = field(np.concatenate(sites)).reshape(len(sites), *points.shape)
    rises = values[1::2] - values[2::2]
    return values[0], np.asarray(np.einsum("knd,nkd->n", rises, basis) / (2.0 * DIFFERENCE))


def tangent_basis(points: Array) -> Array:
    """Orthonormal tangent vectors (n, d−1, d) at unit vectors (n, d), by Householder reflections."""
    n, d = points.shape
    rows = np.arange(n)
    axis = np.abs(points).argmax(axis=1)
    mirror = points.copy()
    mirror[rows, axis] += np.where(points[rows, axis] >= 0, 1.0, -1.0)
    # I − 2ww'/|w|² takes x to a multiple of the axis nearest to it, and the other axes to tangent vectors.
    squares = np.sum(mirror**2, axis=1)[:, None, None]
    reflections = np.eye(d) - 2.0 * mirror[:, :, None] * mirror[:, None, :] / squares
    others = np.array([[j for j in range(d) if j != k] for k in range(d)])
    return np.asarray(reflections[rows[:, None], others[axis]])


def halve(parcels: Parcels, longest: float, torn: Torn = everywhere) -> Parcels:
    """Pieces with an edge longer than `longest` (chord) that are `torn`, cut across it into two of equal mass, once."""
    nodes = parcels.points.shape[1]
    if nodes == 1:
        return parcels
    pairs = edges(corners_of(nodes))
    lengths = np.stack([np.linalg.norm(parcels.points[:, i] - parcels.points[:, j], axis=-1) for i, j in pairs])
    worst, long = lengths.argmax(axis=0), lengths.max(axis=0) > longest
    long &= torn(parcels.points, lengths.max(axis=0))
    if not long.any():
        return parcels
    logs = parcels.log_densities
    values = parcels.points if logs is None else np.concatenate([parcels.points, logs[..., None]], axis=-1)
    pieces, masses = [values[~long]], [parcels.masses[~long]]
    for edge in range(len(pairs)):
        chosen = long & (worst == edge)
        for matrix in halving(corners_of(nodes), edge):
            pieces.append(np.einsum("jk,nkd->njd", matrix, values[chosen]))
            masses.append(parcels.masses[chosen] / 2)
    joined, d = np.concatenate(pieces), parcels.points.shape[2]
    return Parcels(
        parcels.time,
        on_sphere(joined[..., :d]),
        None if logs is None else joined[..., d],
        np.concatenate(masses),
        parcels.width,
    )


def _advance(
    attention: Attention, parcels: Parcels, end: float, method: str, tolerance: float | None, torn: Torn
) -> Parcels:
    """To `end`, or as far as no piece stretches much."""
    shape, d = parcels.points.shape, parcels.points.shape[2]
    field = _field(attention, parcels, method)
    flat = parcels.points.reshape(-1, d)
    stop = end
    if parcels.pieces:
        rate = _fastest_stretch(field(flat)(flat).reshape(shape), parcels.points)
        stop = min(end, parcels.time + STRETCH / max(rate, 1e-12))
    span = [parcels.time, stop]
    step = (stop - parcels.time) / STEPS if parcels.pieces and tolerance is None else None
    tolerance = TOLERANCE if tolerance is None else tolerance
    if parcels.log_densities is None:
        moved = integrate(lambda x: field(x)(x), flat, span, step=step, tolerance=tolerance).states[1]
        logs = None
    else:
        # −inf is an empty place; it stays one, but no step can be measured by it.
        known = np.where(np.isneginf(parcels.log_densities), 0.0, parcels.log_densities)
        state = np.column_stack([flat, known.ravel()])
        path = integrate(_with_log_density(field), state, span, retract=_retract, step=step, tolerance=tolerance)
        moved, change = path.states[1][:, :d], path.states[1][:, d].reshape(shape[:2]) - known
        logs = parcels.log_densities + change
    moved_on = Parcels(stop, moved.reshape(shape), logs, parcels.masses, parcels.width)
    return halve(moved_on, LONGEST * parcels.width, torn)


def _field(attention: Attention, parcels: Parcels, method: str) -> Callable[[Array], Field]:
    """Nodes (n·nodes, d) ↦ the velocity, as a function of any sites, of the masses at the centroids."""
    shape = parcels.points.shape
    if shape[1] == 1:
        return lambda nodes: lambda sites: velocity_at(attention, sites, nodes, parcels.masses, method)
    weights = shape_values(equal_parts(corners_of(shape[1]), 1))[0]

    def field(nodes: Array) -> Field:
        centers = on_sphere(np.einsum("k,nkd->nd", weights, nodes.reshape(shape)))
        return lambda sites: velocity_at(attention, sites, centers, parcels.masses, method)

    return field


def _with_log_density(field: Callable[[Array], Field]) -> Field:
    """(x, log ρ) ↦ (v, −div v)."""

    def rate(state: Array) -> Array:
        nodes = np.ascontiguousarray(state[:, :-1])
        moved, spread = divergence(field(nodes), nodes)
        return np.column_stack([moved, -spread])

    return rate


def _retract(state: Array) -> Array:
    return np.column_stack([on_sphere(state[:, :-1]), state[:, -1]])


def _fastest_stretch(velocities: Array, points: Array) -> float:
    """Largest |v_i − v_j|/|x_i − x_j| over the edges of all pieces."""
    fastest = 0.0
    for i, j in edges(corners_of(points.shape[1])):
        apart = np.linalg.norm(points[:, i] - points[:, j], axis=-1)
        # Pieces shrunk to nothing cannot become long soon.
        large = apart > 1e-6
        rises = np.linalg.norm(velocities[large, i] - velocities[large, j], axis=-1)
        fastest = max(fastest, float((rises / apart[large]).max(initial=0.0)))
    return fastest
