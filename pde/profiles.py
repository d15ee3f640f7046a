"""Content profiles g of a kernel h = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩), with the time unit they carry."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]

FACTORS = ("1", "1/beta", "exp(-beta)/beta")
OVERFLOW = 700.0


class Profile(Protocol):
    """A zonal profile g(s), s = ⟨x,y⟩ ∈ [−1, 1], increasing in s."""

    @property
    def name(self) -> str:
        """What summary files call it, time unit included."""

    def value(self, s: Array) -> Array:
        """g(s)."""

    def derivative(self, s: Array) -> Array:
        """g'(s)."""

    def degree(self, dimension: int, tolerance: float) -> int:
        """Largest harmonic degree whose share of g exceeds the tolerance."""

    def eigenvalues(self, dimension: int, degree: int) -> Array:
        """λ_l, l = 0…degree: ∫g(⟨x,y⟩)f(y)dσ(y) = λ_l f(x) for harmonics f of degree l on S^{d−1}."""


@dataclass(frozen=True)
class Exponential:
    """g(s) = c e^{βs} with the named factor c: "1", "1/beta" or "exp(-beta)/beta".

    The factor is the time unit: e^{βs} moves β times faster than (1/β)e^{βs}, and e^β times faster again than
    (1/β)e^{β(s−1)} (theory §2.1).  λ_l = c i_l(β) on S², c I_l(β) on S¹.

    Raises InputError for a β that is not positive and finite, an unknown factor, or a g that overflows at s = 1.
    """

    beta: float
    factor: str = "1"

    def __post_init__(self) -> None:
        if isinstance(self.beta, bool) or not (0 < float(self.beta) < math.inf):
            raise InputError(f"the profile was given beta = {self.beta}, but it must be finite and above 0.")
        if self.factor not in FACTORS:
            raise InputError(f"factor = {self.factor!r} was given, but the time unit is one of {', '.join(FACTORS)}.")
        object.__setattr__(self, "beta", float(self.beta))
        if self.log_speed > OVERFLOW:
            raise InputError(
                f"speeds grow like e^{self.log_speed:.0f} at beta = {self.beta:g} with the factor {self.factor!r}; use "
                'the factor "exp(-beta)/beta".'
            )

    @property
    def name(self) -> str:
        return f"exponential(beta={self.beta:g}, factor={self.factor})"

    @property
    def log_scale(self) -> float:
        """log g(1) = log c + β."""
        return {"1": self.beta, "1/beta": self.beta - math.log(self.beta), "exp(-beta)/beta": -math.log(self.beta)}[
            self.factor
        ]

    @property
    def log_speed(self) -> float:
        """log g'(1) = log c + log β + β."""
        return self.log_scale + math.log(self.beta)

    def value(self, s: Array) -> Array:
        return np.exp(self.log_scale + self.beta * (np.asarray(s) - 1))

    def derivative(self, s: Array) -> Array:
        return np.exp(self.log_speed + self.beta * (np.asarray(s) - 1))

    def degree(self, dimension: int, tolerance: float) -> int:
        """e^{−β}i_l(β) dies like e^{−l(l+1)/2β}: enough degrees for l·λ_l/λ_0 to fall below the tolerance."""
        trial = int(math.sqrt(2 * self.beta * math.log(1 / tolerance))) + int(-2 * math.log10(tolerance)) + 8
        shares = self.eigenvalues(dimension, trial)
        relevant = np.flatnonzero(np.arange(trial + 1) * shares > tolerance * shares[0])
        return int(relevant[-1]) if len(relevant) else 1

    def eigenvalues(self, dimension: int, degree: int) -> Array:
        from scipy.special import ive

        order = np.arange(degree + 1) + (0.5 if dimension == 3 else 0.0)
        bessel = ive(order, self.beta) * (math.sqrt(math.pi / (2 * self.beta)) if dimension == 3 else 1.0)
        return np.asarray(math.exp(self.log_scale) * bessel)


@dataclass(frozen=True)
class Linear:
    """g(s) = s: only the first harmonic, λ_1 = 1/d."""

    @property
    def name(self) -> str:
        return "linear"

    def value(self, s: Array) -> Array:
        return np.asarray(s, dtype=np.float64)

    def derivative(self, s: Array) -> Array:
        return np.ones_like(np.asarray(s, dtype=np.float64))

    def degree(self, dimension: int, tolerance: float) -> int:
        return 1

    def eigenvalues(self, dimension: int, degree: int) -> Array:
        return np.where(np.arange(degree + 1) == 1, 1.0 / dimension, 0.0)
