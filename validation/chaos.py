"""Propagation of chaos: what a finite number of tokens costs, and how early it leaves a metastable state."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.validation.dynamics import Dynamics
from tokensphere.validation.integrators import checked_times, integrate
from tokensphere.validation.nulls import DEGREE, Moments
from tokensphere.validation.particle_fields import attention_velocity
from tokensphere.validation.projection import Projection
from tokensphere.validation.sampling import Uniforms, independent_uniforms, sample_density

Array = NDArray[np.float64]

ENTERED, LEFT = 0.12, 0.15
"""A law has left E when its W2 to E exceeds LEFT after having been below ENTERED: theory §1.5, case B."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Distance between n tokens and the density, for several n.

    counts (k,); errors (k, repeats): √ of the energy distance (degrees 1 … 6).  The mean square is fitted by
    scale²/n + floor²; `exponent` is the slope of the root mean square against n below the crossover, −1/2 for chaos;
    `crossover` = scale²/floor² is the n beyond which the density's discretisation is what one measures.
    """

    counts: Array
    errors: Array
    scale: float
    floor: float
    exponent: float

    @property
    def rms(self) -> Array:
        """Root mean square over the repeats (k,)."""
        return np.asarray(np.sqrt(np.mean(self.errors**2, axis=1)))

    @property
    def crossover(self) -> float:
        """n at which sampling and discretisation err alike; inf where no floor shows."""
        return (self.scale / self.floor) ** 2 if self.floor > 0 else math.inf

    def table(self) -> list[dict[str, float]]:
        """One row per n: tokens, rms error, its standard error, and the fit."""
        deviation = self.errors.std(axis=1, ddof=1) / math.sqrt(self.errors.shape[1])
        fit = np.sqrt(self.scale**2 / self.counts + self.floor**2)
        columns = zip(self.counts, self.rms, deviation, fit, strict=True)
        return [dict(zip(("tokens", "error", "deviation", "fit"), map(float, row), strict=True)) for row in columns]


def chaos_ladder(
    mesh: Mesh,
    times: ArrayLike,
    densities: ArrayLike,
    dynamics: Dynamics,
    counts: Sequence[int],
    repeats: int,
    generator: Generator,
    *,
    uniforms: Uniforms = independent_uniforms,
    tolerance: float = 1e-5,
) -> Ladder:
    """Run `repeats` sets of n tokens for every n of `counts` and compare them at the last time with the density.

    times (2,) or more; densities (times, cells): tokens start from the first and are compared with the last.
    Raises InputError for fewer than two counts or repeats.
    """
    if len(counts) < 2 or repeats < 2:
        raise InputError(f"{len(counts)} counts and {repeats} repeats were given; a ladder needs at least two of each.")
    moments, saved = Moments(mesh, DEGREE), np.asarray(densities, dtype=np.float64)
    span = checked_times(times)[[0, -1]]
    expected, weights = moments.of_density(saved[-1]), moments.energy_weights

    def error(count: int) -> float:
        tokens = sample_density(mesh, saved[0], count, generator, uniforms)
        equal, labels = np.full(count, 1.0 / count), np.zeros(count, dtype=np.int64)
        final = dynamics.advance(tokens, equal, labels, span, tolerance)[-1]
        return math.sqrt(float(weights @ (moments.of_tokens(final, equal, labels) - expected) ** 2))

    return fitted_ladder(counts, [[error(count) for _ in range(repeats)] for count in counts])


def fitted_ladder(counts: ArrayLike, errors: ArrayLike) -> Ladder:
    """The ladder of errors (k, repeats), with scale, floor and exponent fitted."""
    n, found = np.asarray(counts, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    square = np.mean(found**2, axis=1)
    # Relative errors of the mean squares are alike, so rows are divided by them.
    design = np.column_stack([1.0 / n, np.ones_like(n)]) / square[:, None]
    scale, floor = np.sqrt(nnls(design, np.ones_like(n))[0])
    below = n * floor**2 <= scale**2
    below[:2] = True
    slope = np.polyfit(np.log(n[below]), 0.5 * np.log(square[below]), 1)[0]
    return Ladder(n, found, float(scale), float(floor), float(slope))


def exit_time(times: ArrayLike, distances: ArrayLike, entered: float = ENTERED, left: float = LEFT) -> float:
    """First time, interpolated, at which a distance exceeds `left` after having been below `entered`; inf if never."""
    t, d = np.asarray(times, dtype=np.float64), np.asarray(distances, dtype=np.float64)
    inside = np.flatnonzero(d < entered)
    if not len(inside):
        return math.inf
    out = np.flatnonzero(d[inside[0] :] > left) + inside[0]
    if not len(out):
        return math.inf
    k = int(out[0])
    return float(t[k - 1] + (t[k] - t[k - 1]) * (left - d[k - 1]) / (d[k] - d[k - 1]))


def distance_to_eigenspace(points: Array, weights: Array, projection: Projection) -> float:
    """Chordal W2 to the nearest law on E: (Σ w |x − Πx|²)^{1/2}; theory §1.3(e)."""
    return float(np.sqrt(weights @ projection.nearest_distance(points) ** 2))


def token_exit_time(
    attention: Attention,
    projection: Projection,
    tokens: Array,
    horizon: float,
    *,
    interval: float = 0.1,
    entered: float = ENTERED,
    left: float = LEFT,
    method: str = "auto",
) -> float:
    """When n equal tokens (n, d) leave the neighbourhood of E; inf if not before `horizon`.  Stops at the exit.

    Two RK4 steps per `interval` between looks: at .1 the time is right to .005 up to β = 240.
    """
    weights = np.full(len(tokens), 1.0 / len(tokens))
    velocity = attention_velocity(attention, weights, method)
    times, distances = [0.0], [distance_to_eigenspace(tokens, weights, projection)]
    while times[-1] < horizon:
        tokens = integrate(velocity, tokens, [times[-1], times[-1] + interval], step=interval / 2).states[1]
        times.append(times[-1] + interval)
        distances.append(distance_to_eigenspace(tokens, weights, projection))
        if math.isfinite(found := exit_time(times, distances, entered, left)):
            return found
    return math.inf


@dataclass(frozen=True, eq=False)
class ExitTimes:
    """Exit times of n tokens: counts (k,), times (k, repeats), inf where the horizon came first; the density's own.

    `slope` is that of the median time against log n: the tokens' times saturate like log n while the density's grows
    with β (theory §1.5).
    """

    counts: Array
    times: Array
    density: float
    beta: float
    dimension: int

    @property
    def median(self) -> Array:
        """Median over the repeats (k,)."""
        return np.asarray(np.median(self.times, axis=1))

    @property
    def slope(self) -> float:
        """d(median)/d(log n), over the counts that left."""
        left = np.isfinite(self.median)
        if left.sum() < 2:
            return math.nan
        return float(np.polyfit(np.log(self.counts[left]), self.median[left], 1)[0])

    def table(self) -> list[dict[str, float]]:
        """One row per n: tokens, median, smallest and largest exit time, and the density's."""
        rows = zip(self.counts, self.median, self.times.min(axis=1), self.times.max(axis=1), strict=True)
        names = ("tokens", "median", "smallest", "largest")
        return [dict(zip(names, map(float, row), strict=True)) | {"density": self.density} for row in rows]


def exit_ladder(
    mesh: Mesh,
    start: Array,
    attention: Attention,
    counts: Sequence[int],
    repeats: int,
    horizon: float,
    generator: Generator,
    *,
    density_time: float = math.inf,
    uniforms: Uniforms = independent_uniforms,
    entered: float = ENTERED,
    left: float = LEFT,
    report: Callable[[int, float], None] | None = None,
) -> ExitTimes:
    """Exit times of n tokens drawn from `start` (cells,), on the circle or the sphere, for every n of `counts`.

    `density_time` is the density's own exit time, from its run (`exit_time`).  `report` hears of every run.
    Raises InputError where VBᵀ is not symmetric, so that E is not defined.
    """
    projection = Projection(attention)
    found = np.empty((len(counts), repeats))
    for k, count in enumerate(counts):
        for r in range(repeats):
            tokens = sample_density(mesh, start, count, generator, uniforms)
            found[k, r] = token_exit_time(attention, projection, tokens, horizon, entered=entered, left=left)
            if report is not None:
                report(count, float(found[k, r]))
    return ExitTimes(np.asarray(counts, dtype=np.float64), found, density_time, attention.beta, mesh.dimension)
