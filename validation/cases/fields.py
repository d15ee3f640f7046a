"""Geometry and attention fields against identities and closed forms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral, attention_mean
from tokensphere.validation import exact_fields
from tokensphere.validation.cases.registry import Row, below, case, fitted_order, order_row, pair_orders
from tokensphere.validation.cases.transport import FRAME, solved
from tokensphere.validation.stability import growth_rate

Array = NDArray[np.float64]


def plain(beta: float, d: int = 3, B: Array | None = None) -> Attention:
    """Q = V = I and K = B."""
    return Attention(query=np.eye(d), key=np.eye(d) if B is None else B, value=np.eye(d), beta=beta)


def interaction(condition: float) -> Array:
    """A B in a random frame with the given condition number and largest singular value 1."""
    other = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    return np.asarray(other @ np.diag(np.geomspace(1.0, 1.0 / condition, 3)) @ FRAME.T)


def divergence(mesh: Mesh, velocity: Array) -> Array:
    """∮⟨v, n⟩ of every cell from v at the face points (points, d): (cells,)."""
    flow = np.add.reduceat(np.sum(mesh.face_normals * velocity, axis=-1), mesh.face_offsets[:-1])
    total = np.zeros(mesh.cells)
    np.add.at(total, mesh.face_cells[:, 0], flow)
    np.add.at(total, mesh.face_cells[:, 1], -flow)
    return total


@case("mesh_identities")
def mesh_identities() -> list[Row]:
    """Rotations are divergence-free, div(P_x c) = −2⟨c,x⟩ at order 2 in L1, areas sum to 4π."""
    rows = []
    resolutions, errors = [8, 16, 32, 64], []
    c, axis = np.array([0.36, 0.48, -0.8]), np.array([0.6, -0.64, 0.48])
    for nside in resolutions:
        mesh = healpix(nside)
        spin = divergence(mesh, np.cross(axis, mesh.face_points)) / mesh.width
        if nside == resolutions[-1]:
            rows.append(below("mesh_identities: rotation", nside, float(np.abs(spin).max()), 1e-12))
        pull = c - (mesh.face_points @ c)[:, None] * mesh.face_points
        defect = divergence(mesh, pull) - cell_averages(mesh, lambda x: -2 * x @ c) * mesh.areas
        errors.append(float(np.abs(defect).sum()))
        if nside == resolutions[-1]:
            polar = np.argsort(-np.abs(mesh.centers[:, 2]))[:8]
            worst = float(np.abs(defect[polar] / mesh.areas[polar]).max())
            rows.append(below("mesh_identities: divergence at the poles", nside, worst, 1e-2))
            area = abs(float(mesh.areas.sum()) / (4 * np.pi) - 1)
            rows.append(below("mesh_identities: total area", nside, area, 1e-13))
    rows.append(order_row("mesh_identities: div(P_x c)", resolutions, errors, 1.95, 1.8))
    return rows


@case("uniform_field")
def uniform_field() -> list[Row]:
    """The mean at the uniform density is A_d(β|Bᵀx|)Bᵀx/|Bᵀx|: error falls by 4 ± .3 per level at β = 100."""
    attention = plain(100.0)
    points = FRAME @ healpix(4).centers.T
    points = np.ascontiguousarray(points.T)
    exact, _ = exact_fields.von_mises_fisher_mean(attention, points)
    resolutions, errors = [16, 32, 64], []
    for nside in resolutions:
        mesh = healpix(nside)
        mean, _ = attention_mean(mesh, attention, densities.uniform(mesh), points)
        errors.append(float(np.sqrt(np.mean(np.sum((mean - exact) ** 2, axis=-1)))))
    worst = max(abs(2.0**order - 4.0) for order in pair_orders(resolutions, errors))
    row = Row("uniform_field", "16…64", errors[-1], fitted_order(resolutions, errors), 0.3, worst <= 0.3)
    return [row]


@case("von_mises_fisher_field")
def von_mises_fisher_field() -> list[Row]:
    """Mean and log F at a mixture of von Mises–Fisher densities, general B, second order in h."""
    attention = plain(20.0, B=interaction(2.0))
    means = np.array([[0.0, 0.6, 0.8], [-0.64, 0.48, 0.6]])
    points = np.ascontiguousarray(healpix(4).centers @ FRAME)
    exact, log_exact = exact_fields.mixture_mean(attention, points, [(0.7, 3.0, means[0]), (0.3, 8.0, means[1])])

    def mixture(x: Array) -> Array:
        # log ∫e^{κ⟨m,y⟩}dσ normalises e^{κ⟨m,x⟩} relative to σ.
        first = 0.7 * np.exp(3.0 * x @ means[0] - exact_fields.log_partition(3, 3.0))
        return np.asarray((first + 0.3 * np.exp(8.0 * x @ means[1] - exact_fields.log_partition(3, 8.0))) / (4 * np.pi))

    resolutions, errors, logs = [8, 16, 32], [], []
    for nside in resolutions:
        mesh = healpix(nside)
        mean, log_normaliser = attention_mean(mesh, attention, cell_averages(mesh, mixture), points)
        errors.append(float(np.abs(mean - exact).max()))
        logs.append(float(np.abs(log_normaliser - log_exact).max()))
    return [
        order_row("von_mises_fisher_field: mean", resolutions, errors, 1.9, 1.7),
        order_row("von_mises_fisher_field: log F", resolutions, logs, 1.9, 1.7),
    ]


@case("spectral_against_direct")
def spectral_against_direct() -> list[Row]:
    """Two methods for one discrete measure: β = 1 to 1000, B = I and B of condition number 4, a smooth density."""
    rows = []
    for nside in (16, 32):
        mesh = healpix(nside)
        density = densities.from_function(mesh, lambda x: 1 + 0.5 * x[..., 2] + 0.3 * x[..., 0] * x[..., 1])
        points = np.ascontiguousarray(mesh.face_points[:: len(mesh.face_points) // 400])
        worst = 0.0
        for beta in (1.0, 10.0, 100.0, 1000.0):
            for B in (np.eye(3), interaction(4.0)):
                attention = plain(beta, B=B)
                fast, slow = (
                    AttentionIntegral(mesh, attention, points, method=method)(density)[0]
                    for method in ("spectral", "direct")
                )
                worst = max(worst, float(np.abs(fast - slow).max()))
        rows.append(below("spectral_against_direct", nside, worst, 1e-10))
    return rows


@case("direct_extremes")
def direct_extremes() -> list[Row]:
    """The direct sum stays finite, and inside the unit ball, at β = 1e6 and at densities of 1e−300."""
    mesh = healpix(8)
    tiny = np.where(mesh.centers[:, 2] > 0, 1.0, 1e-300)
    points = healpix(2).centers
    worst = 0.0
    for beta in (1.0, 1e2, 1e4, 1e6):
        mean, _ = attention_mean(mesh, plain(beta), tiny / (tiny @ mesh.areas), points, method="direct")
        length = np.linalg.norm(mean, axis=-1)
        worst = max(worst, float(np.max(length - 1)) if np.isfinite(length).all() else np.inf)
    return [below("direct_extremes: |mean| − 1", mesh.resolution, worst, 1e-12)]


@case("circle_stability")
def circle_stability() -> list[Row]:
    """A 1e−6 cosine of degree 1…4 on the uniform circle at β = 5 grows at l²I_l(β)/(βI_0(β)) within 1 %."""
    mesh, beta = circle(512), 5.0
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    worst = []
    for degree in (1, 2, 3, 4):
        wave = np.cos(degree * angle)
        rho0 = (1 + 1e-6 * wave) / (2 * np.pi)
        found, _ = solved(mesh, plain(beta, 2), rho0, np.array([0.0, 1.0]))
        amplitude = found @ wave
        rate = float(np.log(amplitude[1] / amplitude[0]))
        worst.append(abs(rate / growth_rate(2, degree, beta) - 1))
    return [below("circle_stability: degree 1…4", mesh.resolution, max(worst), 1e-2)]
