"""The velocity of the joint law: v(x,ξ) = P_x∇_x ∫h((x,ξ),(y,ζ)) dμ, h = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩).

In the co-rotating coordinates u = Q(ξ)x the kernel is b(ξ,ζ) g(⟨u,u'⟩) and nothing is rotated; where moreover b ≡ 1
one field serves every slice.  In the fixed frame the coefficients of slice ζ are turned by Q(ζ), mixed, and turned back
by Q(ξ)ᵀ, exactly.  Fields are objects of one shape: `vectors`, `potential`, `energy`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.levels import finer
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.limiter import prolong
from tokensphere.pde.peaks import integral_with_peaks, split
from tokensphere.pde.profiles import Exponential
from tokensphere.pde.zonal import Coefficients, Expansion, expansion

Array = NDArray[np.float64]

RANK = 1e-15


class JointField(Protocol):
    """Velocity, first variation and energy of a density (labels, cells) of slices that integrate to 1."""

    @property
    def notes(self) -> Mapping[str, float]:
        """How the last velocity was found."""

    def vectors(self, density: Array, points: Array) -> Array:
        """v at points (n, d): (n, d) where all labels share it, else (labels, n, d)."""

    def potential(self, density: Array, points: Array) -> Array:
        """V[μ](x,ξ) = ∫h((x,ξ),·)dμ, (n,) where all labels share it, else (labels, n)."""

    def energy(self, density: Array) -> float:
        """E_h[μ] = ½∬h dμdμ."""


@dataclass(frozen=True, eq=False)
class Mixing:
    """b(ξ,ζ) = Σ_r values_r vectors_ξr vectors_ζr, so that r convolutions serve all labels. Sources carry weights_ζ."""

    values: Array
    vectors: Array
    weights: Array

    @property
    def shared(self) -> bool:
        """Whether b ≡ 1: every label feels the same field, that of the marginal of u."""
        return len(self.values) == 1 and bool((self.vectors == 1).all())

    def gather(self, rows: Coefficients) -> Coefficients:
        """(labels, …) to the r combinations Σ_ζ vectors_ζr weights_ζ rows_ζ."""
        return np.asarray(np.tensordot(self.vectors.T * self.weights, rows, axes=1))

    def scatter(self, rows: Coefficients) -> Coefficients:
        """r combinations to (labels, …), or to (…) where b ≡ 1."""
        if self.shared:
            return np.asarray(rows[0])
        return np.asarray(np.tensordot(self.vectors * self.values, rows, axes=1))


def mixing(labels: Labels, kernel: Kernel) -> Mixing:
    """The eigenvectors of b that matter: one for b ≡ 1, two for cos(ξ−ζ), up to all of them for a distance bias."""
    if kernel.mixer is None:
        return Mixing(np.ones(1), np.ones((labels.count, 1)), labels.weights)
    values, vectors = np.linalg.eigh(kernel.mixing(labels))
    kept = np.abs(values) > RANK * labels.count * np.abs(values).max()
    return Mixing(values[kept], vectors[:, kept], labels.weights)


@dataclass(frozen=True, eq=False)
class SpectralField:
    """The field by harmonic analysis of the slices: O(rank·cells^{1.5}), or O(labels·cells^{1.5}) with rotations.

    Attributes:
        mesh: where the density lives.
        levels: levels down the limited reconstruction is prolonged before it is analysed.
        peaks: whether clusters within two cells are taken as points (``peaks.split``).
        mix: the label part of the kernel.
        basis: the content part.
        rotations: Q (labels, d, d) of the fixed frame, None in co-rotating coordinates (and for Q ≡ I).
    """

    mesh: Mesh
    mix: Mixing
    basis: Expansion
    rotations: Array | None = None
    levels: int = 0
    peaks: bool = False

    @property
    def notes(self) -> Mapping[str, float]:
        return {"spectral_fraction": 1.0, "levels": float(self.levels)}

    def combinations(self, density: Array) -> Coefficients:
        """Coefficients (r, count) of the combinations of slices that the kernel needs."""
        if self.rotations is None and self.mix.shared:
            return self._analysed(np.asarray(self.mix.gather(density), np.float64))
        slices = self._analysed(density)
        return self.mix.gather(slices if self.rotations is None else self.basis.turn(slices, self.rotations))

    def _analysed(self, rows: Array) -> Coefficients:
        """Coefficients (rows, count) of densities (rows, cells), their sharp peaks taken as points."""
        parts = [split(self.mesh, row) for row in rows] if self.peaks else []
        rest = np.array([rest for rest, _, _ in parts]) if self.peaks else rows
        fine = finer(self.mesh, self.levels)
        found = self.basis.analyse(fine.centers, prolong(self.mesh, rest, self.levels) * fine.areas)
        for k, (_, places, masses) in enumerate(parts):
            if len(masses):
                found[k] += self.basis.analyse(places, masses[None])[0]
        return found

    def vectors(self, density: Array, points: Array) -> Array:
        if self.rotations is None:
            return np.asarray(self.mix.scatter(self.basis.gradients(self.combinations(density), points)))
        return self.basis.gradients(self._turned_back(density), points)

    def potential(self, density: Array, points: Array) -> Array:
        if self.rotations is None:
            return np.asarray(self.mix.scatter(self.basis.values(self.combinations(density), points)))
        return self.basis.values(self._turned_back(density), points)

    def energy(self, density: Array) -> float:
        combined = self.combinations(density)
        return 0.5 * float(self.mix.values @ self.basis.pairing(combined, combined))

    def _turned_back(self, density: Array) -> Coefficients:
        """Coefficients (labels, count) of what each label sees in its own x: the mixed law of u moved by Q(ξ)ᵀ."""
        assert self.rotations is not None
        rows = self.mix.scatter(self.combinations(density))
        rows = np.broadcast_to(rows, (len(self.rotations), rows.shape[-1]))
        return self.basis.turn(rows, self.rotations.transpose(0, 2, 1))


class LogSafeField:
    """The field of g = c e^{βs} by log-sum-exp integrals: right relative to its own size wherever it is tiny.

    One integral where b ≡ 1, one per label (two where b changes sign) otherwise; co-rotating coordinates only.
    """

    def __init__(
        self,
        mesh: Mesh,
        labels: Labels,
        kernel: Kernel,
        method: str = "auto",
        rtol: float = 1e-8,
        levels: int = 0,
        peaks: bool = False,
    ) -> None:
        if not isinstance(kernel.profile, Exponential):
            raise InputError(
                f"the log-safe field was asked for with the profile {kernel.profile.name}, but only the exponential "
                "profile spans many magnitudes; use the spectral field."
            )
        identity = np.eye(mesh.dimension)
        self._mesh, self._labels, self._profile = mesh, labels, kernel.profile
        self._attention = Attention(identity, identity, identity, kernel.profile.beta)
        self._mixing = kernel.mixing(labels) * labels.weights
        self._shared = kernel.mixer is None
        self._method, self._rtol, self._levels, self._peaks = method, rtol, levels, peaks
        self._served: Mapping[str, float] = {}
        self._plans: dict[int, tuple[Array, AttentionIntegral]] = {}

    @property
    def notes(self) -> Mapping[str, float]:
        return {f"{name}_fraction": share for name, share in self._served.items()}

    def vectors(self, density: Array, points: Array) -> Array:
        rows = []
        for signs in self._integrals(density, points):
            total = np.zeros_like(points)
            for sign, (mean, log_normaliser) in signs:
                radial = np.einsum("nd,nd->n", mean, points)
                speed = np.exp(log_normaliser - self._profile.beta + self._profile.log_speed)
                total += sign * speed[:, None] * (mean - radial[:, None] * points)
            rows.append(total)
        return rows[0] if self._shared else np.array(rows)

    def potential(self, density: Array, points: Array) -> Array:
        rows = []
        for signs in self._integrals(density, points):
            logs = [sign * np.exp(log + self._profile.log_scale - self._profile.beta) for sign, (_, log) in signs]
            rows.append(np.sum(logs, axis=0) if logs else np.zeros(len(points)))
        return rows[0] if self._shared else np.array(rows)

    def energy(self, density: Array) -> float:
        potential = np.atleast_2d(self.potential(density, self._mesh.centers))
        inner = np.einsum("ln,ln->l", np.broadcast_to(potential, density.shape), density * self._mesh.areas)
        return 0.5 * float(self._labels.weights @ inner)

    def _integrals(self, density: Array, points: Array) -> list[list[tuple[float, tuple[Array, Array]]]]:
        """Per label, the integrals of the attracting and of the repelling part of the law it sees."""
        plan, tilts = self._plan(points), self._attention.tilts(points)

        def integral(seen: Array) -> tuple[Array, Array]:
            if self._peaks:
                return integral_with_peaks(self._mesh, seen, self._levels, plan, tilts)
            return plan(prolong(self._mesh, seen, self._levels))

        factors = self._mixing[:1] if self._shared else self._mixing
        parts = []
        for row in factors:
            signed = [(sign, np.maximum(sign * row, 0.0) @ density) for sign in (1.0, -1.0) if (sign * row > 0).any()]
            parts.append([(sign, integral(seen)) for sign, seen in signed])
        self._served = dict(plan.served)
        return parts

    def _plan(self, points: Array) -> AttentionIntegral:
        known = self._plans.get(id(points))
        if known is None or known[0] is not points:
            plan = AttentionIntegral(finer(self._mesh, self._levels), self._attention, points, self._method, self._rtol)
            known = self._plans[id(points)] = (points, plan)
        return known[1]


def spectral_field(
    mesh: Mesh, labels: Labels, kernel: Kernel, *, fixed: bool, levels: int = 0, peaks: bool = False
) -> SpectralField:
    """The spectral field in the fixed frame of x, or in co-rotating coordinates u = Q(ξ)x."""
    rotations = kernel.gauge(labels, mesh.dimension) if fixed else None
    basis = expansion(kernel.profile, mesh.dimension)
    return SpectralField(mesh, mixing(labels, kernel), basis, rotations, levels, peaks)
