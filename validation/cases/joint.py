"""The joint law on S^{d−1} × A: every fact of theory §2.3 that a solver can reproduce."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.circle import circle
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.pde import densities, kernels
from tokensphere.pde.gauge import axis_rotations
from tokensphere.pde.joint import content_marginal, joint_flow, perturbed, product, slices_from_function
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.march import State, march
from tokensphere.validation import exact_joint as exact
from tokensphere.validation.cases.registry import Row, below, case, order_row
from tokensphere.validation.diracization import RESOLVED, outcome
from tokensphere.validation.maximisers import maximal_energy
from tokensphere.validation.order_parameters import order_parameters, recognise, slice_means
from tokensphere.validation.universality import (
    Realisation,
    distance_to_target,
    gauge_universality,
    orbit_universality,
)

Array = NDArray[np.float64]

COLATITUDE = 0.8
AXIS = np.array([math.sin(COLATITUDE), 0.0, math.cos(COLATITUDE)])
FRAME = np.linalg.qr(np.random.default_rng(20).normal(size=(3, 3)))[0]
"""A fixed random frame, so that nothing is aligned with the mesh."""


def solved(
    mesh: Mesh, labels: Labels, kernel: Kernel, start: Array, save_at: list[float], frame: str
) -> tuple[Array, list[State]]:
    """Densities (saves, labels, cells) and every accepted state."""
    flow = joint_flow(mesh, labels, kernel, frame)
    states = list(march(flow, State(0.0, start), save_at))
    return np.array([state.density for state in states if state.saved is not None]), states


def defects(name: str, mesh: Mesh, labels: Labels, kernel: Kernel, states: list[State], frame: str) -> list[Row]:
    """Mass of every label, positivity, and energy that never falls."""
    law = joint_flow(mesh, labels, kernel, frame).law
    masses = np.array([state.density @ mesh.areas for state in states])
    lowest = min(float(state.density.min()) for state in states)
    energies = np.array([law.energy(state.density) for state in states])
    fall = float(np.maximum(-np.diff(energies), 0).max()) / float(np.abs(energies).max())
    return [
        below(f"{name}: label masses", mesh.resolution, float(np.abs(masses - masses[0]).max()), 1e-13),
        below(f"{name}: negative density", mesh.resolution, max(0.0, -lowest), 0.0),
        below(f"{name}: energy falls by", mesh.resolution, fall, 1e-9),
    ]


def poisson_start(mesh: Mesh, labels: Labels, kernel: Kernel, frame: str) -> Array:
    """Slices ((1−r²)/(1−2r⟨R_ξx,e⟩+r²))²σ, r = .3, at colatitude .8."""

    def slices(x: Array, angle: float) -> Array:
        turned = (x @ axis_rotations(np.array([angle]))[0].T).reshape(-1, 3)
        return exact.poisson_density(0.3 * AXIS, turned).reshape(x.shape[:-1])

    return slices_from_function(mesh, labels, slices, kernel if frame == "co-rotating" else None)


def poisson_rows(name: str, resolutions: list[int], labels: Labels, frame: str, times: list[float]) -> list[Row]:
    """Errors of r(t) and of the content marginal against fact 6."""
    kernel = kernels.rope(1.0, kernels.Linear())
    turns = kernel.gauge(labels, 3) if frame == "co-rotating" else None
    radii = exact.poisson_radius(0.3, np.array(times))
    misses, distances, rows = [], [], []
    for nside in resolutions:
        mesh = healpix(nside)
        start = poisson_start(mesh, labels, kernel, frame)
        found, states = solved(mesh, labels, kernel, start, times, frame)
        # Moments of the density itself: those of masses at the centres differ by O(h²) and would hide the order.
        moments = mesh.areas[:, None] * np.stack([cell_averages(mesh, lambda x, k=k: x[..., k]) for k in range(3)], 1)  # type: ignore[misc]
        means = [float(labels.weights @ np.linalg.norm(density @ moments, axis=1)) for density in found]
        misses.append([abs(exact.poisson_radius_of_mean(mean) - r) for mean, r in zip(means, radii, strict=True)])
        distances.append(
            [_content_error(mesh, labels, density, turns, r) for density, r in zip(found, radii, strict=True)]
        )
        rows = defects(name, mesh, labels, kernel, states, frame)
    for k, time in enumerate(times):
        least = 1.8 if time < 2.5 else 1.7
        rows.append(below(f"{name}: r({time:g})", resolutions[-1], misses[-1][k], 1e-3))
        rows.append(order_row(f"{name}: r({time:g})", resolutions[-2:], [m[k] for m in misses[-2:]], least, least))
        rows.append(below(f"{name}: content({time:g}) L1", resolutions[-1], distances[-1][k], 2e-2))
        rows.append(
            order_row(f"{name}: content({time:g}) L1", resolutions[-2:], [d[k] for d in distances[-2:]], 1.5, 1.5)
        )
    return rows


def _content_error(mesh: Mesh, labels: Labels, density: Array, turns: Array | None, r: float) -> float:
    def closed(x: Array) -> Array:
        return exact.poisson_content(r, COLATITUDE, x.reshape(-1, 3)).reshape(x.shape[:-1])

    found = content_marginal(mesh, labels, density, turns)
    return float(np.abs(found - cell_averages(mesh, closed)) @ mesh.areas)


@case("joint_poisson")
def joint_poisson() -> list[Row]:
    """RoPE with linear g from Poisson slices, r(1) and its content marginal, nside 8 to 16, 32 labels, co-rotating."""
    return poisson_rows("joint_poisson", [8, 16], label_spaces.circle(32), "co-rotating", [1.0])


@case("joint_poisson_co_rotating", level="full")
def joint_poisson_co_rotating() -> list[Row]:
    """The same to t = 3 and nside 32, 64 labels."""
    labels = label_spaces.circle(64)
    return poisson_rows("joint_poisson_co_rotating", [8, 16, 32], labels, "co-rotating", [1.0, 2.0, 3.0])


@case("joint_poisson_fixed", level="full")
def joint_poisson_fixed() -> list[Row]:
    """The same in the fixed frame, where every slice lies differently on the mesh."""
    return poisson_rows("joint_poisson_fixed", [8, 16, 32], label_spaces.circle(64), "fixed", [1.0, 2.0, 3.0])


@case("joint_toeplitz_poisson", level="full")
def joint_toeplitz_poisson() -> list[Row]:
    """Linear cosine Toeplitz from Poisson slices: w(ξ, 2) of fact 6, nside 8 to 16, 16 labels."""
    labels, kernel = label_spaces.circle(16), kernels.toeplitz(kernels.Linear(), cosines=[(1, 1.0)])
    angles = labels.points
    vectors = 0.3 * np.stack([np.cos(angles), 0.5 * np.sin(angles), 0.3 + 0.2 * np.cos(2 * angles)], axis=1) @ FRAME
    expected = exact.poisson_slices(labels, kernel, vectors, np.array([2.0]))[0]
    size = np.linalg.norm(expected, axis=1, keepdims=True)
    errors = []
    for nside in (8, 16):
        mesh = healpix(nside)
        start = np.array([densities.from_function(mesh, _poisson(w)) for w in vectors])
        found, _ = solved(mesh, labels, kernel, start, [2.0], "fixed")
        means = slice_means(mesh, found[0])
        errors.append(float(np.abs(means - exact.poisson_mean(size) * expected / size).max()))
    return [
        order_row("joint_toeplitz_poisson", [8, 16], errors, 1.7, 1.7),
        below("joint_toeplitz_poisson", 16, errors[-1], 1e-2),
    ]


def _poisson(vector: Array):  # type: ignore[no-untyped-def]
    return lambda x: exact.poisson_density(vector, x.reshape(-1, 3)).reshape(x.shape[:-1])


@case("joint_gauge")
def joint_gauge() -> list[Row]:
    """RoPE in the co-rotating frame is USA of the u-law to 1e−10; both frames agree at the scheme's order (fact 1)."""
    profile = kernels.Exponential(2.0, "1/beta")
    labels = label_spaces.circle(8)
    rope, usa = kernels.rope(1.0, profile), kernels.usa(profile)
    mesh = healpix(8)
    start = densities.von_mises_fisher(mesh, AXIS, 2.0)
    one = label_spaces.finite([1.0])
    many, _ = solved(mesh, labels, rope, product(labels, start), [1.0], "co-rotating")
    single, _ = solved(mesh, one, usa, start[None], [1.0], "fixed")
    rows = [below("joint_gauge: u-slices are USA", 8, float(np.abs(many[0] - single[0]).max()), 1e-10)]
    return [*rows, order_row("joint_gauge: frames", [8, 16], [_frame_distance(n, rope) for n in (8, 16)], 1.5, 1.5)]


