"""The label space A of the auxiliary variable ξ: points and the weights of its law ρ."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Floats
from tokensphere.meshes.rules import interval_rule


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """A quadrature rule of the law ρ on A: ∫f dρ ≈ Σ_ξ weights_ξ f(points_ξ). Labels never move.

    Attributes:
        kind: "circle" (angles modulo 2π), "interval" ([0, 1]) or "finite" (names are only numbers).
        points: (labels,) positions ξ.
        weights: (labels,) positive, summing to 1.

    Raises:
        InputError: for an unknown kind, points and weights of different shapes, or weights that are not a law.
    """

    kind: str
    points: Floats
    weights: Floats

    def __post_init__(self) -> None:
        if self.kind not in ("circle", "interval", "finite"):
            raise InputError(f"labels of kind {self.kind!r} were given; the kinds are circle, interval and finite.")
        points, weights = (np.array(part, dtype=np.float64) for part in (self.points, self.weights))
        if points.ndim != 1 or points.shape != weights.shape or not len(points):
            raise InputError(
                f"labels need one position and one weight each, but positions have shape {points.shape} and "
                f"weights {weights.shape}."
            )
        if not np.isfinite(points).all():
            raise InputError("the position of a label is not finite; give a number for every label.")
        if not np.isfinite(weights).all() or weights.min() <= 0:
            raise InputError(
                f"label weights from {weights.min():g} to {weights.max():g} were given, but each must be finite and "
                "above 0; leave out labels without mass."
            )
        for part in (points, weights := weights / weights.sum()):
            part.setflags(write=False)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    @property
    def count(self) -> int:
        """Number of labels."""
        return len(self.points)

    def differences(self) -> Floats:
        """ξ − ζ (labels, labels); on the circle the representative in [−π, π)."""
        difference = self.points[:, None] - self.points[None, :]
        return (difference + np.pi) % (2 * np.pi) - np.pi if self.kind == "circle" else difference

    def __repr__(self) -> str:
        return f"{self.kind} of {self.count} labels"


def circle(count: int, law: Callable[[Floats], Floats] | None = None) -> Labels:
    """Angles 2πk/count: the trapezoidal rule, exact for trigonometric polynomials of degree below ``count``.

    Args:
        count: number of labels, at least 1.
        law: density of ρ over the angle, up to a factor; uniform if left out.
    """
    return _weighted("circle", 2 * np.pi * np.arange(_count(count)) / count, np.ones(count), law)


def interval(count: int, law: Callable[[Floats], Floats] | None = None) -> Labels:
    """The midpoint rule on [0, 1]: equal parts, error O(count^{−2})."""
    return _weighted("interval", (np.arange(_count(count)) + 0.5) / count, np.ones(count), law)


def gauss_interval(count: int, law: Callable[[Floats], Floats] | None = None) -> Labels:
    """Gauss–Legendre points on [0, 1] (basix): exact for polynomials of degree 2·count − 1."""
    points, weights = interval_rule(2 * _count(count) - 1)
    order = np.argsort(points)
    return _weighted("interval", points[order], weights[order], law)


def finite(weights: ArrayLike, points: ArrayLike | None = None) -> Labels:
    """Finitely many labels of the given weights (rescaled to sum 1), at 0, 1, 2, … unless ``points`` says otherwise."""
    try:
        masses = np.atleast_1d(np.asarray(weights, dtype=np.float64))
        places = np.arange(len(masses)) if points is None else np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("the weights of a finite label set must be a list of numbers, one per label.") from None
    return Labels("finite", np.asarray(places, dtype=np.float64), masses)


def _count(count: int) -> int:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"{count!r} labels were asked for; give a whole number of at least 1.")
    return int(count)


def _weighted(kind: str, points: Floats, weights: Floats, law: Callable[[Floats], Floats] | None) -> Labels:
    return Labels(kind, points, weights if law is None else weights * np.asarray(law(points), dtype=np.float64))
