"""Closed forms at finite β: A_d, fields at uniform and von Mises–Fisher densities, and reduced dynamics.

Source: theory §1.4.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import ive, logsumexp

from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention

Array = NDArray[np.float64]


def bessel_ratio(d: int, kappa: ArrayLike) -> Array:
    """A_d(κ) = I_{d/2}(κ)/I_{d/2−1}(κ), the mean length of a von Mises–Fisher law; κ ≥ 0, also 0 and inf.

    S²: coth κ − 1/κ, by its series κ/3 − κ³/45 + 2κ⁵/945 − κ⁷/4725 for κ < .1; S¹: I1/I0; other d: scaled Bessel
    functions, and beyond κ = 1e6 the expansion 1 − (d−1)/2κ + (d−1)(d−3)/8κ².
    """
    kappa = np.asarray(kappa, dtype=float)
    if d == 3:
        small = np.minimum(kappa, 0.1)
        series = small / 3 - small**3 / 45 + 2 * small**5 / 945 - small**7 / 4725
        large = np.maximum(kappa, 0.1)
        return np.asarray(np.where(kappa < 0.1, series, 1 / np.tanh(large) - 1 / large))
    large = np.maximum(kappa, 1e6)
    expansion = 1 - (d - 1) / (2 * large) + (d - 1) * (d - 3) / (8 * large**2)
    middle = np.minimum(np.maximum(kappa, 1e-8), 1e6)
    ratio = np.where(kappa < 1e-8, kappa / d, ive(d / 2, middle) / ive(d / 2 - 1, middle))
    return np.where(kappa > 1e6, expansion, ratio)


def log_partition(d: int, kappa: ArrayLike) -> Array:
    """log ∫e^{κ⟨u,y⟩}dσ(y) = log[Γ(d/2)(2/κ)^{d/2−1} I_{d/2−1}(κ)] for d = 2, 3 and uniform probability σ."""
    kappa = np.asarray(kappa, dtype=float)
    if d == 2:
        return np.asarray(kappa + np.log(ive(0, kappa)))
    if d == 3:
        small = kappa < 1e-4
        safe = np.where(small, 1.0, kappa)
        return np.where(small, kappa**2 / 6, safe + np.log(-np.expm1(-2 * safe)) - np.log(2 * safe))
    raise InputError(f"d = {d} has no density here; use d = 2 or 3.")


def von_mises_fisher_mean(
    attention: Attention, points: Array, concentration: float = 0.0, mean: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Attention mean E[y] = A_d(|w|)w/|w|, w = βBᵀx + κ0 m, and log F, at the density ∝ e^{κ0⟨m,y⟩}.

    points (n, d) → mean (n, d), log F(βBᵀx) (n,); κ0 = 0 is the uniform density. For β = inf the mean is Bᵀx/|Bᵀx|.
    """
    d = attention.dimension
    if attention.zero_temperature:
        return attention.directions(points), np.full(len(points), np.inf)
    shift = np.zeros(d) if mean is None else concentration * np.asarray(mean, dtype=float)
    tilted = attention.tilts(points) + shift
    length = np.linalg.norm(tilted, axis=-1)
    direction = np.divide(tilted, length[:, None], out=np.zeros_like(tilted), where=length[:, None] > 0)
    field = bessel_ratio(d, length)[:, None] * direction
    return field, log_partition(d, length) - log_partition(d, np.linalg.norm(shift))


def mixture_mean(
    attention: Attention, points: Array, components: Sequence[tuple[float, float, ArrayLike | None]]
) -> tuple[Array, Array]:
    """The same for Σ w_c vMF(κ_c, m_c); components are (weight, concentration, mean), weights need not sum to 1."""
    parts = [von_mises_fisher_mean(attention, points, kappa, mean) for _, kappa, mean in components]
    total = sum(weight for weight, _, _ in components)
    logs = np.stack([np.log(c[0] / total) + part[1] for c, part in zip(components, parts, strict=True)])
    log_normaliser = logsumexp(logs, axis=0)
    shares = np.exp(logs - log_normaliser)
    return np.einsum("cn,cnd->nd", shares, np.stack([part[0] for part in parts])), np.asarray(log_normaliser)


