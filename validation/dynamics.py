"""What moves the tokens of a comparison: an attention head or a kernel with labels, detuned on request."""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.labels import Labels
from tokensphere.pde.attention import Attention
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.profiles import Exponential
from tokensphere.validation.integrators import integrate
from tokensphere.validation.particle_fields import Velocity, attention_velocity, kernel_velocity

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Dynamics(Protocol):
    """A law of motion for tokens with frozen label indices."""

    @property
    def parameter(self) -> str:
        """The quantity that `detuned` changes."""

    def detuned(self, factor: float) -> Self:
        """The same motion with that quantity multiplied by the factor: a fault of known size."""

    def advance(self, tokens: Array, weights: Array, indices: Indices, times: Array, tolerance: float) -> Array:
        """Positions (times, n, d) from tokens (n, d) at times[0]."""


@dataclass(frozen=True)
class AttentionDynamics:
    """Tokens under one attention head; labels play no part.  Detuned in β, at β = inf in speed."""

    attention: Attention
    method: str = "auto"
    pace: float = 1.0

    @property
    def parameter(self) -> str:
        return "the speed" if self.attention.zero_temperature else "beta"

    def detuned(self, factor: float) -> "AttentionDynamics":
        if self.attention.zero_temperature:
            return replace(self, pace=self.pace * factor)
        return replace(self, attention=replace(self.attention, beta=self.attention.beta * factor))

    def advance(self, tokens: Array, weights: Array, indices: Indices, times: Array, tolerance: float) -> Array:
        velocity = attention_velocity(self.attention, weights, self.method)
        return _advance(velocity, tokens, times * self.pace, tolerance)


@dataclass(frozen=True)
class KernelDynamics:
    """Tokens with labels under a kernel of the joint law.  Detuned in the profile's β, for others in speed."""

    kernel: Kernel
    labels: Labels
    pace: float = 1.0

    @property
    def parameter(self) -> str:
        return "beta" if isinstance(self.kernel.profile, Exponential) else "the speed"

    def detuned(self, factor: float) -> "KernelDynamics":
        profile = self.kernel.profile
        if isinstance(profile, Exponential):
            return replace(self, kernel=replace(self.kernel, profile=replace(profile, beta=profile.beta * factor)))
        return replace(self, pace=self.pace * factor)

    def advance(self, tokens: Array, weights: Array, indices: Indices, times: Array, tolerance: float) -> Array:
        return _advance(
            kernel_velocity(self.kernel, self.labels, indices, weights), tokens, times * self.pace, tolerance
        )


def _advance(velocity: Velocity, tokens: Array, times: Array, tolerance: float) -> Array:
    if len(times) == 1:
        return tokens[None]
    return integrate(velocity, tokens, times, tolerance=tolerance).states