def _frame_distance(nside: int, kernel: Kernel) -> float:
    mesh, labels = healpix(nside), label_spaces.circle(8)
    means = []
    for frame in ("fixed", "co-rotating"):
        start = poisson_start(mesh, labels, kernel, frame)
        found, _ = solved(mesh, labels, kernel, start, [0.5], frame)
        turns = kernel.gauge(labels, 3) if frame == "co-rotating" else None
        means.append(slice_means(mesh, found[0], turns))
    return float(np.abs(means[0] - means[1]).max())


def growth(mesh: Mesh, labels: Labels, kernel: Kernel, shape: Array, end: float, frame: str) -> float:
    """Growth rate of the amplitude ⟨shape, μ⟩ of a small perturbation of σ×ρ."""
    size = 1e-4
    start = (1 + size * shape) / mesh.total_area
    start = start / (start @ mesh.areas)[:, None]
    found, _ = solved(mesh, labels, kernel, start, [0.0, end], frame)
    amplitudes = [float(np.sum(labels.weights[:, None] * shape * density * mesh.areas)) for density in found]
    return math.log(amplitudes[1] / amplitudes[0]) / end


def harmonic(degree: int, points: Array) -> Array:
    """Re Y_lm up to a factor, m = 1 (l = 1, 2) and m = 2 (l = 3), in a frame of its own."""
    x, y, z = (points @ FRAME).T
    return np.asarray({1: x, 2: x * z, 3: (x * x - y * y) * z}[degree])