def velocity(attention: Attention, points: Array, mean: Array, log_normaliser: Array) -> Array:
    """P_x V E[y], times F for unnormalised attention: the field that goes with a mean and a log F."""
    image = mean @ attention.value.T
    tangent = image - np.sum(image * points, axis=-1, keepdims=True) * points
    return tangent if attention.normalised else np.asarray(tangent * np.exp(log_normaliser)[:, None])


def one_token(value: Array, start: Array, t: float) -> Array:
    """x(t) = e^{tV}x0/|e^{tV}x0|: a single Dirac, any Q, K, β."""
    moved = expm(t * np.asarray(value)) @ start
    return np.asarray(moved / np.linalg.norm(moved))


def antipodal_pair(attention: Attention, start: Array, times: Array) -> Array:
    """x(t) of ½(δ_x + δ_{−x}): x' = tanh(β xᵀBx) P_x V x; (times, d)."""
    B, V, beta = attention.B, attention.value, attention.beta

    def rate(_: float, x: Array) -> Array:
        image = V @ x
        return np.asarray(np.tanh(beta * (x @ B @ x)) * (image - (x @ image) * x / (x @ x)))

    return _integrate(rate, np.asarray(start, dtype=float), times)


def simplex_cosine(n: int, beta: float, start: float, times: Array) -> Array:
    """⟨xi, xj⟩ = c(t) of n equiangular tokens, Q = K = V = I: c' = 2e^{βc}(1−c)((n−1)c+1)/(e^β+(n−1)e^{βc})."""

    def rate(_: float, c: Array) -> Array:
        weight = np.exp(beta * (c - 1))
        return np.asarray(2 * weight * (1 - c) * ((n - 1) * c + 1) / (1 + (n - 1) * weight))

    return _integrate(rate, np.array([start]), times)[:, 0]


def poisson_mean(d: int, r: ArrayLike) -> Array:
    """|E y| of the Poisson-type law of radius r: S¹ r; S² m(r) = (1+r²)/2r − ((1−r²)²/4r²) ln((1+r)/(1−r))."""
    r = np.asarray(r, dtype=float)
    if d == 2:
        return r
    small = r < 1e-2
    safe = np.where(small, 0.5, np.minimum(r, 1.0))
    # (1−r²)² ln((1+r)/(1−r)) → 0 at r = 1
    logarithm = np.where(safe < 1, 2 * np.arctanh(np.where(safe < 1, safe, 0.5)), 0.0)
    exact = (1 + safe**2) / (2 * safe) - (1 - safe**2) ** 2 / (4 * safe**2) * logarithm
    return np.where(small, 4 * r / 3 - 4 * r**3 / 15, exact)


def poisson_radius(d: int, start: float, times: Array) -> Array:
    """r(t) of the invariant family at β = 0, V = I: r' = (1−r²)|E y|/2."""
    return _integrate(lambda _, r: np.asarray((1 - r**2) * poisson_mean(d, r) / 2), np.array([start]), times)[:, 0]


def poisson_density(d: int, r: float, direction: Array, points: Array) -> Array:
    """((1−r²)/|x−re|²)^{d−1} per unit area, divided by the total area; total mass 1."""
    area = 2 * np.pi if d == 2 else 4 * np.pi
    return np.asarray(((1 - r**2) / (1 - 2 * r * (points @ direction) + r**2)) ** (d - 1) / area)


def _integrate(rate: object, start: Array, times: Array) -> Array:
    times = np.asarray(times, dtype=float)
    span = (0.0, max(float(times[-1]), 1e-300))
    solution = solve_ivp(rate, span, start, t_eval=times, method="DOP853", rtol=1e-12, atol=1e-14)
    return np.asarray(solution.y.T)
