"""Kernels of the joint law: h((x,ξ),(y,ζ)) = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩).

A kernel is one small object: a content profile g, a symmetric mixing b of the labels and a gauge Q: A → O(d); either of
the last two may be trivial.  The families are those of the second document (formulas: theory §2.2).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.pde.gauge import axis_rotations, check_orthogonal, exponentials, plane_rotations
from tokensphere.pde.profiles import Exponential, Linear, Profile

Array = NDArray[np.float64]

__all__ = [
    "Exponential",
    "Kernel",
    "Linear",
    "distance_bias",
    "generalised_rope",
    "nonnegative_bias",
    "prefix",
    "rope",
    "toeplitz",
    "usa",
]


@dataclass(frozen=True, eq=False)
class Kernel:
    """h((x,ξ),(y,ζ)) = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩).

    Attributes:
        name: the family.
        profile: g.
        mixer: labels to b (labels, labels); None for b ≡ 1.
        rotator: (labels, d) to Q (labels, d, d); None for Q ≡ I.
        parameters: what a summary records.
    """

    name: str
    profile: Profile
    mixer: Callable[[Labels], Array] | None = None
    rotator: Callable[[Labels, int], Array] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def mixing(self, labels: Labels) -> Array:
        """b(ξ,ζ) (labels, labels).

        Raises InputError where b is not symmetric, finite or of that shape: h must be symmetric.
        """
        if self.mixer is None:
            return np.ones((labels.count, labels.count))
        matrix = np.asarray(self.mixer(labels), dtype=np.float64)
        if matrix.shape != (labels.count, labels.count) or not np.isfinite(matrix).all():
            raise InputError(f"the mixing of the {self.name} kernel must give finite values of shape (labels, labels).")
        if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=1e-12 * np.abs(matrix).max()):
            raise InputError(f"the {self.name} kernel is not symmetric in the labels; b(ξ,ζ) must equal b(ζ,ξ).")
        return (matrix + matrix.T) / 2

    def gauge(self, labels: Labels, dimension: int) -> Array | None:
        """Q(ξ) (labels, d, d), or None for the identity. Raises InputError where a matrix is not orthogonal."""
        if self.rotator is None:
            return None
        return check_orthogonal(self.rotator(labels, dimension), labels.count, dimension, self.name)

    @property
    def is_gauge(self) -> bool:
        """Whether labels enter through Q."""
        return self.rotator is not None

    @property
    def is_mixing(self) -> bool:
        """Whether labels enter through b."""
        return self.mixer is not None


def usa(profile: Profile) -> Kernel:
    """Unnormalised self-attention h = g(⟨x,y⟩): labels play no part."""
    return Kernel("usa", profile)


def rope(frequency: float, profile: Profile, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Kernel:
    """h = g(⟨R_ξx, R_ζy⟩), R_ξ the rotation by +frequency·ξ about ``axis`` on S², of the plane on S¹."""
    if not np.isfinite(frequency):
        raise InputError(f"rope was given frequency = {frequency}, but it must be finite.")

    def rotator(labels: Labels, dimension: int) -> Array:
        angles = frequency * labels.points
        return plane_rotations(angles) if dimension == 2 else axis_rotations(angles, axis)

    return Kernel("rope", profile, rotator=rotator, parameters={"frequency": float(frequency)})


def generalised_rope(
    profile: Profile,
    *,
    generators: Sequence[ArrayLike] | None = None,
    rotation: Callable[[Array], Array] | None = None,
) -> Kernel:
    """h = g(⟨Q(ξ)x, Q(ζ)y⟩) for any curve Q: A → SO(d).

    Args:
        generators: skew-symmetric A_1, A_2, … with Q(ξ) = e^{ξA_1}e^{ξA_2}⋯; or
        rotation: label positions (n,) to matrices (n, d, d).
    """
    if (generators is None) == (rotation is None):
        raise InputError("generalised_rope needs either generators or a rotation function, and not both.")
    curve = exponentials(generators) if generators is not None else rotation
    assert curve is not None
    recorded = {} if generators is None else {"generators": [np.asarray(g).tolist() for g in generators]}
    return Kernel("generalised_rope", profile, rotator=lambda labels, _: curve(labels.points), parameters=recorded)


def prefix(matrices: ArrayLike, profile: Profile) -> Kernel:
    """h = g(⟨O(p)x, O(q)y⟩) with O (labels, d, d) in the order of the labels."""
    table = np.array(matrices, dtype=np.float64)
    table.setflags(write=False)
    return Kernel("prefix", profile, rotator=lambda labels, dimension: table, parameters={"prefixes": len(table)})


def nonnegative_bias(bias: Callable[[Array], Array], profile: Profile, name: str = "bias") -> Kernel:
    """h = b(ξ−ζ) g(⟨x,y⟩) for any even b ≥ 0. Raises InputError (when joined to labels) where b is negative."""

    def mixer(labels: Labels) -> Array:
        matrix = np.asarray(bias(labels.differences()), dtype=np.float64)
        if matrix.min() < 0:
            raise InputError(f"the {name} kernel has a bias of {matrix.min():g}, but it must be >= 0; use toeplitz.")
        return matrix

    return Kernel(name, profile, mixer=mixer)


def distance_bias(length: float, profile: Profile) -> Kernel:
    """h = e^{−|ξ−ζ|/length} g(⟨x,y⟩); on a circle of labels |ξ−ζ| is the arc between them."""
    if not (np.isfinite(length) and length > 0):
        raise InputError(f"distance_bias was given length = {length}, but it must be finite and above 0.")
    kernel = nonnegative_bias(lambda s: np.exp(-np.abs(s) / length), profile, "distance_bias")
    return Kernel(kernel.name, profile, mixer=kernel.mixer, parameters={"length": float(length)})


def toeplitz(
    profile: Profile,
    *,
    cosines: Sequence[tuple[int, float]] | None = None,
    even: Callable[[Array], Array] | None = None,
) -> Kernel:
    """h = κ(ξ−ζ) g(⟨x,y⟩), κ of any sign.

    Args:
        cosines: pairs (k, c_k) with κ(s) = Σ c_k cos(ks); or
        even: κ itself, an even function of s.
    """
    if (cosines is None) == (even is None):
        raise InputError("toeplitz needs either cosines or an even function, and not both.")
    if cosines is None:
        assert even is not None
        kappa = even
        return Kernel("toeplitz", profile, mixer=lambda labels: kappa(labels.differences()))
    pairs = [(int(k), float(c)) for k, c in cosines]

    def mixer(labels: Labels) -> Array:
        s = labels.differences()
        return np.asarray(sum((c * np.cos(k * s) for k, c in pairs), np.zeros_like(s)))

    return Kernel("toeplitz", profile, mixer=mixer, parameters={"cosines": pairs})
