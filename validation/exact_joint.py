"""Closed forms and ordinary differential equations for the joint law (theory §2.3; second document).

Laws are per unit area, as everywhere in the code: the uniform law on S² is 1/4π.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import ive

from tokensphere.meshes.labels import Labels
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.profiles import Exponential, Profile

Array = NDArray[np.float64]

TIGHT = {"rtol": 1e-11, "atol": 1e-13}


def poisson_mean(r: Array | float) -> Array:
    """M(r) = (1+r²)/(2r) − ((1−r²)²/4r²) ln((1+r)/(1−r)): |∫x dμ| of the S² law ((1−r²)/|x−re|²)²σ.

    Below r = 1e−2 its series is used, because the closed form cancels.
    """
    r = np.asarray(r, dtype=np.float64)
    safe = np.where(r < 1e-2, 0.5, r)
    closed = (1 + safe**2) / (2 * safe) - ((1 - safe**2) ** 2 / (4 * safe**2)) * np.log((1 + safe) / (1 - safe))
    series = r * (4 / 3 + r**2 * (-4 / 15 + r**2 * (-4 / 105 - r**2 * 4 / 315)))
    return np.where(r < 1e-2, series, closed)


def poisson_radius(r0: float, times: Array) -> Array:
    """r(t) of the exact solution with linear g:  r' = (1−r²)M(r)/2, r(0) = r0 (theory §2.3, fact 6)."""
    times = np.asarray(times, dtype=np.float64)
    span = (0.0, max(float(times.max()), 1e-12))
    run = solve_ivp(lambda _, r: (1 - r * r) * poisson_mean(r) / 2, span, [r0], t_eval=times, **TIGHT)
    return np.asarray(run.y[0])


