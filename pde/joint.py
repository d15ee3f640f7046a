"""The joint law on S^{d−1} × A: its flow, its starts, and its content law in either frame.

∂_t μ + div_x(μ P_x∇_x∫h(·,z')dμ(z')) = 0 with frozen labels: every slice μ_ξ moves by its own velocity and keeps its
mass.  In the *fixed* frame a slice is the law of the content x.  In the *co-rotating* frame of a gauge kernel it is the
law of u = Q(ξ)x; all slices then share one velocity (b ≡ 1), and a slice of x is the slice of u turned by Q(ξ)ᵀ.
Source: second document, §2; theory §2.1, §2.3 (fact 1).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.levels import subcells
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.densities import from_function
from tokensphere.pde.flux import normal_speeds
from tokensphere.pde.joint_field import JointField, LogSafeField, spectral_field
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.limiter import limited_gradient
from tokensphere.pde.march import Field
from tokensphere.pde.profiles import Exponential

Array = NDArray[np.float64]

FRAMES = ("fixed", "co-rotating")
METHODS = ("auto", "spectral", "log-safe")
COARSE = 1.0
DEEPEST = 3
SPECTRAL_BETA = 8.0
"""Up to here e^{2β}, the range of the kernel, leaves the spectral field 1e−8 of relative accuracy everywhere."""


class JointFlow:
    """What the march advances: normal speeds (points,) shared by all labels, or (labels, points)."""

    steady = False

    def __init__(self, mesh: Mesh, law: JointField) -> None:
        self.mesh = mesh
        self.law = law

    def field(self, density: Array) -> Field:
        """Speeds at the face points of a density (labels, cells)."""
        return Field(normal_speeds(self.mesh, self.law.vectors(density, self.mesh.face_points)), self.law.notes)

    def dissipation(self, density: Array, weights: Array) -> float:
        """∫|v|² dμ = dE/dt."""
        speeds = np.sum(self.law.vectors(density, self.mesh.centers) ** 2, axis=-1)
        inner = np.sum(density * (speeds * self.mesh.areas), axis=-1)
        return float(weights @ inner)


def levels_for(mesh: Mesh, kernel: Kernel) -> int:
    """Levels down to look for the kernel's width: the least with βh²/4^levels ≤ 1, at most 3."""
    if not isinstance(kernel.profile, Exponential):
        return 0
    narrow = kernel.profile.beta * mesh.width**2 / COARSE
    return min(DEEPEST, math.ceil(math.log(narrow, 4))) if narrow > 1 else 0


def joint_flow(mesh: Mesh, labels: Labels, kernel: Kernel, frame: str = "fixed", method: str = "auto") -> JointFlow:
    """The flow of a joint law; raises InputError for an unknown frame or method, or a method that does not fit.

    "auto" takes the spectral field up to β = 8, and beyond it where b ≢ 1 or slices have to be turned: elsewhere the
    log-safe one, whose relative accuracy holds however far apart clusters are.
    """
    if frame not in FRAMES:
        raise InputError(f"frame = {frame!r} was given, but it must be one of {', '.join(FRAMES)}.")
    if method not in METHODS:
        raise InputError(f"method = {method!r} was given, but it must be one of {', '.join(METHODS)}.")
    turned = frame == "fixed" and kernel.is_gauge
    if method == "log-safe" and turned:
        raise InputError(
            f'method = "log-safe" works in u = Q(ξ)x for the {kernel.name} kernel; ask for frame = "co-rotating" or '
            'take method = "spectral".'
        )
    steep = isinstance(kernel.profile, Exponential) and kernel.profile.beta > SPECTRAL_BETA
    levels = levels_for(mesh, kernel)
    law: JointField
    if method == "log-safe" or (method == "auto" and steep and not turned and not kernel.is_mixing):
        law = LogSafeField(mesh, labels, kernel, levels=levels, peaks=True)
    else:
        law = spectral_field(mesh, labels, kernel, fixed=frame == "fixed", levels=levels, peaks=True)
    return JointFlow(mesh, law)


