"""Entropic transport for meshes too large for a cost matrix: a debiased value inside a rigorous bracket.

Sinkhorn's iteration in the logarithmic domain, streamed: no n×m array is stored, no exponent overflows at small ε.
The bracket holds for the unregularised W_p^p of the two discrete laws: from below a feasible dual pair (by a
c-transform), from above the entropic plan rounded to a feasible one.
Sources: Feydy et al., AISTATS 2019 (debiasing); Altschuler, Weed, Rigollet, NeurIPS 2017, Algorithm 2 (rounding).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.pde.direct import log_sum_exp
from tokensphere.validation.distance import cost_of_cosine
from tokensphere.validation.transport import TransportError, check_masses, match_totals

Array = NDArray[np.float64]


BLOCK = 2_000_000
"""Pairs held at a time."""


@dataclass(frozen=True)
class Cost:
    """c(x, y) = d(x, y)^p for all pairs of rows."""

    metric: str
    p: float

    @property
    def chordal_squared(self) -> bool:
        """Whether c = 2 − 2⟨x, y⟩."""
        return self.metric == "chordal" and self.p == 2.0

    @property
    def largest(self) -> float:
        """The cost between antipodes."""
        return float((np.pi if self.metric == "geodesic" else 2.0) ** self.p)

    def __call__(self, x: Array, y: Array) -> Array:
        """(n, d), (m, d) → (n, m)."""
        return cost_of_cosine(x @ y.T, self.metric, self.p)


@dataclass(frozen=True)
class Bracket:
    """p-th power of a distance: lower ≤ W_p^p ≤ upper; value is the debiased entropic one, moved into the bracket."""

    value: float
    lower: float
    upper: float
    debiased: float
    iterations: int


def entropic_bracket(
    x: Array,
    masses: Array,
    y: Array,
    other: Array,
    *,
    p: float = 2.0,
    metric: str = "chordal",
    epsilon: float = 0.01,
    tolerance: float = 1e-3,
    iterations: int = 2000,
) -> Bracket:
    """Debiased entropic W_p^p between Σ a_i δ(x_i) and Σ b_j δ(y_j) on the sphere, with its bracket.

    x (n, d), y (m, d) unit vectors; epsilon in units of cost; the iteration ends when the plan's marginals are within
    `tolerance` (total variation) of the laws. Laws are normalised to mass 1.
    Raises InputError for bad masses or ε ≤ 0, TransportError ("not converged") when `iterations` do not suffice.
    """
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon = {epsilon} is not a positive number; use for example 0.01.")
    masses, other = check_masses(masses, "the first law"), check_masses(other, "the second law")
    other = match_totals(masses, other)
    # Points without mass take no part: their potentials would be arbitrary.
    x, a = _occupied(x, masses)
    y, b = _occupied(y, other)
    cost = Cost(metric, p)
    f, g, count = _sinkhorn(x, a, y, b, cost, epsilon, tolerance, iterations)
    upper = _rounded_cost(x, a, y, b, f, g, cost, epsilon)
    first = _hard_minimum(x, y, g, cost)
    second = _hard_minimum(y, x, first, cost)
    lower = float(a @ first + b @ second)
    self_a, self_b = (_self_term(z, w, cost, epsilon, tolerance, iterations) for z, w in ((x, a), (y, b)))
    debiased = float(a @ f + b @ g) - 0.5 * (self_a + self_b)
    lower, upper = max(lower, 0.0), max(upper, 0.0)
    if lower > upper * (1 + 1e-9) + 1e-12:
        raise TransportError(f"the bracket [{lower:.6g}, {upper:.6g}] is empty: the entropic iteration has failed.")
    return Bracket(min(max(debiased, lower), upper), lower, upper, debiased, count)


def _occupied(points: Array, masses: Array) -> tuple[Array, Array]:
    used = masses > 0
    return np.ascontiguousarray(points[used]), masses[used] / masses[used].sum()


def _sinkhorn(
    x: Array, a: Array, y: Array, b: Array, cost: Cost, epsilon: float, tolerance: float, iterations: int
) -> tuple[Array, Array, int]:
    """Potentials whose plan has exact first marginal; ε is lowered from the diameter's cost to its final value."""
    log_a, log_b = np.log(a), np.log(b)
    g = np.zeros(len(b))
    current = max(epsilon, cost.largest)
    defect = np.inf
    for count in range(1, iterations + 1):
        f, _ = _soft_minimum(x, y, g, log_b, cost, current)
        moved, _ = _soft_minimum(y, x, f, log_a, cost, current)
        # (g − moved)/ε is the log of the second marginal over b.
        defect = 0.5 * float(b @ np.abs(np.expm1(np.clip((g - moved) / current, -50.0, 50.0))))
        if not np.isfinite(defect):
            break
        if current <= epsilon and defect <= tolerance:
            return f, g, count
        g = moved
        current = max(epsilon, 0.7 * current)
    raise TransportError(
        f"the entropic iteration has not converged: marginals are off by {defect:.2e} after {count} iterations with "
        f"epsilon = {epsilon:g}; raise epsilon or the number of iterations."
    )


