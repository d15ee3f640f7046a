"""Curves of orthogonal matrices Q: A → O(d), the gauges of RoPE and prefix kernels."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]
Gauge = Callable[[Array], Array]
"""Label positions (n,) to orthogonal matrices (n, d, d)."""

ORTHOGONAL = 1e-10


def plane_rotations(angles: Array) -> Array:
    """(n, 2, 2) counterclockwise rotations of the plane."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], -2)


def axis_rotations(angles: Array, axis: ArrayLike = (0.0, 0.0, 1.0)) -> Array:
    """(n, 3, 3) rotations about the unit vector ``axis``, right-handed (Rodrigues' formula).

    Raises InputError for an axis that is zero, not finite or not of three coordinates.
    """
    direction = np.asarray(axis, dtype=np.float64)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not direction.any():
        raise InputError(f"the axis {direction.tolist()} was given, but it must be a non-zero vector of three numbers.")
    x, y, z = direction / np.linalg.norm(direction)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angles = np.asarray(angles)[:, None, None]
    return np.asarray(np.eye(3) + np.sin(angles) * cross + (1 - np.cos(angles)) * (cross @ cross))


def exponentials(generators: Sequence[ArrayLike]) -> Gauge:
    """Q(ξ) = e^{ξA_1} e^{ξA_2} ⋯ for skew-symmetric generators A_k (d, d).

    Raises InputError for a generator that is not a skew-symmetric matrix.
    """
    matrices = [np.asarray(generator, dtype=np.float64) for generator in generators]
    if not matrices:
        raise InputError("generalised RoPE was given no generators; give at least one skew-symmetric matrix.")
    for matrix in matrices:
        if matrix.ndim != 2 or matrix.shape != matrices[0].shape or not np.allclose(matrix, -matrix.T, atol=1e-12):
            raise InputError(
                "a generator of generalised RoPE is not skew-symmetric; give square matrices A with Aᵀ = −A, all of "
                "one size."
            )
    from scipy.linalg import expm

    def gauge(points: Array) -> Array:
        product = np.eye(matrices[0].shape[0])[None]
        for matrix in matrices:
            product = product @ expm(np.asarray(points)[:, None, None] * matrix)
        return np.broadcast_to(product, (len(points), *product.shape[1:])).copy()

    return gauge


def householder(targets: Array, pole: Array) -> Array:
    """(n, d, d) symmetric orthogonal O with O t = pole for unit vectors t (n, d): the reflection along t − pole.

    O = I − 2wwᵀ/|w|², w = t − pole, and I where t is the pole.  Source: second document, Theorem 4.
    """
    difference = targets - pole
    square = np.einsum("ni,ni->n", difference, difference)
    safe = np.where(square > 0, square, 1.0)[:, None, None]
    return np.asarray(np.eye(len(pole)) - 2 * difference[:, :, None] * difference[:, None, :] / safe)


def check_orthogonal(matrices: Array, count: int, dimension: int, kernel: str) -> Array:
    """The matrices, or an InputError naming the first label where they are not orthogonal of the right size."""
    matrices = np.asarray(matrices, dtype=np.float64)
    if matrices.shape != (count, dimension, dimension):
        raise InputError(
            f"the {kernel} kernel gives matrices of shape {matrices.shape}, but {count} labels on S^{dimension - 1} "
            f"need {(count, dimension, dimension)}."
        )
    defect = np.abs(matrices @ matrices.transpose(0, 2, 1) - np.eye(dimension)).max(axis=(1, 2))
    if not defect.max() < ORTHOGONAL:
        raise InputError(
            f"the {kernel} kernel's matrix of label {int(np.argmax(defect))} is not orthogonal (QQᵀ − I has an entry "
            f"{defect.max():.2g}); give rotations or reflections."
        )
    return matrices
