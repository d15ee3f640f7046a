"""What a distance between two laws is reported with, and the two metrics of the sphere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]

METRICS = ("chordal", "geodesic")


@dataclass(frozen=True)
class Distance:
    """W_p with its error bar: lower ≤ W_p ≤ upper, error = max(upper − value, value − lower).

    The bracket holds for every law with the same cell masses, so it contains the mesh's own floor.
    """

    value: float
    error: float
    lower: float
    upper: float
    metric: str = "chordal"
    p: float = 2.0

    def __float__(self) -> float:
        return self.value


def distance_of(value: float, lower: float, upper: float, metric: str, p: float) -> Distance:
    """A Distance from p-th powers of its value and bracket, which are ordered and made non-negative."""
    roots = [max(float(power), 0.0) ** (1.0 / p) for power in (value, lower, upper)]
    low, high = min(roots[1], roots[0]), max(roots[2], roots[0])
    return Distance(roots[0], max(high - roots[0], roots[0] - low), low, high, metric, p)


def check_metric(metric: str, p: float) -> None:
    """Raise InputError unless metric is chordal or geodesic and 1 ≤ p < inf."""
    if metric not in METRICS:
        raise InputError(f"metric {metric!r} is unknown; use 'chordal' or 'geodesic'.")
    if not 1.0 <= p < np.inf:
        raise InputError(f"p = {p} does not give a Wasserstein distance; use 1 ≤ p < inf.")


def cost_of_cosine(cosine: Array, metric: str, p: float) -> Array:
    """d(x, y)^p from s = ⟨x, y⟩: chordal (2−2s)^{p/2}, geodesic (arccos s)^p."""
    s = np.clip(cosine, -1.0, 1.0)
    if metric == "geodesic":
        return np.asarray(np.arccos(s) ** p)
    squared = 2.0 - 2.0 * s
    return squared if p == 2.0 else np.asarray(squared ** (0.5 * p))


def cost_of_points(x: Array, y: Array, metric: str, p: float) -> Array:
    """d(x, y)^p without the cancellation of 1 − ⟨x, y⟩ at small distances; x and y broadcast over (…, d)."""
    chord = np.linalg.norm(x - y, axis=-1)
    distance = 2.0 * np.arcsin(np.minimum(0.5 * chord, 1.0)) if metric == "geodesic" else chord
    return np.asarray(distance**p)
