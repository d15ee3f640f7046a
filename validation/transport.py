"""Optimal transport through POT, checked: a wrong answer is never returned.

The network simplex of POT returns 0 for a weight of −1e−17 or for unequal masses, and the current value when it hits
its iteration cap. Here masses are checked before, and result code, both marginals and the duality gap afterwards.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.pde.errors import PredictedMemoryError

Array = NDArray[np.float64]

MEMORY = 2e9
"""Default limit in bytes."""

BYTES_PER_PAIR = 40
"""Measured for the cost, the plan and the arcs of the network simplex, rounded up."""

EQUAL = 1e-9
"""Relative difference of total masses that counts as round-off and is removed by rescaling the second law."""


class TransportError(RuntimeError):
    """The solver did not reach an optimal plan, so there is no distance to return."""


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal plan: cost = Σ π_ij c_ij; plan (n, m); potentials u (n,), v (m,) with u_i + v_j ≤ c_ij up to gap."""

    cost: float
    plan: Array
    u: Array
    v: Array
    gap: float


def optimal_plan(
    masses: Array, other: Array, cost: Array, *, iterations: int = 20_000_000, memory: float = MEMORY
) -> Plan:
    """The plan π ≥ 0 with marginals `masses` (n,) and `other` (m,) that minimises Σ π_ij c_ij, cost (n, m).

    Total masses that differ by less than 1e−9 relative are made equal by rescaling `other`.
    Raises InputError for masses that are negative, not finite, all zero or of unequal total, or costs that are not
    finite; PredictedMemoryError when the problem would need more than `memory` bytes; TransportError when the simplex
    stops before the optimum.
    """
    masses, other = check_masses(masses, "the first law"), check_masses(other, "the second law")
    check_memory(len(masses), len(other), memory)
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    if cost.shape != (len(masses), len(other)) or not np.all(np.isfinite(cost)):
        raise InputError(
            f"the cost has shape {cost.shape} or non-finite entries; it must be a finite ({len(masses)}, {len(other)}) "
            "array."
        )
    other = match_totals(masses, other)
    return _solve(masses, other, cost, iterations)


def check_masses(masses: Array, name: str) -> Array:
    """Masses as float64 (n,); raises InputError for a negative, NaN, infinite or only zero entries."""
    values = np.ascontiguousarray(masses, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise InputError(f"{name} must be a list of finite masses; correct the NaN or infinite entries.")
    if np.any(values < 0):
        worst = int(np.argmin(values))
        raise InputError(f"{name} has the negative mass {values[worst]:.3g} at index {worst}; masses must be ≥ 0.")
    if not np.sum(values) > 0:
        raise InputError(f"{name} has no mass at all; give at least one positive mass.")
    return values


def match_totals(masses: Array, other: Array) -> Array:
    """`other` rescaled to the total of `masses`; raises InputError when they differ by more than round-off."""
    total, second = float(np.sum(masses)), float(np.sum(other))
    if abs(total - second) > EQUAL * total:
        raise InputError(
            f"the two laws have total masses {total:.12g} and {second:.12g}; transport needs equal ones: rescale one."
        )
    return np.asarray(other * (total / second))


def check_memory(n: int, m: int, memory: float) -> None:
    """Raise PredictedMemoryError, before anything is allocated, when n×m pairs would need more than `memory` bytes."""
    needed = float(n) * float(m) * BYTES_PER_PAIR
    if needed > memory:
        raise PredictedMemoryError(
            f"exact transport between {n} and {m} points needs about {needed / 1e9:.1f} GB, more than the "
            f"{memory / 1e9:.1f} GB allowed; coarsen the meshes, or use method='entropic', which stores no n×m array."
        )


def _solve(masses: Array, other: Array, cost: Array, iterations: int) -> Plan:
    import ot

    with warnings.catch_warnings():
        # The same facts are read from the log below and raised.
        warnings.simplefilter("ignore")
        plan, log = ot.emd(masses, other, cost, numItermax=iterations, log=True, center_dual=False)
    plan = np.asarray(plan)
    if log.get("warning") is not None or log.get("result_code", 1) != 1:
        raise TransportError(
            f"the network simplex stopped without an optimum ({log.get('warning')}); allow more iterations."
        )
    total = float(np.sum(masses))
    defect = max(float(np.abs(plan.sum(axis=1) - masses).max()), float(np.abs(plan.sum(axis=0) - other).max()))
    if not defect <= 1e-9 * total or np.any(plan < 0):
        raise TransportError(f"the plan misses a marginal by {defect:.2e}, so it is not a transport plan.")
    u, v = np.asarray(log["u"], dtype=float), np.asarray(log["v"], dtype=float)
    value = float(np.sum(plan * cost))
    # Infinite or missing potentials belong to points without mass and do not enter the sums.
    used, reached = masses > 0, other > 0
    dual = float(masses[used] @ u[used] + other[reached] @ v[reached])
    scale = total * max(float(np.abs(cost).max()), 1e-300)
    violation = float(np.max(u[used, None] + v[None, reached] - cost[np.ix_(used, reached)], initial=0.0))
    gap = max(value - dual, 0.0) + total * violation
    if not gap <= 1e-7 * scale:
        raise TransportError(f"the plan's cost exceeds its dual value by {gap:.2e}: the optimum was not reached.")
    return Plan(value, plan, u, v, gap)