@case("joint_growth", level="full")
def joint_growth() -> list[Row]:
    """Growth at σ×ρ within 1 % (fact 7): γ_l κ̂_k for Toeplitz, γ_l for co-rotating RoPE, 0 for product modes m ≠ 0."""
    profile = kernels.Exponential(2.0)
    mesh, labels = healpix(32), label_spaces.circle(8)
    rope = kernels.rope(1.0, profile)
    toeplitz = kernels.toeplitz(profile, cosines=[(1, 1.0)])
    rows = []
    for degree in (1, 2, 3):
        shape = harmonic(degree, mesh.centers)
        gamma = exact.growth_rate(profile, degree)
        rate = growth(mesh, labels, rope, np.tile(shape, (8, 1)), 1.0, "co-rotating")
        rows.append(below(f"joint_growth: RoPE, l={degree}", 32, abs(rate / gamma - 1), 0.01))
        waves = np.cos(labels.points)[:, None] * shape
        rate = growth(mesh, labels, toeplitz, waves, 1.0, "fixed")
        rows.append(below(f"joint_growth: Toeplitz, l={degree}", 32, abs(rate / (gamma / 2) - 1), 0.01))
        x, y, z = mesh.centers.T
        still = {1: x, 2: x * z, 3: (x * x - y * y) * z}[degree]
        rate = growth(mesh, labels, rope, np.tile(still, (8, 1)), 1.0, "fixed")
        rows.append(below(f"joint_growth: product mode, l={degree}", 32, abs(rate), 1e-3))
    return rows


@case("joint_rope_circle")
def joint_rope_circle() -> list[Row]:
    """RoPE on S¹ over a full period from product data: the velocity is 0 to 1e−12 (fact 5)."""
    mesh, labels = circle(256), label_spaces.circle(64)
    kernel = kernels.rope(1.0, kernels.Exponential(2.0, "1/beta"))
    start = product(labels, densities.polynomial(mesh, 1.0, [0.5, 0.2]))
    law = joint_flow(mesh, labels, kernel).law
    return [below("joint_rope_circle", 256, float(np.abs(law.vectors(start, mesh.face_points)).max()), 1e-12)]


