"""Tests of a law against a density: Hotelling's T², energy distance, and Holm's correction for many of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]

ROUND_OFF = 1e-13
"""Variance of a moment that is round-off only, so that laws collapsed to a point have an invertible covariance."""


@dataclass(frozen=True, eq=False)
class Null:
    """What the moments of a correct particle code do: centre (count,), covariance (count, count), from `replicates`.

    `shift` (count,) is how far the density itself may be off: its square is added to the covariance.
    """

    centre: Array
    covariance: Array
    shift: Array
    replicates: int

    @property
    def total(self) -> Array:
        """Covariance with the density's own error."""
        return np.asarray(self.covariance + np.outer(self.shift, self.shift) + ROUND_OFF * np.eye(len(self.shift)))


def hotelling(deviation: Array, covariance: Array, replicates: int) -> float:
    """p-value of T² = δᵀS⁻¹δ for δ ~ N(0, Σ), S an estimate of Σ from independent replicates.

    (R−p)/(p(R−1)) T² has the law F(p, R−p).  Source: Anderson, An Introduction to Multivariate Statistical Analysis,
    3rd ed., theorem 5.2.2.
    """
    size = len(deviation)
    squared = float(deviation @ np.linalg.solve(covariance, deviation))
    return float(stats.f.sf(squared * (replicates - size) / (size * (replicates - 1)), size, replicates - size))


def power(shift: Array, covariance: Array, replicates: int, level: float) -> float:
    """Probability that `hotelling` finds a true shift at that level."""
    size = len(shift)
    # The inverse of an estimated covariance is too large by (R−1)/(R−p−2) in the mean.
    noncentrality = float(shift @ np.linalg.solve(covariance, shift)) * (replicates - size - 2) / (replicates - 1)
    critical = stats.f.isf(level, size, replicates - size)
    return float(stats.ncf.sf(critical, size, replicates - size, noncentrality)) if noncentrality > 0 else level


def quadratic(deviation: Array, weights: Array, covariance: Array, shift: Array) -> tuple[float, float]:
    """Q = Σ w δ² and its p-value, δ ~ N(0, Σ) plus an unknown part of the shift's size.

    Under the null Q is a weighted sum of χ²; a gamma law of the same mean Σ w_k Σ_kk and variance 2 tr((wΣ)²)
    stands for it (Satterthwaite 1946).  The density's own error enters by the triangle inequality for √Q.
    """
    statistic = float(weights @ deviation**2)
    own = float(weights @ shift**2)
    excess = max(np.sqrt(statistic) - np.sqrt(own), 0.0) ** 2
    scaled = np.sqrt(weights)[:, None] * covariance * np.sqrt(weights)
    mean, variance = float(np.trace(scaled)), 2.0 * float(np.sum(scaled**2))
    if mean <= 0:
        return statistic, float(excess <= ROUND_OFF)
    return statistic, float(stats.gamma.sf(excess, mean**2 / variance, scale=variance / mean))


def holm(p_values: ArrayLike) -> Array:
    """Adjusted p-values: max_{j≤k} (m−j+1) p_(j).  Source: Holm, Scand. J. Statist. 6 (1979) 65–70."""
    values = np.asarray(p_values, dtype=np.float64)
    flat = values.ravel()
    order = np.argsort(flat)
    adjusted = np.empty_like(flat)
    adjusted[order] = np.minimum(np.maximum.accumulate(flat[order] * (len(flat) - np.arange(len(flat)))), 1.0)
    return adjusted.reshape(values.shape)
