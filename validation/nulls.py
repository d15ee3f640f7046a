"""What a correct particle code may do: the law of its harmonic moments, simulated with the reference particles.

Tokens that interact do not stay independent samples of the density: their fluctuations are carried, amplified or damped
by the flow (up to five times in variance at β = 2, t = 2).  So the covariance of the moments comes from replicates of
the reference particles started from independent samples, scaled by 1/n.  A low-discrepancy set of tokens gives the
moments of the limit n → ∞ without the mesh: its distance to the density's is the discretisation error of the run.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.kernels import Kernel
from tokensphere.validation.dynamics import Dynamics
from tokensphere.validation.observables import degrees, density_moments, energy_weights, harmonics
from tokensphere.validation.sampling import (
    independent_uniforms,
    low_discrepancy_uniforms,
    sample_density,
    sample_joint,
)
from tokensphere.validation.statistics import Null

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

DEGREE = 6
"""Degrees of the energy distance."""

TEST_DEGREE = 2
"""Degrees of Hotelling's test: mean and second moments, where every fault of theory §1 shows first."""

DETUNING = 0.1
"""The fault that a consistent verdict excludes: this much on β (or on the speed)."""

ALLOWANCE = 2.0
"""The density may be off by this multiple of its estimated discretisation error."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Maps tokens with label indices, and densities, to one vector of moments: (…, count).

    Without labels the harmonics of x; with a kernel on labels also those of u = Q(ξ)x, or those of x times √2 cos ξ and
    √2 sin ξ (cos πξ off the circle) where labels are mixed.
    """

    mesh: Mesh
    degree: int
    labels: Labels | None = None
    kernel: Kernel | None = None

    @cached_property
    def gauge(self) -> Array | None:
        """Q (labels, d, d), or None."""
        if self.kernel is None or self.labels is None:
            return None
        return self.kernel.gauge(self.labels, self.mesh.dimension)

    @cached_property
    def tones(self) -> list[Array]:
        """Functions of the label (labels,) that multiply the harmonics."""
        if self.labels is None or self.kernel is None or not self.kernel.is_mixing:
            return []
        if self.labels.kind == "circle":
            return [np.sqrt(2.0) * np.cos(self.labels.points), np.sqrt(2.0) * np.sin(self.labels.points)]
        return [np.sqrt(2.0) * np.cos(np.pi * self.labels.points)]

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Degree of every moment (count,)."""
        blocks = 1 + len(self.tones) + (self.gauge is not None)
        return np.tile(degrees(self.mesh.dimension, self.degree), blocks)

    @property
    def energy_weights(self) -> Array:
        """Weights (count,) of the energy distance of the law of x; 0 for moments that see labels."""
        weights = np.zeros(len(self.degrees))
        plain = energy_weights(self.mesh.dimension, self.degree)
        weights[: len(plain)] = plain
        return weights

    def of_tokens(self, positions: Array, weights: Array, indices: Indices) -> Array:
        """Σ_i w_i h(x_i, ξ_i) of tokens (n, d): (count,)."""
        values = harmonics(positions, self.degree)
        parts = [weights @ values]
        parts += [(weights * tone[indices]) @ values for tone in self.tones]
        if self.gauge is not None:
            turned = np.einsum("nij,nj->ni", self.gauge[indices], positions)
            parts.append(weights @ harmonics(turned, self.degree))
        return np.concatenate(parts)

    def of_density(self, density: Array) -> Array:
        """∫h dρ of a density (cells,) or (labels, cells): (count,)."""
        slices = density_moments(self.mesh, density, self.degree)
        if self.labels is None:
            return slices
        weights = self.labels.weights
        parts = [weights @ slices]
        parts += [(weights * tone) @ slices for tone in self.tones]
        if self.gauge is not None:
            turned = np.einsum("lij,cj->lci", self.gauge, self.mesh.centers)
            masses = density * self.mesh.areas * weights[:, None]
            parts.append(np.sum([m @ harmonics(u, self.degree) for m, u in zip(masses, turned, strict=True)], axis=0))
        return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class Reference:
    """Simulated moments at the times of a comparison.

    expected (times, count): the density's. shift (times, count): limit of many tokens minus the density's.
    spread (times, count, count): covariance for one token. bias (times, count): n times the mean deviation of n tokens
    from the limit. detuned (2, times, count): how far the moments move when β is a little smaller or larger.
    """

    times: Array
    expected: Array
    shift: Array
    spread: Array
    bias: Array
    detuned: Array
    replicates: int

    def null(self, k: int, tokens: float, columns: slice = slice(None)) -> Null:
        """The law of the moments of `tokens` independent tokens at time k."""
        centre = self.expected[k] + self.bias[k] / tokens
        return Null(
            centre[columns],
            self.spread[k][columns, columns] / tokens,
            ALLOWANCE * self.shift[k][columns],
            self.replicates,
        )


def simulate(
    moments: Moments,
    densities: Array,
    dynamics: Dynamics,
    times: Array,
    tokens: int,
    reference_tokens: int,
    replicates: int,
    generator: Generator,
    tolerance: float = 1e-4,
) -> Reference:
    """Reference moments at `times` (times[0] is the start) from densities (times, …, cells) of the run.

    `tokens` is the size of a replicate, `reference_tokens` that of the low-discrepancy set.
    """
    expected = np.array([moments.of_density(density) for density in densities])

    def paths(positions: Array, indices: Indices, motion: Dynamics) -> Array:
        weights = np.full(len(positions), 1.0 / len(positions))
        frames = motion.advance(positions, weights, indices, times, tolerance)
        return np.array([moments.of_tokens(frame, weights, indices) for frame in frames])

    start, indices = draw(moments, densities[0], reference_tokens, generator, even=True)
    limit = paths(start, indices, dynamics)
    detuned = np.array([paths(start, indices, dynamics.detuned(1 + s * DETUNING)) - limit for s in (-1, 1)])
    copies = np.array([paths(*draw(moments, densities[0], tokens, generator), dynamics) for _ in range(replicates)])
    deviations = copies - copies.mean(axis=0)
    spread = np.einsum("rtk,rtl->tkl", deviations, deviations) * (tokens / (replicates - 1))
    bias = (copies.mean(axis=0) - limit) * tokens
    return Reference(times, expected, limit - expected, spread, bias, detuned, replicates)


def draw(
    moments: Moments, density: Array, count: int, generator: Generator, even: bool = False
) -> tuple[Array, Indices]:
    """Independent (or evenly spread) tokens (count, d) with label indices, all 0 without labels."""
    uniforms = low_discrepancy_uniforms if even else independent_uniforms
    if moments.labels is None:
        return sample_density(moments.mesh, density, count, generator, uniforms), np.zeros(count, dtype=np.int64)
    return sample_joint(moments.mesh, moments.labels, density, count, generator, uniforms)