@case("joint_ring", level="full")
def joint_ring() -> list[Row]:
    """A Gaussian ring (width .05, colatitude 1.2, β = 2) shrinks to the pole under RoPE: fact 5, nside 32."""
    mesh, labels = healpix(32), label_spaces.circle(4)
    profile = kernels.Exponential(2.0, "1/beta")
    kernel = kernels.rope(1.0, profile)
    weights, colatitudes = exact.axisymmetric_colatitudes(profile, 1.2, 0.05, np.array([0.5, 1.0]))
    start = product(labels, densities.from_function(mesh, exact.gaussian_ring(1.2, 0.05), 19))
    found, states = solved(mesh, labels, kernel, start, [0.5, 1.0, 4.0], "co-rotating")
    own = np.arccos(mesh.centers[:, 2])
    rows = defects("joint_ring", mesh, labels, kernel, states, "co-rotating")
    for time, density, expected in zip((0.5, 1.0), found, colatitudes @ weights, strict=False):
        mean = float(density[0] * mesh.areas @ own)
        rows.append(below(f"joint_ring: colatitude({time:g})", 32, abs(mean / expected - 1), 0.015))
    judged = outcome(mesh, labels, kernel, found[-1], kernel.gauge(labels, 3))
    collapsed = judged.verdict == "collapsed at maximal energy"
    return [*rows, Row("joint_ring: collapsed at maximal energy", 32, judged.energy, None, math.exp(2) / 4, collapsed)]


def attracted(
    name: str, nside: int, kernel: Kernel, labels: Labels, end: float, shape: str, energy: float
) -> list[Row]:
    """A perturbed uniform law ends within 1e−2 of the maximal energy in the shape that theory names."""
    mesh = healpix(nside)
    start = perturbed(mesh, product(labels, densities.uniform(mesh)), 0.3, np.random.default_rng(7))
    found, states = solved(mesh, labels, kernel, start, [end], "fixed")
    reached = joint_flow(mesh, labels, kernel).law.energy(found[0])
    means = slice_means(mesh, found[0])
    points = means / np.linalg.norm(means, axis=1, keepdims=True)
    seen = recognise(points, labels.weights, RESOLVED * mesh.width)
    return [
        *defects(name, mesh, labels, kernel, states, "fixed"),
        below(f"{name}: energy", nside, abs(reached - energy), 1e-2),
        Row(f"{name}: {seen.name}", nside, seen.misfit, None, RESOLVED * mesh.width, seen.name == shape),
    ]


@case("joint_cosine", level="full")
def joint_cosine() -> list[Row]:
    """Linear cosine Toeplitz, nside 16 and 32 labels: E → 1/4 on a great circle (fact 8)."""
    kernel = kernels.toeplitz(kernels.Linear(), cosines=[(1, 1.0)])
    return attracted("joint_cosine", 16, kernel, label_spaces.circle(32), 30.0, "great circle", 0.25)


@case("joint_shifted_cosine", level="full")
def joint_shifted_cosine() -> list[Row]:
    """κ = .6 + cos: a Dirac at E = .3, the change of sign alone is not enough (fact 8)."""
    kernel = kernels.toeplitz(kernels.Linear(), cosines=[(0, 0.6), (1, 1.0)])
    return attracted("joint_shifted_cosine", 8, kernel, label_spaces.circle(32), 60.0, "Dirac", 0.3)


@case("joint_distance_bias")
def joint_distance_bias() -> list[Row]:
    """b = e^{−|ξ−ζ|/.3} on [0, 1], linear g: a Dirac with the energy of its labels, and that of fact 10."""
    labels, kernel = label_spaces.gauss_interval(12), kernels.distance_bias(0.3, kernels.Linear())
    known = maximal_energy(labels, kernel, 3).energy
    assert known is not None
    fine = maximal_energy(label_spaces.gauss_interval(64), kernel, 3).energy
    assert fine is not None
    closed = exact.distance_bias_energy(kernels.Linear(), 0.3)
    rows = attracted("joint_distance_bias", 8, kernel, labels, 40.0, "Dirac", known)
    return [*rows, below("joint_distance_bias: closed form", 64, abs(fine / closed - 1), 1e-3)]