def _self_term(x: Array, a: Array, cost: Cost, epsilon: float, tolerance: float, iterations: int) -> float:
    """OT_ε(a, a), whose two potentials agree: the averaged iteration converges in a few steps."""
    f = np.zeros(len(a))
    log_a = np.log(a)
    for _ in range(iterations):
        moved, _ = _soft_minimum(x, x, f, log_a, cost, epsilon)
        change = float(a @ np.abs(moved - f)) / epsilon
        f = 0.5 * (f + moved)
        if change <= tolerance:
            return 2.0 * float(a @ f)
    raise TransportError("the entropic self-distance has not converged; raise epsilon or the number of iterations.")


def _rounded_cost(x: Array, a: Array, y: Array, b: Array, f: Array, g: Array, cost: Cost, epsilon: float) -> float:
    """Cost of a feasible plan: overfull columns shrunk to b, and what is then missing coupled as a product."""
    soft, mean_cost = _soft_minimum(y, x, f, np.log(a), cost, epsilon)
    column = b * np.exp((g - soft) / epsilon)
    shrink = np.minimum(1.0, np.divide(b, column, out=np.ones_like(b), where=column > 0))
    kept = column * shrink
    soft, _ = _soft_minimum(x, y, g, np.log(b * shrink), cost, epsilon)
    missing_row = np.maximum(a - a * np.exp((f - soft) / epsilon), 0.0)
    missing_column = np.maximum(b - kept, 0.0)
    share = missing_column / max(float(missing_column.sum()), 1e-300)
    average = np.concatenate([cost(x[rows], y) @ share for rows in _blocks(len(x), len(y))])
    return float(kept @ mean_cost + missing_row @ average)


def _soft_minimum(x: Array, y: Array, v: Array, log_b: Array, cost: Cost, epsilon: float) -> tuple[Array, Array]:
    """−ε log Σ_j b_j e^{(v_j − c_ij)/ε}, and the mean of c_ij under these weights, for every i."""
    if cost.chordal_squared:
        # c = 2 − 2⟨x, y⟩: the attention integral itself, with tilt 2x/ε.
        mean, log_sum = log_sum_exp((2.0 / epsilon) * x, y, log_b + v / epsilon)
        return 2.0 - epsilon * log_sum, 2.0 - 2.0 * np.sum(x * mean, axis=-1)
    soft, mean_cost = np.empty(len(x)), np.empty(len(x))
    for rows in _blocks(len(x), len(y)):
        c = cost(x[rows], y)
        exponents = (v - c) / epsilon + log_b
        largest = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - largest)
        total = weights.sum(axis=1)
        soft[rows] = -epsilon * (largest[:, 0] + np.log(total))
        mean_cost[rows] = np.einsum("ij,ij->i", weights, c) / total
    return soft, mean_cost


def _hard_minimum(x: Array, y: Array, v: Array, cost: Cost) -> Array:
    """min_j c_ij − v_j for every i: the c-transform."""
    return np.concatenate([(cost(x[rows], y) - v).min(axis=1) for rows in _blocks(len(x), len(y))])


def _blocks(n: int, m: int) -> list[slice]:
    size = max(1, BLOCK // m)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
