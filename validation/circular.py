"""Exact transport on the circle: W_p of piecewise constant densities for the arc-length metric.

W_p^p = min_α ∫_0^1 |F⁻¹(u) − G⁻¹(u + α)|^p du, convex in α, with quantile functions continued by
G⁻¹(u + 1) = G⁻¹(u) + 2π.
Source: Delon, Salomon, Sobolevski, "Fast transport optimization for Monge costs on the circle", SIAM J. Appl. Math. 70
(2010), §3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]


def distribution(masses: Array) -> Array:
    """Cumulative shares (bins+1,) from 0 to 1 of masses on equal bins of [0, 2π]."""
    if not np.all(np.isfinite(masses)) or np.any(masses < 0) or not np.sum(masses) > 0:
        raise InputError("masses on the circle must be finite, non-negative and not all zero.")
    total = np.concatenate([[0.0], np.cumsum(masses)])
    shares = total / total[-1]
    return np.asarray(shares)


def cumulative(shares: Array, angles: Array) -> Array:
    """F(θ), linear within bins, continued by F(θ + 2π) = F(θ) + 1."""
    turns = np.floor(angles / (2 * np.pi))
    grid = np.linspace(0.0, 2 * np.pi, len(shares))
    return np.asarray(np.interp(angles - 2 * np.pi * turns, grid, shares) + turns)


def quantile(shares: Array, u: Array) -> Array:
    """F⁻¹(u), continued by F⁻¹(u + 1) = F⁻¹(u) + 2π."""
    turns = np.floor(u)
    grid = np.linspace(0.0, 2 * np.pi, len(shares))
    return np.asarray(np.interp(u - turns, shares, grid) + 2 * np.pi * turns)


def shifted_cost(F: Array, G: Array, alpha: float, p: float) -> float:
    """∫_0^1 |F⁻¹(u) − G⁻¹(u + α)|^p du, exactly: the difference is linear between the merged breakpoints."""
    inner = np.concatenate([F, np.mod(G - alpha, 1.0)])
    nodes = np.concatenate([[0.0], np.sort(inner), [1.0]])
    width = np.diff(nodes)
    used = width > 1e-16
    start, width = nodes[:-1][used], width[used]
    # Two inner points give the line on each piece without touching its jumps at the ends.
    first, second = (start + share * width for share in (0.25, 0.75))
    left, right = (quantile(F, u) - quantile(G, u + alpha) for u in (first, second))
    low, high = 1.5 * left - 0.5 * right, 1.5 * right - 0.5 * left
    return float(np.sum(width * _mean_power(low, high, p)))


def optimal_shift(F: Array, G: Array, p: float = 2.0, iterations: int = 75) -> float:
    """The α that minimises shifted_cost, to 2·.618^iterations.

    Golden section, because the minimum may be a kink, where parabolas stall.
    """
    ratio = 0.5 * (np.sqrt(5.0) - 1.0)
    low, high = -1.0, 1.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = shifted_cost(F, G, left, p), shifted_cost(F, G, right, p)
    for _ in range(iterations):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = shifted_cost(F, G, left, p)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = shifted_cost(F, G, right, p)
    best = left if at_left <= at_right else right
    # Equal laws: the minimum is known and should not carry the round-off of the search.
    return 0.0 if shifted_cost(F, G, 0.0, p) <= min(at_left, at_right) else float(best)


def circular_wasserstein(masses: Array, other: Array, p: float = 2.0) -> float:
    """Arc-length W_p between two laws of constant density on equal bins of the circle (bin counts may differ).

    Raises InputError for masses that are negative, not finite or all zero, and for p < 1.
    """
    if not 1.0 <= p < np.inf:
        raise InputError(f"p = {p} does not give a Wasserstein distance; use 1 ≤ p < inf.")
    F, G = distribution(masses), distribution(other)
    return float(max(shifted_cost(F, G, optimal_shift(F, G, p), p), 0.0) ** (1.0 / p))


def _mean_power(low: Array, high: Array, p: float) -> Array:
    """∫_0^1 |low + s(high − low)|^p ds."""
    if p == 2.0:
        return (low * low + low * high + high * high) / 3.0
    size = np.abs(high - low)
    flat = size <= 1e-9 * (np.abs(low) + np.abs(high))
    safe = np.where(flat, 1.0, high - low)
    antiderivative = (np.sign(high) * np.abs(high) ** (p + 1) - np.sign(low) * np.abs(low) ** (p + 1)) / (p + 1)
    return np.where(flat, np.abs(0.5 * (low + high)) ** p, antiderivative / safe)
