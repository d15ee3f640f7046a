"""[initial]: the density that a run starts from."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from tokensphere.config.base import Finite, Matrix, Positive, Table, Vector


def _fraction(value: float) -> float:
    if not 0 <= value < 1:
        raise ValueError("it must be at least 0 and below 1, so that the density stays positive")
    return value


def _seed(value: int) -> int:
    if not 0 <= value < 2**63:
        raise ValueError("it must be a whole number of at least 0")
    return value


class Start(Table):
    """What every kind may add in a joint run: a relative perturbation of each label's slice, drawn from `seed`."""

    perturbation: Annotated[Finite, AfterValidator(_fraction)] = 0.0
    seed: Annotated[int, AfterValidator(_seed)] = 0


class UniformTable(Start):
    """The uniform density."""

    kind: Literal["uniform"]


class PolynomialTable(Start):
    """Density proportional to constant + ⟨linear, x⟩ + ⟨x, quadratic x⟩."""

    kind: Literal["polynomial"]
    constant: Finite = 1.0
    linear: Vector | None = None
    quadratic: Matrix | None = None


class VonMisesFisherTable(Start):
    """Density proportional to exp(concentration ⟨mean, x⟩)."""

    kind: Literal["von_mises_fisher"]
    mean: Vector
    concentration: Positive


class HealpixMapTable(Start):
    """A HEALPix map from a FITS or .npy file, in the order named (for FITS, by default the order in its header)."""

    kind: Literal["healpix_map"]
    path: str
    order: Literal["ring", "nested"] | None = None


class ParticlesTable(Start):
    """Tokens of an .npz file (positions (n, d), or (times, n, d) whose first time counts), smoothed by von Mises–Fisher
    kernels of the concentration given."""

    kind: Literal["particles"]
    path: str
    concentration: Positive | None = None


class UniformComponent(Table):
    """A uniform component."""

    kind: Literal["uniform"]
    weight: Positive


class PolynomialComponent(Table):
    """A polynomial component."""

    kind: Literal["polynomial"]
    weight: Positive
    constant: Finite = 1.0
    linear: Vector | None = None
    quadratic: Matrix | None = None


class VonMisesFisherComponent(Table):
    """A von Mises–Fisher component."""

    kind: Literal["von_mises_fisher"]
    weight: Positive
    mean: Vector
    concentration: Positive


Component = Annotated[UniformComponent | PolynomialComponent | VonMisesFisherComponent, Field(discriminator="kind")]


class MixtureTable(Start):
    """A weighted sum of densities; the weights are normalised."""

    kind: Literal["mixture"]
    components: Annotated[list[Component], Field(min_length=1)]


InitialTable = Annotated[
    UniformTable | PolynomialTable | VonMisesFisherTable | MixtureTable | HealpixMapTable | ParticlesTable,
    Field(discriminator="kind"),
]
