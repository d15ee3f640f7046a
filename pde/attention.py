"""The attention head (Q, K, V, β) and the matrices it enters the equation with."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]

SINGULAR = 1e-12
"""B counts as singular when its smallest singular value is below this fraction of the largest."""


class SingularError(InputError):
    """B = QᵀK is not invertible, so hypothesis H1 fails."""


@dataclass(frozen=True, eq=False)
class Attention:
    """One attention head:  v(x) = P_x V · ∫ y e^{β⟨Qx,Ky⟩} dρ(y) / ∫ e^{β⟨Qx,Ky⟩} dρ(y).

    query and key are (k, d), value is (d, d), d ≥ 2; `beta` is the inverse temperature, 0 < β ≤ inf, and inf means
    the limit v(x) = P_x V Bᵀx/|Bᵀx|.  With `normalised=False` (unnormalised attention) the denominator is left out.
    Source: first document, equations (2) and (3); theory §1.1.

    Raises InputError for a wrong shape, an entry that is not finite or a β that is not positive, and its subclass
    SingularError where B = QᵀK is singular.
    """

    query: Array
    key: Array
    value: Array
    beta: float
    normalised: bool = True

    def __post_init__(self) -> None:
        query, key, value = (_matrix(getattr(self, name), name) for name in ("query", "key", "value"))
        _check_shapes(query, key, value)
        _check_beta(self.beta)
        if not isinstance(self.normalised, bool | np.bool_):
            raise InputError(f"normalised = {self.normalised!r} was given, but it is either true or false.")
        for name, matrix in (("query", query), ("key", key), ("value", value)):
            object.__setattr__(self, name, matrix)
        object.__setattr__(self, "beta", float(self.beta))
        object.__setattr__(self, "normalised", bool(self.normalised))
        _check_interaction(self.B, self.beta)

    @cached_property
    def B(self) -> Array:
        """B = QᵀK (d, d), so that ⟨Qx, Ky⟩ = ⟨Bᵀx, y⟩."""
        with np.errstate(over="ignore", invalid="ignore"):
            return _frozen(self.query.T @ self.key)

    @cached_property
    def M(self) -> Array:
        """M = V Bᵀ (d, d): the matrix whose symmetry and spectral gap the theorem asks for."""
        return _frozen(self.value @ self.B.T)

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of a token."""
        return int(self.value.shape[0])

    @property
    def zero_temperature(self) -> bool:
        """Whether β = inf."""
        return math.isinf(self.beta)

    def directions(self, points: Array) -> Array:
        """Bᵀx/|Bᵀx| for points x (n, d): the maximiser of y ↦ ⟨Bᵀx, y⟩ on the sphere."""
        images = points @ self.B
        return np.asarray(images / np.linalg.norm(images, axis=-1, keepdims=True))

    def tilts(self, points: Array) -> Array:
        """z = β Bᵀx (n, d) for points x (n, d): the attention mean is ∇ log F(z), F(z) = ∫e^{⟨z,y⟩}dρ(y)."""
        # Not `@`: BLAS would wake its own threads, which costs far more than this sum on a busy machine.
        return np.asarray(self.beta * np.einsum("...d,dk->...k", points, self.B))


def _matrix(values: ArrayLike, name: str) -> Array:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not a matrix of numbers; give it as rows of equal length.") from None
    if matrix.ndim != 2:
        raise InputError(f"{name} has {matrix.ndim} dimensions, but it must be a matrix; give it as a list of rows.")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"{name} has the entry {matrix[row, column]} in row {row}, column {column}, but every entry "
                         "must be finite.")
    return _frozen(matrix)


def _check_shapes(query: Array, key: Array, value: Array) -> None:
    dimension = value.shape[0]
    if value.shape != (dimension, dimension) or dimension < 2:
        raise InputError(f"value has shape {value.shape}, but it must be square, d×d with d ≥ 2 (3 on the sphere, "
                         "2 on the circle).")
    if query.shape != key.shape or query.shape[1] != dimension:
        raise InputError(f"query has shape {query.shape} and key {key.shape}, but both must be k×{dimension} like the "
                         f"{dimension}×{dimension} value, with the same k.")


def _check_beta(beta: Any) -> None:
    try:
        positive = bool(float(beta) > 0.0)
    except (TypeError, ValueError):
        positive = False
    if not positive or isinstance(beta, bool):
        raise InputError(f"beta = {beta} was given, but the inverse temperature must be a number above 0, or inf for "
                         "zero temperature.")


def _check_interaction(B: Array, beta: float) -> None:
    scale = 1.0 if math.isinf(beta) else beta
    with np.errstate(over="ignore"):
        if not np.isfinite(B).all() or not np.isfinite(scale * np.abs(B).sum()):
            raise InputError(f"beta·QᵀK overflows with beta = {beta:g}; scale query, key or beta down.")
    singular_values = np.linalg.svd(B, compute_uv=False)
    if singular_values[-1] <= SINGULAR * singular_values[0]:
        raise SingularError(f"B = QᵀK is singular (smallest singular value {singular_values[-1]:.2g}, largest "
                            f"{singular_values[0]:.2g}), but it must be invertible; change query or key.")


def _frozen(matrix: Array) -> Array:
    matrix.flags.writeable = False
    return matrix
