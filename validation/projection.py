"""The limit of the low-temperature theorem: M = VBᵀ, its dominant eigenspace E and Π(x) = P_E x / |P_E x|.

Source: first document, hypothesis H1 and Theorem 1 (theory §1.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]


class HasM(Protocol):
    """Anything with the matrix M = VBᵀ, such as an Attention."""

    @property
    def M(self) -> Array: ...


@dataclass(frozen=True)
class Eigenvalue:
    """A distinct eigenvalue of M and its multiplicity."""

    value: float
    multiplicity: int


@dataclass(frozen=True, eq=False, init=False)
class Projection:
    """Spectral data of the symmetric matrix M = VBᵀ and the projection onto E ∩ S^{d−1}.

    matrix (d, d) is the symmetric part of M; eigenvalues are the distinct ones, descending, where two eigenvalues count
    as one when they differ by at most tolerance·max|μ|; gap = μ1 − μ2 of the two largest distinct eigenvalues
    (0 when there is only one); basis (d, k) spans E, the eigenspace of μ1, with k = multiplicity.
    Raises InputError when M is not a finite square matrix or its relative asymmetry |M−Mᵀ|/|M| exceeds `symmetry`.
    """

    matrix: Array
    eigenvalues: tuple[Eigenvalue, ...]
    gap: float
    basis: Array
    asymmetry: float
    tolerance: float

    def __init__(self, source: HasM | ArrayLike, *, tolerance: float = 1e-9, symmetry: float = 1e-10) -> None:
        matrix = _square(source.M if hasattr(source, "M") else source)
        asymmetry = relative_asymmetry(matrix)
        if asymmetry > symmetry:
            raise InputError(
                f"VBᵀ has relative asymmetry {asymmetry:.2e}, but a limit is only known for a symmetric VBᵀ "
                f"(tolerance {symmetry:.0e}); choose V = M B⁻ᵀ with M symmetric."
            )
        symmetric = 0.5 * (matrix + matrix.T)
        values, vectors = np.linalg.eigh(symmetric)
        groups = distinct_eigenvalues(values[::-1], tolerance)
        k = groups[0].multiplicity
        basis = _orient(vectors[:, ::-1][:, :k])
        if k == matrix.shape[0]:
            basis = np.eye(k)
        gap = groups[0].value - groups[1].value if len(groups) > 1 else 0.0
        for array in (symmetric, basis):
            array.setflags(write=False)
        settings = {
            "matrix": symmetric,
            "eigenvalues": groups,
            "gap": gap,
            "basis": basis,
            "asymmetry": asymmetry,
            "tolerance": tolerance,
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)

    @property
    def multiplicity(self) -> int:
        """k = dim E."""
        return self.eigenvalues[0].multiplicity

    @property
    def dimension(self) -> int:
        """d, the dimension of the space the sphere lies in."""
        return int(self.matrix.shape[0])

    def coordinates(self, points: Array) -> Array:
        """Coordinates of P_E x in the basis of E: (…, d) → (…, k)."""
        return np.asarray(points @ self.basis)

    def length(self, points: Array) -> Array:
        """|P_E x|, the cosine of the angle between x and E: (…, d) → (…)."""
        return np.asarray(np.minimum(np.linalg.norm(self.coordinates(points), axis=-1), 1.0))

    def project(self, points: Array) -> Array:
        """Π(x) = P_E x / |P_E x|, (…, d) → (…, d); points of E^⊥ have no projection and become NaN."""
        coordinates = self.coordinates(np.asarray(points, dtype=float))
        length = np.linalg.norm(coordinates, axis=-1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            unit = np.where(length > 0, coordinates / length, np.nan)
        return np.asarray(unit @ self.basis.T)

    def nearest_distance(self, points: Array, metric: str = "chordal") -> Array:
        """Distance from x to E ∩ S^{d−1}, attained at Π(x): chordal √(2(1−|P_E x|)) or geodesic arccos|P_E x|."""
        points = np.asarray(points, dtype=float)
        along = self.coordinates(points)
        across = np.linalg.norm(points - along @ self.basis.T, axis=-1)
        angle = np.arctan2(across, np.linalg.norm(along, axis=-1))
        if metric == "geodesic":
            return np.asarray(angle)
        if metric == "chordal":
            return np.asarray(2.0 * np.sin(0.5 * angle))
        raise InputError(f"metric {metric!r} is unknown; use 'chordal' or 'geodesic'.")


def relative_asymmetry(matrix: Array) -> float:
    """|M − Mᵀ| / |M| in the Frobenius norm (0 for M = 0)."""
    size = float(np.linalg.norm(matrix))
    return float(np.linalg.norm(matrix - matrix.T)) / size if size > 0 else 0.0


def distinct_eigenvalues(descending: Array, tolerance: float) -> tuple[Eigenvalue, ...]:
    """Group sorted eigenvalues: a new group starts where the step down exceeds tolerance·max|μ|."""
    scale = tolerance * float(np.max(np.abs(descending), initial=0.0))
    starts = np.flatnonzero(np.diff(descending) < -scale) + 1
    groups = np.split(descending, starts)
    return tuple(Eigenvalue(float(np.mean(group)), len(group)) for group in groups)


def _square(source: ArrayLike) -> Array:
    matrix = np.array(source, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.all(np.isfinite(matrix)):
        raise InputError(
            f"VBᵀ has shape {matrix.shape} or non-finite entries; give a finite square (d, d) matrix or an Attention."
        )
    return matrix


def _orient(vectors: Array) -> Array:
    """The same columns with their entry of largest modulus positive, so that e does not depend on LAPACK's sign."""
    # Rounding first: of entries equal up to round-off, the first decides on every machine.
    leading = np.argmax(np.round(np.abs(vectors), 8), axis=0)
    signs = np.sign(vectors[leading, np.arange(vectors.shape[1])])
    return np.asarray(vectors * signs)
