"""The exponential stretch of a decaying curve, found and fitted."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Decay:
    """W(t) ≈ prefactor·e^{−rate·t} on [start, end], by least squares of log W."""

    rate: float
    prefactor: float
    start: float
    end: float

    def __call__(self, times: ArrayLike) -> np.ndarray:
        """The fitted curve."""
        values: np.ndarray = self.prefactor * np.exp(-self.rate * np.asarray(times, dtype=float))
        return values


def fit_decay(times: ArrayLike, values: ArrayLike, floor: ArrayLike = 0.0) -> Decay | None:
    """Fit the first descent of ``values``: from 80 % of the start down to thrice its least value and the floor.

    None where the descent has fewer than four samples or is less than a factor e.
    """
    time, value = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    base = np.broadcast_to(np.nan_to_num(np.asarray(floor, dtype=float), nan=0.0), value.shape)
    usable = np.isfinite(value) & (value > 0.0) & np.isfinite(time)
    if usable.sum() < 4:
        return None
    time, value, base = time[usable], value[usable], base[usable]
    last = int(np.argmin(value)) + 1
    time, value, base = time[:last], value[:last], base[:last]
    chosen = (value <= 0.8 * value[0]) & (value >= 3.0 * value[-1]) & (value >= 3.0 * base)
    if chosen.sum() < 4 or value[chosen].max() < np.e * value[chosen].min():
        return None
    slope, intercept = np.polyfit(time[chosen], np.log(value[chosen]), 1)
    return Decay(-float(slope), float(np.exp(intercept)), float(time[chosen][0]), float(time[chosen][-1]))
