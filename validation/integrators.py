"""Runge–Kutta steps on a product of spheres, with error control and an exact return to the sphere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.pde.errors import NonFiniteError, StalledStepError

Array = NDArray[np.float64]
Rate = Callable[[Array], Array]
Retract = Callable[[Array], Array]

# Dormand and Prince's embedded pair of orders 5 and 4 (J. Comput. Appl. Math. 6, 1980, 19–26, table 2).
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
DEFECT = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)

TOLERANCE = 1e-11
"""Largest local error of a step, in any row: keeps the exact solutions of theory §1.4 to 1e−8."""

SMALLEST = 1e-13
"""A step below this fraction of the interval has stalled."""


@dataclass(frozen=True, eq=False)
class Path:
    """States (times, …) at the requested times, with the cost: accepted and rejected steps, rates evaluated."""

    times: Array
    states: Array
    steps: int
    rejected: int
    evaluations: int


def on_sphere(positions: Array) -> Array:
    """x/|x| for rows."""
    return np.asarray(positions / np.linalg.norm(positions, axis=-1, keepdims=True))


def free(state: Array) -> Array:
    """No constraint."""
    return state


def integrate(
    rate: Rate,
    start: Array,
    times: ArrayLike,
    *,
    retract: Retract = on_sphere,
    step: float | None = None,
    tolerance: float = TOLERANCE,
) -> Path:
    """Advance y' = rate(y) from times[0] and return y at all `times`, which are hit exactly.

    `retract` maps a state back to the manifold: at every accepted step, and at every stage before the rate is taken,
    which leaves the order unchanged because the flow stays on the manifold.  With `step` classical RK4 of at most that
    step; otherwise Dormand–Prince 5(4) with the largest row error of a step below `tolerance`.

    Raises InputError for times that do not increase, NonFiniteError (time, step) when a rate is not finite,
    StalledStepError when no step is small enough.
    """
    instants = checked_times(times)
    state = np.array(start, dtype=np.float64)
    states = np.empty((len(instants), *state.shape))
    states[0] = state
    march = _Fixed(rate, retract, step) if step is not None else _Adaptive(rate, retract, tolerance)
    for k in range(1, len(instants)):
        state = march.advance(state, float(instants[k - 1]), float(instants[k]))
        states[k] = state
    return Path(instants, states, march.steps, march.rejected, march.evaluations)


def checked_times(times: ArrayLike) -> Array:
    """Times as a strictly increasing array (k,)."""
    instants = np.atleast_1d(np.asarray(times, dtype=np.float64))
    if instants.ndim != 1 or not np.isfinite(instants).all() or (np.diff(instants) <= 0).any():
        raise InputError(
            "the times of a particle run must be finite and strictly increasing; sort them and drop repeats."
        )
    return instants


class _Adaptive:
    """Dormand–Prince with a step that follows the error; the step is remembered from one interval to the next."""

    def __init__(self, rate: Rate, retract: Retract, tolerance: float) -> None:
        if not 0 < tolerance < 1:
            raise InputError(f"tolerance = {tolerance} was given, but the local error must lie between 0 and 1.")
        self._rate, self._retract, self._tolerance = rate, retract, tolerance
        self._step = 0.0
        self.steps = self.rejected = self.evaluations = 0

    def advance(self, state: Array, begin: float, end: float) -> Array:
        done, length = 0.0, end - begin
        slope = self._slope(state, begin)
        step = self._step or min(length, 0.1 / max(1.0, float(np.abs(slope).max())))
        while done < length:
            left = length - done
            trial = left if step >= left else min(step, left / 2) if step > left / 2 else step
            if trial < SMALLEST * length:
                raise StalledStepError("the step of the particles has stalled", time=begin + done, step=self.steps)
            advanced, last, error = self._try(state, slope, trial)
            growth = 5.0 if error == 0 else 0.9 * (self._tolerance / error) ** 0.2 if np.isfinite(error) else 0.1
            if error <= self._tolerance:
                state, slope, done = advanced, last, length if trial == left else done + trial
                self.steps += 1
                # A step cut short by a requested time says nothing against the longer one.
                step = max(step, trial * min(growth, 5.0)) if trial < step else trial * min(growth, 5.0)
            else:
                self.rejected += 1
                step = trial * max(min(growth, 0.9), 0.1)
        self._step = step
        return state

    def _try(self, state: Array, slope: Array, step: float) -> tuple[Array, Array, float]:
        """The advanced state, the rate there (the last stage is the new state) and the error."""
        slopes = [slope]
        advanced = state
        for weights in STAGES:
            advanced = self._retract(state + step * _combine(weights, slopes))
            slopes.append(self._rate(advanced))
            self.evaluations += 1
        defect = step * _combine(DEFECT, slopes)
        error = float(np.sqrt((defect.reshape(len(defect), -1) ** 2).sum(axis=1)).max(initial=0.0))
        return advanced, slopes[-1], error

    def _slope(self, state: Array, time: float) -> Array:
        self.evaluations += 1
        return _finite(self._rate(state), time, self.steps)


class _Fixed:
    """Classical RK4 with equal steps of at most `step`."""

    def __init__(self, rate: Rate, retract: Retract, step: float) -> None:
        if not step > 0 or not np.isfinite(step):
            raise InputError(f"step = {step} was given, but the step must be finite and above 0.")
        self._rate, self._retract, self._step = rate, retract, step
        self.steps = self.rejected = self.evaluations = 0

    def advance(self, state: Array, begin: float, end: float) -> Array:
        count = max(1, int(np.ceil((end - begin) / self._step * (1 - 1e-12))))
        h = (end - begin) / count
        for index in range(count):
            first = _finite(self._rate(state), begin + index * h, self.steps)
            second = self._rate(self._retract(state + h / 2 * first))
            third = self._rate(self._retract(state + h / 2 * second))
            fourth = self._rate(self._retract(state + h * third))
            state = self._retract(state + h / 6 * (first + 2 * second + 2 * third + fourth))
            self.steps += 1
            self.evaluations += 4
        _finite(state, end, self.steps)
        return state


def _combine(weights: Sequence[float], slopes: Sequence[Array]) -> Array:
    total = np.zeros_like(slopes[0])
    for weight, slope in zip(weights, slopes, strict=True):
        if weight:
            total += weight * slope
    return total


def _finite(values: Array, time: float, step: int) -> Array:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise NonFiniteError(f"token {row} has a velocity or position that is not finite", time=time, step=step)
    return values
