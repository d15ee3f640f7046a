"""Closed forms at zero temperature (β = ∞, full support): x' = P_x V Bᵀx / |Bᵀx|.

With M = VBᵀ symmetric, g(x) = |Bᵀx| and Φ_s(x) = e^{sM}x / |e^{sM}x| the flow is x(t) = Φ_s(x0) where
t = ∫_0^s g(Φ_r x0) dr.
Points are rows of unit vectors, (n, d). Source: first document, equation (3); theory §1.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.validation.projection import relative_asymmetry

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def projective_flow(matrix: Array, s: Array | float, points: Array) -> Array:
    """Φ_s(x) = e^{sM}x / |e^{sM}x| for symmetric M; s is a number or one value per point."""
    values, vectors = np.linalg.eigh(_symmetric(matrix))
    coordinates = _scaled_coordinates(values, points @ vectors, s)
    return np.asarray(coordinates / np.linalg.norm(coordinates, axis=-1, keepdims=True) @ vectors.T)


def velocity(matrix: Array, B: Array, points: Array) -> Array:
    """v(x) = P_x M x / |Bᵀx|, theory (3)."""
    image = points @ matrix.T
    tangent = image - np.sum(image * points, axis=-1, keepdims=True) * points
    return np.asarray(tangent / np.linalg.norm(points @ B, axis=-1, keepdims=True))


def divergence(matrix: Array, B: Array, points: Array) -> Array:
    """div v = (tr M − d xᵀMx)/g − ⟨P_x M x, B Bᵀx⟩/g³, theory §1.3(c)."""
    image = points @ matrix.T
    along = np.sum(image * points, axis=-1)
    tangent = image - along[..., None] * points
    tilt = points @ B
    g = np.linalg.norm(tilt, axis=-1)
    d = matrix.shape[0]
    return np.asarray((np.trace(matrix) - d * along) / g - np.sum(tangent * (tilt @ B.T), axis=-1) / g**3)


def projective_time(matrix: Array, B: Array, points: Array, t: float) -> Array:
    """s with t = ∫_0^s |BᵀΦ_r(x)| dr for each point; (n, d) → (n,); negative t runs the flow backwards.

    Newton's method; each step adds only the integral over the increment, by 12-point Gauss rules on short panels.
    """
    values, vectors = np.linalg.eigh(_symmetric(matrix))
    singular = np.linalg.svd(B, compute_uv=False)
    if singular[-1] <= 0:
        raise InputError("B is singular, so |Bᵀx| vanishes somewhere; the zero-temperature flow needs an invertible B.")
    if singular[0] - singular[-1] <= 1e-13 * singular[0]:
        return np.full(points.shape[0], t / singular[0])
    coordinates = points @ vectors
    reduced = vectors.T @ B

    def speed(s: Array) -> Array:
        moved = _scaled_coordinates(values, coordinates, s)
        return np.asarray(np.linalg.norm(moved @ reduced, axis=-1) / np.linalg.norm(moved, axis=-1))

    # Panels of length ≤ 1/(spread of eigenvalues): there g is analytic far beyond the panel.
    spread = max(float(values[-1] - values[0]), 1e-12)
    s = np.zeros(points.shape[0])
    elapsed = np.zeros_like(s)
    for _ in range(60):
        target = s + (t - elapsed) / speed(s)
        # A Newton step from far away may leave the bracket [t/σmax, t/σmin].
        low, high = sorted((t / singular[0], t / singular[-1]))
        target = np.clip(target, low, high)
        step = target - s
        panels = max(1, int(np.ceil(float(np.max(np.abs(step), initial=0.0)) * spread)))
        elapsed = elapsed + _increment(speed, s, step, panels)
        s = target
        if np.all(np.abs(step) <= 4e-15 * max(1.0, abs(t) / float(singular[-1]))):
            break
    return s


def flow(matrix: Array, B: Array, points: Array, t: float) -> Array:
    """x(t) of the zero-temperature flow from x(0) = points; t < 0 gives the inverse map."""
    return projective_flow(matrix, projective_time(matrix, B, points, t), points)


def density(matrix: Array, B: Array, start: Callable[[Array], Array], points: Array, t: float) -> Array:
    """ρ_t(x) = ρ0(x0) [g(x)/g(x0)] det(e^{−sM}) |e^{−sM}x|^{−d}, x0 = Φ_{−s}(x), theory §1.3(b).

    `start` maps (n, d) unit vectors to the values of ρ0 per unit area; the result is (n,) in the same unit.
    """
    d = matrix.shape[0]
    s = -projective_time(matrix, B, points, -t)
    values, vectors = np.linalg.eigh(_symmetric(matrix))
    exponents = -s[:, None] * values
    shift = np.max(exponents, axis=-1)
    coordinates = np.exp(exponents - shift[:, None]) * (points @ vectors)
    length = np.linalg.norm(coordinates, axis=-1)
    origin = coordinates / length[:, None] @ vectors.T
    log_jacobian = -s * np.sum(values) - d * (np.log(length) + shift)
    ratio = np.linalg.norm(points @ B, axis=-1) / np.linalg.norm(origin @ B, axis=-1)
    return np.asarray(start(origin) * ratio * np.exp(log_jacobian))


def angle_bound(gap: float, sigma_max: float, t: float, tangent: Array) -> Array:
    """Upper bound e^{−γt/σmax(B)} tan∠(x0, E) of tan∠(x_t, E), theory §1.3(d)."""
    return np.asarray(np.exp(-gap * t / sigma_max) * tangent)


def moment_bound(gap: float, sigma_max: float, t: float, p: float, moment: float, metric: str = "chordal") -> float:
    """Upper bound of W2(ρ_t, Π♯ρ0): W2² ≤ C e^{−pγt/σmax} ∫tan^p∠(x,E)dρ0, 0 < p ≤ 2, theory §1.3(f).

    C = 2^{1−p/2} for the chordal metric, (π/2)^{2−p} for the geodesic one; `moment` is ∫tan^p dρ0.
    """
    if not 0 < p <= 2:
        raise InputError(f"p = {p} is outside the range of the moment bound; use 0 < p ≤ 2.")
    constant = 2.0 ** (1.0 - 0.5 * p) if metric == "chordal" else (0.5 * np.pi) ** (2.0 - p)
    return float(np.sqrt(constant * np.exp(-p * gap * t / sigma_max) * moment))


def _scaled_coordinates(values: Array, coordinates: Array, s: Array | float) -> Array:
    exponents = np.asarray(s)[..., None] * values
    return np.asarray(np.exp(exponents - np.max(exponents, axis=-1, keepdims=True)) * coordinates)


def _increment(speed: Callable[[Array], Array], start: Array, step: Array, panels: int) -> Array:
    total = np.zeros_like(start)
    for panel in range(panels):
        middle = start + step * (panel + 0.5) / panels
        half = 0.5 * step / panels
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            total += weight * half * speed(middle + node * half)
    return total


def _symmetric(matrix: Array) -> Array:
    if relative_asymmetry(matrix) > 1e-10:
        raise InputError("M = VBᵀ is not symmetric; the zero-temperature closed forms need a symmetric M.")
    return np.asarray(0.5 * (matrix + matrix.T))
