"""The zonal convolution G = g * μ of discrete measures: one small object per space of functions.

Each `Expansion` turns masses at points into coefficients, and coefficients into ∇G or G at other points; the
coefficients are exact for the discrete measure, so the only error is the truncation of g (1e−14 of its largest term).
Coefficients are linear in the masses: labels are mixed by a matrix product of coefficients.
"""

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.harmonics import EPSILON, analyse, colatitude_longitude, degrees_and_orders, synthesise
from tokensphere.pde.profiles import Linear, Profile
from tokensphere.pde.threads import threads

Array = NDArray[np.float64]
Coefficients = NDArray[Any]

TOLERANCE = 1e-15


class Expansion(Protocol):
    """G(x) = Σ_j m_j g(⟨x, y_j⟩) through coefficients of the masses."""

    def analyse(self, points: Array, masses: Array) -> Coefficients:
        """Coefficients (rows, count) of masses (rows, n) at points (n, d)."""

    def turn(self, coefficients: Coefficients, matrices: Array) -> Coefficients:
        """Row by row, coefficients of the measure moved by the orthogonal matrices Q (rows, d, d)."""

    def gradients(self, coefficients: Coefficients, points: Array) -> Array:
        """Tangent gradients ∇G (rows, n, d)."""

    def values(self, coefficients: Coefficients, points: Array) -> Array:
        """G (rows, n)."""

    def pairing(self, first: Coefficients, second: Coefficients) -> Array:
        """∬g(⟨x,y⟩) dμ(x)dν(y) row by row (rows,)."""


def expansion(profile: Profile, dimension: int) -> Expansion:
    """The expansion that suits a profile: three moments for g(s) = s, Fourier modes on S¹, harmonics on S²."""
    if isinstance(profile, Linear):
        return Moments()
    return Fourier(profile) if dimension == 2 else Harmonics(profile)


class Moments:
    """g(s) = s: G(x) = ⟨x, m⟩ with the first moment m = Σ_j m_j y_j."""

    def analyse(self, points: Array, masses: Array) -> Coefficients:
        return np.asarray(masses @ points)

    def turn(self, coefficients: Coefficients, matrices: Array) -> Coefficients:
        return np.asarray(np.einsum("rij,rj->ri", matrices, coefficients))

    def gradients(self, coefficients: Coefficients, points: Array) -> Array:
        radial = coefficients @ points.T
        return np.asarray(coefficients[:, None, :] - radial[..., None] * points)

    def values(self, coefficients: Coefficients, points: Array) -> Array:
        return np.asarray(coefficients @ points.T)

    def pairing(self, first: Coefficients, second: Coefficients) -> Array:
        return np.asarray(np.einsum("rk,rk->r", first, second))


class Fourier:
    """S¹: G(θ) = Σ_l (2 − δ_l0) λ_l (a_l cos lθ + b_l sin lθ), a_l + i b_l = Σ_j m_j e^{ilθ_j}."""

    def __init__(self, profile: Profile) -> None:
        degree = profile.degree(2, TOLERANCE)
        self._orders = np.arange(degree + 1)
        self._weights = profile.eigenvalues(2, degree) * np.where(self._orders == 0, 1.0, 2.0)

    def _waves(self, points: Array) -> NDArray[np.complex128]:
        angles = np.arctan2(points[:, 1], points[:, 0])
        return np.asarray(np.exp(1j * self._orders[:, None] * angles))

    def analyse(self, points: Array, masses: Array) -> Coefficients:
        return np.asarray(masses @ self._waves(points).T)

    def turn(self, coefficients: Coefficients, matrices: Array) -> Coefficients:
        # θ ↦ α + θ, or the reflection θ ↦ α − θ.
        angles = np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0])
        reflected = np.linalg.det(matrices)[:, None] < 0
        turned = np.where(reflected, coefficients.conj(), coefficients)
        return np.asarray(turned * np.exp(1j * self._orders * angles[:, None]))

    def gradients(self, coefficients: Coefficients, points: Array) -> Array:
        slopes = ((-1j * self._orders * self._weights * coefficients) @ self._waves(points).conj()).real
        tangents = np.stack([-points[:, 1], points[:, 0]], axis=1)
        return np.asarray(slopes[..., None] * tangents)

    def values(self, coefficients: Coefficients, points: Array) -> Array:
        return np.asarray(((self._weights * coefficients) @ self._waves(points).conj()).real)

    def pairing(self, first: Coefficients, second: Coefficients) -> Array:
        return np.asarray(np.einsum("l,rl,rl->r", self._weights, first, second.conj()).real)


