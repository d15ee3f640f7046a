"""The low-temperature theorem in numbers: hypotheses, rates, plateau, Laplace principle and coupling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.meshes.gradients import gradient
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation.bound import closed_form_shape, fit_power, fit_rate, without_width
from tokensphere.validation.cases.registry import Row, below, case
from tokensphere.validation.cell_geometry import half_space_mass
from tokensphere.validation.circular import circular_wasserstein
from tokensphere.validation.coupling import coupling_estimate
from tokensphere.validation.exact_plateau import plateau_shift
from tokensphere.validation.laplace import laplace_principle
from tokensphere.validation.lipschitz import regularity
from tokensphere.validation.moments import moment
from tokensphere.validation.projection import Projection
from tokensphere.validation.wasserstein import DistanceToLimit

Array = NDArray[np.float64]
Density = Callable[[Array], Array]

FRAME = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
TURN = np.linalg.qr(np.random.default_rng(6).normal(size=(3, 3)))[0]
"""Fixed random frames, so that nothing is aligned with the mesh."""


def attention_of(matrix: Array, transposed: Array, beta: float) -> Attention:
    """Attention with VBᵀ = `matrix` and Bᵀ = `transposed`."""
    d = len(matrix)
    value = np.asarray(np.linalg.solve(transposed.T, matrix.T).T, dtype=np.float64)
    return Attention(np.eye(d), transposed.T, value, beta)


def solved(mesh: Mesh, attention: Attention, rho0: Array, save_at: Array) -> Array:
    """Densities (saves, cells) at the save times."""
    states = march(AttentionFlow(mesh, attention), State(0.0, rho0), save_at)
    return np.array([state.density for state in states if state.saved is not None])


def planar(x: Array) -> Array:
    """(1 + .4x1 + .3x2 + .3x1x2)/2π, the density of the runs on the circle in theory §1.4 and §1.5."""
    return np.asarray((1 + 0.4 * x[..., 0] + 0.3 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]) / (2 * np.pi))


def relative(name: str, resolution: int | str, value: float, target: float, bound: float) -> Row:
    """A row whose error is |value/target − 1|."""
    return below(name, resolution, abs(value / target - 1), bound)


@case("hypothesis_moments")
def hypothesis_moments() -> list[Row]:
    """H2: M_p of the uniform density against 1/(1−p) (k = 1) and π/2 at p = 1 (k = 2); infinite from p = k on."""

    def uniform(x: Array) -> Array:
        return np.ones(len(x))

    line, plane = FRAME[:, :1], FRAME[:, :2]
    values = {"k=1, p=1/2": (line, 0.5, 2.0), "k=1, p=.9": (line, 0.9, 10.0), "k=2, p=1": (plane, 1.0, np.pi / 2)}
    rows = [
        below(f"hypothesis_moments: {name}", None, abs(moment(uniform, basis, p).value - exact), 1e-6)
        for name, (basis, p, exact) in values.items()
    ]
    infinite = all(np.isinf(moment(uniform, basis, p).value) for basis, p in ((line, 1.0), (plane, 2.0)))
    return [*rows, below("hypothesis_moments: p=k is infinite", None, 0.0 if infinite else 1.0, 0.0)]


@case("hypothesis_regularity")
def hypothesis_regularity() -> list[Row]:
    """H3: exponents of 1+z/2 (Lipschitz, 1), 1+|z|^½ (Hölder, ½) and a cap (jump, 0), functions and mesh values."""
    mesh = healpix(32)
    starts: dict[str, tuple[Density, str, float]] = {
        "1+z/2": (lambda x: 1 + x[..., 2] / 2, "Lipschitz", 1.0),
        "1+|z|^½": (lambda x: 1 + np.sqrt(np.abs(x[..., 2])), "Hölder", 0.5),
        "cap": (lambda x: (x[..., 2] > 0.3).astype(float), "jump", 0.0),
    }
    rows = []
    for name, (start, kind, exponent) in starts.items():
        for source, given in (("function", start), ("mesh values", cell_averages(mesh, start))):
            found = regularity(mesh, given)
            error = abs(found.exponent - exponent) if found.kind == kind else np.inf
            rows.append(below(f"hypothesis_regularity: {name}, {source}", 32, error, 0.05))
    return rows


@case("concentration_rate", level="full")
def concentration_rate() -> list[Row]:
    """Rates at zero temperature, B orthogonal, W2 in [.07, .2]: closed forms give c = γ; ρ0 ~ ⟨x,e⟩⁶ too."""
    mesh, gap = healpix(64), 1.6
    rows = []
    for name, top, vanishing in (("k=1", 1, False), ("k=2", 2, False), ("k=1, ρ0 vanishing at E^⊥", 1, True)):
        values = np.array([1.0, 1.0, -0.6] if top == 2 else [1.0, -0.6, -0.6])
        matrix = FRAME @ np.diag(values) @ FRAME.T
        matrix = (matrix + matrix.T) / 2
        rho0 = densities.uniform(mesh)
        if vanishing:
            rho0 = densities.from_function(mesh, lambda x: (x @ FRAME[:, 0]) ** 6)
        times = np.linspace(0, (6.2 if name == "k=1" else 3.6) / gap, 60)
        run = solved(mesh, attention_of(matrix, TURN, np.inf), rho0, times)
        distance = DistanceToLimit(mesh, rho0, Projection(matrix))
        measured = np.array([float(distance(density)) for density in run])
        rate = fit_rate(times, measured, None if vanishing else closed_form_shape(3, top)).value
        rows.append(relative(f"concentration_rate: {name}", 64, rate, gap, 0.05 if vanishing else 0.02))
    return rows


def circle_plateau(cells: int, beta: float, transposed: Array) -> tuple[float, float, float]:
    """β·δp, W2 and the width of the clusters on the plateau of a run on the circle, M = diag(1, −.6)."""
    mesh, matrix = circle(cells), np.diag([1.0, -0.6])
    rho0 = densities.from_function(mesh, planar)
    # past t = 7 the mass across the separatrix has settled to four digits
    run = solved(mesh, attention_of(matrix, transposed, beta), rho0, np.array([0.0, 7.5]))
    masses = np.where(mesh.centers[:, 0] > 0, mesh.areas, 0.0)
    distance = DistanceToLimit(mesh, rho0, Projection(matrix))
    shift = float((run[-1] - rho0) @ masses)
    return beta * shift, float(distance(run[-1])), distance.nearest(run[-1])


@case("plateau_circle")
def plateau_circle() -> list[Row]:
    """Mass carried across the separatrix on S¹ and the power of the plateau of W2 in β (theory §1.4: β·δp, −½)."""
    betas, targets = np.array([40.0, 80.0, 160.0]), (0.0418, 0.0409, 0.0404)
    found = [circle_plateau(512, beta, np.eye(2)) for beta in betas]
    rows = [
        relative(f"plateau_circle: beta·δp at beta={beta:g}", 512, value, target, 0.03)
        for beta, (value, _, _), target in zip(betas, found, targets, strict=True)
    ]
    distances, widths = np.array([row[1] for row in found]), np.array([row[2] for row in found])
    power = fit_power(betas, without_width(distances, widths)).value
    return [*rows, below("plateau_circle: |power + .51| of W2", 512, abs(power + 0.51), 0.02)]


@case("plateau_rotated", level="full")
def plateau_rotated() -> list[Row]:
    """The same with B a rotation by .4, where W2 need not settle but the mass does (theory §1.4: .0240, .0238)."""
    c, s = np.cos(0.4), np.sin(0.4)
    rows = []
    for beta, target in ((80.0, 0.0240), (160.0, 0.0238)):
        shift, _, _ = circle_plateau(512, beta, np.array([[c, -s], [s, c]]))
        rows.append(relative(f"plateau_rotated: beta·δp at beta={beta:g}", 512, shift, target, 0.02))
    return rows


@case("plateau_sphere", level="full")
def plateau_sphere() -> list[Row]:
    """Mass carried across the separatrix on S², B = I, β = 80, against the line integral of theory §1.4."""
    rows = []
    for values, end in (((1.0, -0.6, -0.6), 5.0), ((1.0, 0.3, -0.6), 10.0)):
        matrix = FRAME @ np.diag(values) @ FRAME.T
        matrix = (matrix + matrix.T) / 2
        for nside in (16, 32):
            mesh = healpix(nside)
            e = Projection(matrix).basis[:, 0]
            rho0 = densities.from_function(mesh, tilted)
            run = solved(mesh, attention_of(matrix, np.eye(3), 80.0), rho0, np.array([0.0, end]))
            mass = [half_space_mass(mesh, each, gradient(mesh, each), e) for each in run]
            exact = plateau_shift(Projection(matrix), tilted)
            rows.append(relative(f"plateau_sphere: M={values}", nside, 80 * (mass[1] - mass[0]), exact, 0.05))
    return rows


def tilted(x: Array) -> Array:
    """A positive polynomial density on S² with odd and even parts in the random frame, mass 1."""
    u = x @ FRAME
    odd = 0.5 * u[..., 0] + 0.3 * u[..., 1] + 0.6 * u[..., 0] * u[..., 1] ** 2 + 0.3 * u[..., 0] * u[..., 2]
    return np.asarray((1 + odd) / (4 * np.pi))


@case("laplace_principle")
def laplace_rows() -> list[Row]:
    """Laplace principle at a von Mises–Fisher density: velocity error ~ β^{−1}, W2(η_x, δ) ~ β^{−½}."""
    mesh = healpix(32)
    rho0 = densities.von_mises_fisher(mesh, np.array([0.6, 0.0, 0.8]), 3.0)
    attention = Attention(np.eye(3), np.eye(3), np.diag([1.0, 0.3, -0.5]), 1.0)
    # the largest β is where the gradient of the mesh density, not of the true one, begins to show in the remainder
    betas = np.array([80.0, 160.0, 320.0])
    found = laplace_principle(mesh, attention, rho0, betas.tolist())
    velocity = fit_power(betas, np.array([row.velocity_error for row in found])).value
    width = fit_power(betas, np.array([row.distance for row in found])).value
    remainder = found[0].velocity_remainder / found[0].velocity_error
    return [
        below("laplace_principle: |power + 1| of the velocity error", 32, abs(velocity + 1), 0.05),
        below("laplace_principle: |power + ½| of W2", 32, abs(width + 0.5), 0.05),
        below("laplace_principle: share the expansion leaves at beta=80", 32, remainder, 0.1),
    ]


@case("coupling_estimate")
def coupling_rows() -> list[Row]:
    """Stability estimate on S¹: measured W2(ρ^β_t, ρ_t) over its Grönwall bound, and the power of W2 in β at t = ½."""
    mesh, matrix = circle(512), np.diag([1.0, -0.6])
    rho0 = densities.from_function(mesh, planar)
    times = np.linspace(0.0, 1.5, 16)
    cold = solved(mesh, attention_of(matrix, np.eye(2), np.inf), rho0, times)

    def distance(one: Array, other: Array) -> float:
        return circular_wasserstein(one * mesh.areas, other * mesh.areas)

    betas, early, ratio = np.array([40.0, 80.0, 160.0]), [], 0.0
    for beta in betas:
        warm = attention_of(matrix, np.eye(2), float(beta))
        found = coupling_estimate(mesh, warm, times, solved(mesh, warm, rho0, times), cold, distance, 0.0)
        ratio = max(ratio, float(np.max(found.left[1:] / found.right[1:])))
        early.append(float(found.left[5]))
    power = fit_power(betas, np.array(early)).value
    return [
        below("coupling_estimate: left over right", 512, ratio, 1.0),
        below("coupling_estimate: |power + 1| of W2 at t=½", 512, abs(power + 1), 0.1),
    ]