def product(labels: Labels, density: Array) -> Array:
    """The same slice (cells,) for every label: (labels, cells)."""
    return np.repeat(np.asarray(density, dtype=np.float64)[None], labels.count, axis=0)


def slices_from_function(
    mesh: Mesh, labels: Labels, function: Callable[[Array, float], Array], kernel: Kernel | None = None, degree: int = 7
) -> Array:
    """Cell averages (labels, cells) of x ↦ f(x, ξ), each slice scaled to mass 1.

    Args:
        function: of points (…, d) and a label's position.
        kernel: its gauge turns the slices into those of u = Q(ξ)x, for frame "co-rotating"; left out, those of x.

    Raises:
        InputError: for a slice that is negative, not finite or without mass.
    """
    rotations = None if kernel is None else kernel.gauge(labels, mesh.dimension)
    slices = []
    for label, position in enumerate(labels.points):
        turn = np.eye(mesh.dimension) if rotations is None else rotations[label]
        slices.append(from_function(mesh, lambda u, turn=turn, at=position: function(u @ turn, at), degree))  # type: ignore[misc]
    return np.array(slices)


def perturbed(mesh: Mesh, density: Array, size: float, random: Generator, degree: int = 3) -> Array:
    """Each slice times 1 + size·p(x), p a random polynomial of the coordinates with |p| ≤ 1; mass 1 again.

    Symmetric data never choose a limit by themselves (theory §2.4): this makes the choice on purpose.
    Raises InputError unless 0 ≤ size < 1.
    """
    if not 0 <= size < 1:
        raise InputError(f"the perturbation was given size {size}, but it must be at least 0 and below 1.")
    rows = np.atleast_2d(density)
    powers = [mesh.centers**k for k in range(1, degree + 1)]
    bumps = sum((random.normal(size=(len(rows), mesh.dimension)) @ power.T for power in powers), np.zeros_like(rows))
    changed = rows * (1 + size * bumps / np.abs(bumps).max(axis=1, keepdims=True))
    return np.asarray(changed / (changed @ mesh.areas)[:, None]).reshape(np.shape(density))


def content_slices(mesh: Mesh, density: Array, rotations: Array, depth: int = 2) -> Array:
    """Slices of x (labels, cells) from slices of u = Q(ξ)x: the limited reconstruction of u averaged over sub-cells.

    The average over 4^depth (circle 2^depth) sub-cells is second order and non-negative; each slice is then scaled to
    the mass it had, exactly.  Turning by an angle blurs a slice by about half a cell, so use `content_points` where a
    slice is as narrow as that.
    """
    places = subcells(mesh, np.arange(mesh.cells), depth)
    flat = places.reshape(-1, mesh.dimension)
    result = np.empty_like(density)
    for label, rotation in enumerate(rotations):
        gradient = limited_gradient(mesh, density[label])
        moved = flat @ rotation.T
        cells = locate(mesh, moved)
        rises = np.einsum("nd,nd->n", gradient[cells], moved - mesh.centers[cells])
        values = np.maximum(density[label, cells] + rises, 0.0).reshape(mesh.cells, -1).mean(axis=1)
        result[label] = values * ((density[label] @ mesh.areas) / (values @ mesh.areas))
    return result


def content_marginal(mesh: Mesh, labels: Labels, density: Array, rotations: Array | None = None) -> Array:
    """Content law (cells,) of slices of x, or of u = Q(ξ)x when the rotations Q are given; the mass is kept."""
    slices = density if rotations is None else content_slices(mesh, density, rotations)
    return np.asarray(labels.weights @ slices)


def content_points(mesh: Mesh, labels: Labels, density: Array, rotations: Array | None = None) -> tuple[Array, Array]:
    """The content law as points (labels·cells, d) with masses: cell centres turned back by Q(ξ)ᵀ, nothing blurred."""
    masses = labels.weights[:, None] * density * mesh.areas
    if rotations is None:
        return np.tile(mesh.centers, (labels.count, 1)), masses.ravel()
    return np.concatenate([mesh.centers @ rotation for rotation in rotations]), masses.ravel()
