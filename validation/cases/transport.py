"""Transport against the zero-temperature closed forms: convergence, distances, uniformity, mass, positivity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation import exact_zero_temperature as zero
from tokensphere.validation.cases.registry import Row, below, case, order_row
from tokensphere.validation.exact_distances import chordal_squared
from tokensphere.validation.projection import Projection
from tokensphere.validation.wasserstein import DistanceToLimit

Array = NDArray[np.float64]

FRAME = np.linalg.qr(np.random.default_rng(20).normal(size=(3, 3)))[0]
"""A fixed random frame, so that nothing is aligned with the mesh."""


def zero_temperature(matrix: Array, interaction: Array | None = None) -> Attention:
    """Attention with β = inf, B = `interaction` (identity unless given) and VBᵀ = `matrix`."""
    d = len(matrix)
    B = np.eye(d) if interaction is None else interaction
    return Attention(
        query=np.eye(d), key=B, value=np.asarray(np.linalg.solve(B, matrix.T).T, dtype=np.float64), beta=np.inf
    )


def solved(mesh: Mesh, attention: Attention, rho0: Array, save_at: Array) -> tuple[Array, list[State]]:
    """Densities (saves, cells) and every accepted state."""
    states = list(march(AttentionFlow(mesh, attention), State(0.0, rho0), save_at))
    return np.array([state.density for state in states if state.saved is not None]), states


def convergence(resolutions: list[int], interaction: Array | None = None) -> tuple[list[float], float, float]:
    """L1 errors at t = 1 for M with eigenvalues (1, .3, −.5), the largest mass defect and the smallest density."""
    matrix = FRAME @ np.diag([1.0, 0.3, -0.5]) @ FRAME.T
    axis = np.array([1.0, 2.0, 2.0]) / 3.0
    B = np.eye(3) if interaction is None else interaction

    def start(x: Array) -> Array:
        level = x @ axis
        return np.asarray((1 + 0.5 * level + 0.3 * level**2) / (4 * np.pi * 1.1))

    errors, defect, lowest = [], 0.0, np.inf
    for nside in resolutions:
        mesh = healpix(nside)
        found, states = solved(mesh, zero_temperature(matrix, interaction), cell_averages(mesh, start), np.array([1.0]))

        def exact(x: Array) -> Array:
            return zero.density(matrix, B, start, x.reshape(-1, 3), 1.0).reshape(x.shape[:-1])

        errors.append(float(np.sum(np.abs(found[-1] - cell_averages(mesh, exact)) * mesh.areas)))
        masses = np.array([state.density @ mesh.areas for state in states])
        defect = max(defect, float(np.abs(masses - masses[0]).max()))
        lowest = min(lowest, min(float(state.density.min()) for state in states))
    return errors, defect, lowest


@case("zero_temperature_density")
def zero_temperature_density() -> list[Row]:
    """L1 error of ρ_1 against theory §1.3(b), M with eigenvalues (1, .3, −.5) in a random frame, nside 8 to 64."""
    resolutions = [8, 16, 32, 64]
    errors, defect, lowest = convergence(resolutions)
    name = "zero_temperature_density"
    return [
        order_row(name, resolutions, errors, 1.95, 1.85),
        below(f"{name}: mass defect", resolutions[-1], defect, 1e-13),
        below(f"{name}: negative density", resolutions[-1], max(0.0, -lowest), 0.0),
    ]


@case("zero_temperature_general_B", level="full")
def zero_temperature_general() -> list[Row]:
    """The same with B of condition number 1.5, where time is a function of the point."""
    resolutions = [8, 16, 32]
    frame = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    errors, _, _ = convergence(resolutions, frame @ np.diag([1.2, 1.0, 0.8]) @ FRAME.T)
    return [order_row("zero_temperature_general_B", resolutions, errors, 1.9, 1.75)]


def closed_form_rows(mesh: Mesh, k: int, name: str) -> list[Row]:
    """|W2² − exact²|/h² for t ≤ 6 from uniform data, B = I, M a projection of rank k in a random frame."""
    d = mesh.dimension
    frame = FRAME if d == 3 else zero_frame()
    matrix = frame @ np.diag([1.0] * k + [0.0] * (d - k)) @ frame.T
    times = np.arange(0.0, 6.5, 0.5)
    rho0 = densities.uniform(mesh)
    found, _ = solved(mesh, zero_temperature(matrix), rho0, times)
    distance = DistanceToLimit(mesh, rho0, Projection(matrix))
    measured = np.array([float(distance(density)) ** 2 for density in found])
    error = float(np.abs(measured - chordal_squared(np.exp(-times), d, k)).max())
    return [below(name, mesh.resolution, error / mesh.width**2, 1.0)]


def zero_frame(angle: float = 0.7) -> Array:
    """A rotation of the plane."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


@case("distance_circle")
def distance_circle() -> list[Row]:
    """W2 on S¹, k = 1, against 2 − (4/π) arccos(a)/√(1−a²), in units of h²."""
    return [row for n in (256, 1024) for row in closed_form_rows(circle(n), 1, "distance_circle: |W2²−exact²|/h²")]


@case("distance_sphere_point")
def distance_sphere_point() -> list[Row]:
    """W2 on S², k = 1, against 2a/(1+a), in units of h²."""
    name = "distance_sphere_point: |W2²−exact²|/h²"
    return [row for n in (16, 32) for row in closed_form_rows(healpix(n), 1, name)]


@case("distance_sphere_circle")
def distance_sphere_circle() -> list[Row]:
    """W2 on S², k = 2, against the elliptic form, in units of h²."""
    name = "distance_sphere_circle: |W2²−exact²|/h²"
    return [row for n in (16, 32) for row in closed_form_rows(healpix(n), 2, name)]


@case("uniform_under_rotation")
def uniform_under_rotation() -> list[Row]:
    """A uniform density under a rigid rotation stays uniform."""
    mesh = healpix(16)
    x, y, z = 0.48, -0.6, 0.64
    spin = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    attention = Attention(query=np.eye(3), key=np.eye(3), value=spin, beta=np.inf)
    rho0 = densities.uniform(mesh)
    found, _ = solved(mesh, attention, rho0, np.array([10.0]))
    return [below("uniform_under_rotation", mesh.resolution, float(np.abs(found[-1] / rho0 - 1).max()), 1e-12)]


@case("rough_density")
def rough_density() -> list[Row]:
    """Noise over many orders of magnitude, with empty cells: nothing negative, mass to round-off, nothing clipped."""
    mesh = healpix(16)
    random = np.random.default_rng(7)
    rough = np.exp(12 * random.normal(size=mesh.cells)) * (random.random(mesh.cells) < 0.7)
    rho0 = densities.normalised(mesh, rough)
    attention = zero_temperature(FRAME @ np.diag([1.0, 0.3, -0.5]) @ FRAME.T)
    _, states = solved(mesh, attention, rho0, np.array([2.0]))
    lowest = min(float(state.density.min()) for state in states)
    defect = max(abs(float(state.density @ mesh.areas) - 1.0) for state in states)
    return [
        below("rough_density: negative density", mesh.resolution, max(0.0, -lowest), 0.0),
        below("rough_density: mass defect", mesh.resolution, defect, 1e-13),
    ]