def poisson_radius_of_mean(mean: float) -> float:
    """The r with M(r) = mean, 0 ≤ mean < 1."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float(poisson_mean(middle)) < mean else (low, middle)
    return (low + high) / 2


def poisson_density(vectors: Array, points: Array) -> Array:
    """((1−|w|²)/|x−w|²)²/4π at points (n, 3) for vectors w (…, 3): (…, n)."""
    square = np.sum(vectors**2, axis=-1)[..., None]
    return np.asarray(((1 - square) / (1 - 2 * vectors @ points.T + square)) ** 2 / (4 * math.pi))


def poisson_content(r: float, colatitude: float, points: Array) -> Array:
    """Content marginal of RoPE slices over a full turn, pole e at ``colatitude``: a latitude-symmetric law (n,).

    (1/4π)(1−r²)²a/(a²−b²)^{3/2}, a = 1+r²−2r cosθ cos a0, b = 2r sinθ sin a0.
    """
    cos = points[:, 2]
    a = 1 + r * r - 2 * r * cos * math.cos(colatitude)
    b = 2 * r * np.sqrt(np.maximum(1 - cos**2, 0)) * math.sin(colatitude)
    return np.asarray((1 - r * r) ** 2 * a / (a * a - b * b) ** 1.5 / (4 * math.pi))


def poisson_slices(labels: Labels, kernel: Kernel, vectors: Array, times: Array) -> Array:
    """w(ξ,t) (times, labels, 3) of Poisson slices under linear g and mixing b, Q ≡ I.

    w' = (1+|w|²)m/2 − ⟨m,w⟩w,  m(ξ) = Σ_ζ weights_ζ b(ξ,ζ) M(|w_ζ|) w_ζ/|w_ζ|.
    """
    mixing = kernel.mixing(labels) * labels.weights

    def rate(_: float, flat: Array) -> Array:
        w = flat.reshape(-1, 3)
        size = np.linalg.norm(w, axis=1, keepdims=True)
        means = np.where(size > 0, poisson_mean(size) / np.maximum(size, 1e-300), 4 / 3) * w
        m = mixing @ means
        inner = np.einsum("lk,lk->l", m, w)[:, None]
        return np.asarray(((1 + size**2) / 2 * m - inner * w).ravel())

    times = np.asarray(times, dtype=np.float64)
    run = solve_ivp(rate, (0.0, float(times.max())), np.asarray(vectors).ravel(), t_eval=times, **TIGHT)
    return np.asarray(run.y.T.reshape(len(times), -1, 3))


def ring_colatitude(profile: Exponential, colatitude: float, times: Array) -> Array:
    """α(t) of a thin ring about e3 in u (fact 5): α' = −g'(1)e^{−β}sinα cosα e^{βcos²α}[I0(βsin²α) − I1(βsin²α)]."""
    speed, beta = math.exp(profile.log_speed), profile.beta

    def rate(_: float, a: Array) -> Array:
        s = beta * np.sin(a) ** 2
        # e^{βcos²α} I(βsin²α) e^{−β} = ive(βsin²α)
        return np.asarray(-speed * np.sin(a) * np.cos(a) * (ive(0, s) - ive(1, s)))

    times = np.asarray(times, dtype=np.float64)
    return np.asarray(solve_ivp(rate, (0.0, float(times.max())), [colatitude], t_eval=times, **TIGHT).y[0])


def gaussian_ring(colatitude: float, width: float) -> Callable[[Array], Array]:
    """x ↦ e^{−(α−colatitude)²/2width²}, α the colatitude of x (…, 3): product data of fact 5, not normalised."""

    def density(x: Array) -> Array:
        alpha = np.arctan2(np.hypot(x[..., 0], x[..., 1]), x[..., 2])
        return np.asarray(np.exp(-((alpha - colatitude) ** 2) / (2 * width**2)))

    return density


def axisymmetric_colatitudes(
    profile: Exponential, colatitude: float, width: float, times: Array, rings: int = 300
) -> tuple[Array, Array]:
    """Many thin rings that follow each other: the exact law of an axisymmetric ring of Gaussian width, no mesh.

    Returns:
        weights (rings,) and colatitudes (times, rings); the mean colatitude is colatitudes @ weights.
    """
    nodes, weights = np.polynomial.legendre.leggauss(rings)
    low, high = max(0.0, colatitude - 7 * width), min(math.pi, colatitude + 7 * width)
    start = low + (high - low) * (nodes + 1) / 2
    weights = weights * np.exp(-((start - colatitude) ** 2) / (2 * width**2)) * np.sin(start)
    weights /= weights.sum()
    speed, beta = math.exp(profile.log_speed), profile.beta

    def rate(_: float, a: Array) -> Array:
        c, s = np.cos(a), np.sin(a)
        z = beta * np.outer(s, s)
        size = np.exp(beta * np.outer(c, c) + z - beta)
        pull = size * (c[:, None] * s * ive(1, z) - s[:, None] * c * ive(0, z))
        return np.asarray(speed * (pull @ weights))

    times = np.asarray(times, dtype=np.float64)
    run = solve_ivp(rate, (0.0, float(times.max())), start, t_eval=times, rtol=1e-8, atol=1e-10)
    return weights, np.asarray(run.y.T)


def growth_rate(profile: Profile, degree: int, dimension: int = 3) -> float:
    """γ_l = l(l+d−2)λ_l(g): growth of a perturbation of degree l about the uniform law, b ≡ 1 (fact 7)."""
    return float(degree * (degree + dimension - 2) * profile.eigenvalues(dimension, degree)[degree])


def two_clusters(profile: Profile, angle: float, times: Array) -> Array:
    """Angle φ(t) between two u-clusters, whatever their masses: φ' = −g'(cosφ) sinφ (fact 11)."""
    times = np.asarray(times, dtype=np.float64)

    def rate(_: float, phi: Array) -> Array:
        return np.asarray(-profile.derivative(np.cos(phi)) * np.sin(phi))

    run = solve_ivp(rate, (0.0, float(times.max())), [angle], t_eval=times, method="LSODA", rtol=1e-10, atol=1e-12)
    return np.asarray(run.y[0])


def merging_time(profile: Profile, angle: float, final: float) -> float:
    """∫_{final}^{angle} dφ/(g'(cosφ) sinφ): how long two clusters take from one angle to the other (fact 13).

    For g = c e^{βs} it grows like e^{(1−cos angle)β}/g'(1): separated clusters are metastable.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    phi = final + (angle - final) * (nodes + 1) / 2
    return float((angle - final) / 2 * weights @ (1 / (profile.derivative(np.cos(phi)) * np.sin(phi))))


def partial_period_mean(colatitude: float, period: float) -> float:
    """|mean x|² = cos²a + sin²a sinc²(Φ/2) of the RoPE maximiser over the angles [0, Φ], uniform ρ (fact 12)."""
    return math.cos(colatitude) ** 2 + math.sin(colatitude) ** 2 * float(np.sinc(period / 2 / math.pi)) ** 2


def distance_bias_energy(profile: Profile, length: float) -> float:
    """½g(1)(2ℓ − 2ℓ²(1 − e^{−1/ℓ})): a Dirac under b = e^{−|ξ−ζ|/ℓ} on [0, 1] (fact 10)."""
    return 0.5 * float(profile.value(np.asarray(1.0))) * (2 * length - 2 * length**2 * (1 - math.exp(-1 / length)))