class Harmonics:
    """S²: G(x) = Σ_lm 4πλ_l a_lm Y_lm(x), a_lm = Σ_j m_j Y*_lm(y_j)  (Funk–Hecke)."""

    def __init__(self, profile: Profile) -> None:
        self.degree = max(2, profile.degree(3, TOLERANCE))
        l, m = degrees_and_orders(self.degree)  # noqa: E741
        self._weights = 4 * math.pi * profile.eigenvalues(3, self.degree)[l]
        self._parity = np.where(l % 2, -1.0, 1.0)
        self._pairs = np.where(m == 0, 1.0, 2.0) * self._weights

    def analyse(self, points: Array, masses: Array) -> Coefficients:
        # One thread: ducc0's adjoint transform repeats bitwise only then.
        return analyse(points, masses, self.degree)

    def turn(self, coefficients: Coefficients, matrices: Array) -> Coefficients:
        import ducc0

        result = np.empty_like(coefficients)
        for row, (alm, matrix) in enumerate(zip(coefficients, matrices, strict=True)):
            proper = matrix if np.linalg.det(matrix) > 0 else -matrix
            result[row] = ducc0.sht.rotate_alm(alm, self.degree, *euler_angles(proper))
            if proper is not matrix:
                result[row] *= self._parity
        return result

    def gradients(self, coefficients: Coefficients, points: Array) -> Array:
        import ducc0

        place = colatitude_longitude(points)
        south, east = _frame(place)
        result = np.empty((len(coefficients), *points.shape))
        for row, alm in enumerate(coefficients):
            parts = ducc0.sht.synthesis_general(
                alm=(self._weights * alm)[None],
                spin=1,
                lmax=self.degree,
                loc=place,
                epsilon=EPSILON * 10,
                nthreads=threads(),
                mode="DERIV1",
            )
            result[row] = parts[0, :, None] * south + parts[1, :, None] * east
        return result

    def values(self, coefficients: Coefficients, points: Array) -> Array:
        return synthesise(np.asarray(self._weights * coefficients, np.complex128), points, self.degree, threads())

    def pairing(self, first: Coefficients, second: Coefficients) -> Array:
        return np.asarray(np.einsum("c,rc,rc->r", self._pairs, first, second.conj()).real)


def euler_angles(rotation: Array) -> tuple[float, float, float]:
    """ψ, θ, φ with R = R_z(φ)R_y(θ)R_z(ψ), ψ + φ accurate also where θ is next to 0 or π."""
    degenerate = math.hypot(rotation[0, 2], rotation[1, 2]) < 1e-12
    phi = 0.0 if degenerate else math.atan2(rotation[1, 2], rotation[0, 2])
    c, s = math.cos(phi), math.sin(phi)
    back = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ rotation
    return math.atan2(back[1, 0], back[1, 1]), math.atan2(back[0, 2], back[2, 2]), phi


def _frame(place: Array) -> tuple[Array, Array]:
    """Unit tangents towards growing colatitude and longitude, (n, 3) each."""
    theta, phi = place.T
    east = np.stack([-np.sin(phi), np.cos(phi), np.zeros_like(phi)], axis=1)
    south = np.stack([np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), -np.sin(theta)], axis=1)
    return south, east
