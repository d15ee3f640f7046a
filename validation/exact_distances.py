"""Distances W_p(ρ_t, Π♯ρ0) at zero temperature from uniform data, B orthogonal, all other eigenvalues equal.

The angle θ between x and E has density ∝ cos^{k−1}θ sin^{d−k−1}θ on [0, π/2] and moves to θ_t with tan θ_t = a tan θ,
a = e^{−γt}; the distance to Π(x) is 2 sin(θ_t/2) (chordal) or θ_t (geodesic).  Source: theory §1.3(e), (g).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.special import beta as beta_function
from scipy.special import ellipe, ellipkm1

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]


def chordal_squared(a: ArrayLike, d: int, k: int) -> Array:
    """Chordal W2² as a function of a = e^{−γt} in closed form (theory §1.3(g)).

    S¹ k=1: 2 − (4/π) arccos(a)/√(1−a²);  S² k=1: 2a/(1+a);  S² k=2: 2 − 2[E(m) − a²K(m)]/m, m = 1−a² (parameter m).
    """
    a = np.asarray(a, dtype=float)
    if (d, k) == (2, 1):
        return np.asarray(2.0 - 4.0 / np.pi * _arc_ratio(a))
    if (d, k) == (3, 1):
        return np.asarray(2.0 * a / (1.0 + a))
    if (d, k) == (3, 2):
        return _elliptic(a)
    raise InputError(f"no closed form for d={d}, k={k}; use uniform_distance, which integrates.")


def geodesic_w1(a: ArrayLike) -> Array:
    """Geodesic W1 on S², k=1: a·arccosh(1/a)/√(1−a²)."""
    a = np.asarray(a, dtype=float)
    near = 1.0 - a < 1e-6
    safe = np.where(near, 0.5, a)
    # arccosh(1/a)/√(1−a²) → 1 + (1−a)·2/3 at a = 1
    return np.asarray(a * np.where(near, 1.0 + 2.0 / 3.0 * (1.0 - a), np.arccosh(1.0 / safe) / np.sqrt(1.0 - safe**2)))


def uniform_distance(a: float, d: int, k: int, p: float = 2.0, metric: str = "chordal") -> float:
    """W_p for any d and k < d by adaptive quadrature over the angle to E."""
    if not 1 <= k < d:
        raise InputError(f"k = {k} must lie between 1 and d − 1 = {d - 1}.")
    norm = 0.5 * float(beta_function(0.5 * k, 0.5 * (d - k)))

    def integrand(theta: float) -> float:
        moved = np.arctan2(a * np.sin(theta), np.cos(theta))
        distance = moved if metric == "geodesic" else 2.0 * np.sin(0.5 * moved)
        return float(distance**p * np.cos(theta) ** (k - 1) * np.sin(theta) ** (d - k - 1))

    # The integrand turns over where tan θ = 1/a, within a of π/2.
    turn = np.arctan2(1.0, a)
    total = sum(quad(integrand, lo, hi, epsabs=1e-13, epsrel=1e-12)[0] for lo, hi in ((0, turn), (turn, 0.5 * np.pi)))
    return float((total / norm) ** (1.0 / p))


def _arc_ratio(a: Array) -> Array:
    """arccos(a)/√(1−a²), continued by its series 1 + (1−a)/3 at a = 1."""
    near = 1.0 - a < 1e-8
    safe = np.where(near, 0.5, a)
    return np.asarray(np.where(near, 1.0 + (1.0 - a) / 3.0, np.arccos(safe) / np.sqrt(1.0 - safe**2)))


def _elliptic(a: Array) -> Array:
    m = 1.0 - a**2
    near = m < 1e-5
    safe = np.where(near, 0.5, m)
    # [E(m) − (1−m)K(m)]/m = (π/4)(1 + m/8 + …) at m = 0; K from 1−m = a² keeps its digits as a → 0.
    ratio = (ellipe(safe) - (1.0 - safe) * ellipkm1(np.where(near, 0.5, a**2))) / safe
    return np.asarray(2.0 - 2.0 * np.where(near, 0.25 * np.pi * (1.0 + m / 8.0 + 3.0 * m**2 / 64.0), ratio))