def three_bumps(angle: Array) -> Array:
    """A law on a latitude circle."""
    centres, sizes = np.array([0.5, 2.4, 4.6]), np.array([1.0, 0.6, 0.8])
    return np.asarray(np.exp(12 * (np.cos(angle[:, None] - centres) - 1)) @ sizes)


def two_bumps(mesh: Mesh) -> Array:
    """A law on S²."""
    parts = [([1.0, 0.3, 0.2], 0.6), ([-0.4, 0.7, -0.5], 0.4)]
    return densities.mixture(mesh, [(w, densities.von_mises_fisher(mesh, m, 15.0)) for m, w in parts])


def realised(name: str, mesh: Mesh, realisation: Realisation, end: float) -> list[Row]:
    """Solve from a co-rotated start about e3 and bound W1 to the target by 3h."""
    labels, kernel = realisation.labels, realisation.kernel
    start = product(labels, densities.von_mises_fisher(mesh, [0.0, 0.0, 1.0], 4.0))
    found, states = solved(mesh, labels, kernel, start, [end], "co-rotating")
    turns = kernel.gauge(labels, 3)
    assert turns is not None
    distance = distance_to_target(mesh, realisation, found[0], turns)
    order = order_parameters(mesh, labels, found[0], turns)
    return [
        *defects(name, mesh, labels, kernel, states, "co-rotating"),
        below(f"{name}: W1 at most", mesh.resolution, distance, 3 * mesh.width),
        below(f"{name}: spread of slices", mesh.resolution, order.largest_spread, 2 * mesh.width**2),
    ]


@case("joint_orbit_universality")
def joint_orbit_universality() -> list[Row]:
    """A three-bump law on a latitude circle by a quantile angle map (fact 4), nside 8, 32 labels."""
    realisation = orbit_universality(three_bumps, 32, 1.0, kernels.Linear())
    return realised("joint_orbit_universality", healpix(8), realisation, 6.0)


@case("joint_universality", level="full")
def joint_universality() -> list[Row]:
    """Orbit-wise and gauge universality with 128 labels, nside 16 (fact 4)."""
    mesh, linear = healpix(16), kernels.Linear()
    orbit = realised("joint_universality: orbit", mesh, orbit_universality(three_bumps, 128, 1.0, linear), 6.0)
    gauge = realised("joint_universality: gauge", mesh, gauge_universality(mesh, two_bumps(mesh), 128, linear), 6.0)
    return [*orbit, *gauge]


@case("joint_metastability", level="full")
def joint_metastability() -> list[Row]:
    """Two u-clusters under RoPE at β = 3 close in from 1.2 to .8 rad as fact 11 says, whatever their masses; nside 32.

    At β = 40 nothing moves (fact 13), and the verdict must not be convergence (pitfall P27).
    """
    mesh, labels = healpix(32), label_spaces.circle(2)
    angle, middle = 1.2, 0.9
    places = [[math.cos(a), math.sin(a), 0.0] for a in (middle - angle / 2, middle + angle / 2)]
    parts = [densities.von_mises_fisher(mesh, place, 300.0) for place in places]
    start = product(labels, densities.mixture(mesh, [(0.7, parts[0]), (0.3, parts[1])]))
    profile = kernels.Exponential(3.0, "exp(-beta)/beta")
    kernel = kernels.rope(1.0, profile)
    found, _ = solved(mesh, labels, kernel, start, [exact.merging_time(profile, angle, 0.8)], "co-rotating")
    across = mesh.centers @ np.array([-math.sin(middle), math.cos(middle), 0.0])
    masses = found[0][0] * mesh.areas
    means = [(masses * side) @ mesh.centers for side in (across < 0, across >= 0)]
    reached = math.acos(float(means[0] @ means[1]) / float(np.linalg.norm(means[0]) * np.linalg.norm(means[1])))
    slow = kernels.rope(1.0, kernels.Exponential(40.0, "exp(-beta)/beta"))
    later, _ = solved(mesh, labels, slow, start, [5.0], "co-rotating")
    judged = outcome(mesh, labels, slow, later[0], slow.gauge(labels, 3))
    return [
        below("joint_metastability: angle", 32, abs(reached - 0.8), 0.03),
        Row("joint_metastability: not converged", 32, judged.energy, None, 1 / 80, "not converged" in judged.verdict),
    ]
