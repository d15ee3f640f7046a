"""[labels] and [kernel]: the auxiliary variable of a joint law and the interaction of labelled tokens."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tokensphere.config.base import Finite, Matrix, Positive, Table, Vector


def _count(value: int) -> int:
    if not 1 <= value <= 100_000:
        raise ValueError("it must be a whole number from 1 to 100000")
    return value


def _weights(values: list[float]) -> list[float]:
    if min(values) <= 0:
        raise ValueError("every weight must be above 0; leave out labels without mass")
    return values


Count = Annotated[int, AfterValidator(_count)]


class CircleLabels(Table):
    """`count` equal arcs of [0, 2π)."""

    kind: Literal["circle"]
    count: Count


class IntervalLabels(Table):
    """`count` equal pieces of [0, 1]."""

    kind: Literal["interval"]
    count: Count


class FiniteLabels(Table):
    """A finite set with weights, normalised to sum to 1."""

    kind: Literal["finite"]
    weights: Annotated[Vector, AfterValidator(_weights)]


LabelsTable = Annotated[CircleLabels | IntervalLabels | FiniteLabels, Field(discriminator="kind")]

Factor = Annotated[
    Literal["1", "1/beta", "exp(-beta)/beta"],
    BeforeValidator(lambda value: "1" if value == 1 and not isinstance(value, bool) else value),
]


class Kernel(Table):
    """The content profile g: exponential, g(s) = factor · e^{βs}, or linear, g(s) = s."""

    profile: Literal["exponential", "linear"] = "exponential"
    beta: Positive | None = None
    factor: Factor = "1/beta"

    @model_validator(mode="after")
    def _beta_fits_profile(self) -> "Kernel":
        if self.profile == "exponential" and self.beta is None:
            raise ValueError('beta is missing, but profile = "exponential" needs it; give a number above 0')
        if self.profile == "linear" and self.beta is not None:
            raise ValueError('beta was given, but profile = "linear" has none; leave it out')
        return self


class UsaKernel(Kernel):
    """g(⟨x, y⟩), whatever the labels."""

    kind: Literal["usa"]


class RopeKernel(Kernel):
    """g(⟨R_ξ x, R_ζ y⟩), R_ξ the rotation by frequency·ξ about e3."""

    kind: Literal["rope"]
    frequency: Finite = 1.0


class GeneralisedRopeKernel(Kernel):
    """g(⟨Q(ξ)x, Q(ζ)y⟩), Q(ξ) the ordered product of exp(ξ·generator) over skew generators."""

    kind: Literal["generalised_rope"]
    generators: Annotated[list[Matrix], Field(min_length=1)]


class PrefixKernel(Kernel):
    """g(⟨O(p)x, O(q)y⟩), one orthogonal matrix for each label."""

    kind: Literal["prefix"]
    matrices: Annotated[list[Matrix], Field(min_length=1)]


class DistanceBiasKernel(Kernel):
    """e^{−|ξ−ζ|/length} g(⟨x, y⟩)."""

    kind: Literal["distance_bias"]
    length: Positive


class ToeplitzKernel(Kernel):
    """κ(ξ−ζ) g(⟨x, y⟩), κ(s) = Σ coefficient·cos(k s) over the pairs [k, coefficient]."""

    kind: Literal["toeplitz"]
    cosines: Annotated[list[Annotated[Vector, Field(min_length=2, max_length=2)]], Field(min_length=1)]


KernelTable = Annotated[
    UsaKernel | RopeKernel | GeneralisedRopeKernel | PrefixKernel | DistanceBiasKernel | ToeplitzKernel,
    Field(discriminator="kind"),
]
