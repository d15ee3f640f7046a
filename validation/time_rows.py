"""One time of a comparison: what the tokens show, what the density says, and how surprising the difference is."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tokensphere.validation.empirical_transport import Transport
from tokensphere.validation.nulls import Moments
from tokensphere.validation.observables import polynomial_maps
from tokensphere.validation.statistics import Null, hotelling, power, quadratic

Array = NDArray[np.float64]

CONSISTENT, INCONSISTENT, TOO_FEW = "consistent", "inconsistent", "too few tokens to tell"

TEST_DEGREE = 2
"""Degrees of Hotelling's test: mean and second moments, where every fault of an attention head shows first."""

POWER = 0.9
"""A verdict of consistent means that a fault of known size (nulls.DETUNING) would have been found this often."""

DEFECT = 1e-5
"""Sphere defect after the first frame that counts as a finding: RK4 codes and single precision stay below it."""

INTERVAL = 1.96
"""Half-width of a 95 % interval in standard deviations."""


@dataclass(frozen=True, eq=False)
class TimeRow:
    """One time of a file: moments of the tokens, of the density, and half-widths of 95 % intervals for correct tokens.

    order_parameter: |mean|; eigenvalues: of the second moment, ascending. discretisation: error of the density's mean
    that the tests allow for. moments_p, energy_p: p-values of Hotelling's test and of the energy distance; adjusted
    (2,): after Holm's correction. power: probability that Hotelling's test finds β (or the speed) wrong by
    nulls.DETUNING.
    """

    time: float
    verdict: str
    sphere_defect: float
    mean: Array
    mean_expected: Array
    mean_interval: Array
    second_moment: Array
    second_moment_expected: Array
    second_moment_interval: Array
    order_parameter: float
    order_parameter_expected: float
    eigenvalues: Array
    eigenvalues_expected: Array
    discretisation: float
    moments_p: float
    energy_distance: float
    energy_p: float
    adjusted: Array
    power: float = math.nan
    w1: Transport | None = None
    w2: Transport | None = None


def time_row(time: float, moments: Moments, found: Array, expected: Array, null: Null, defect: float) -> TimeRow:
    """The row of moments `found` (count,) where the density has `expected` and correct tokens the law `null`.

    Verdict and correction are still open: they need all rows (`judged`).
    """
    deviation = found - null.centre
    tested = np.flatnonzero(moments.degrees <= TEST_DEGREE)
    total = null.total
    energy, energy_p = quadratic(deviation, moments.energy_weights, null.covariance, null.shift)
    mean_map, second_map = polynomial_maps(moments.mesh.dimension)
    size = second_map.shape[-1]
    spread = total[:size, :size]
    second = [np.eye(len(mean_map)) / len(mean_map) + second_map @ part[:size] for part in (found, expected)]
    mean = [mean_map @ part[:size] for part in (found, expected)]
    return TimeRow(
        time=float(time),
        verdict="",
        sphere_defect=defect,
        mean=mean[0],
        mean_expected=mean[1],
        mean_interval=INTERVAL * np.sqrt(np.einsum("ik,kl,il->i", mean_map, spread, mean_map)),
        second_moment=second[0],
        second_moment_expected=second[1],
        second_moment_interval=INTERVAL * np.sqrt(np.einsum("ijk,kl,ijl->ij", second_map, spread, second_map)),
        order_parameter=float(np.linalg.norm(mean[0])),
        order_parameter_expected=float(np.linalg.norm(mean[1])),
        eigenvalues=np.asarray(np.linalg.eigvalsh(second[0]), dtype=np.float64),
        eigenvalues_expected=np.asarray(np.linalg.eigvalsh(second[1]), dtype=np.float64),
        discretisation=float(np.linalg.norm(mean_map @ null.shift[:size])),
        moments_p=hotelling(deviation[tested], total[np.ix_(tested, tested)], null.replicates),
        energy_distance=energy,
        energy_p=energy_p,
        adjusted=np.ones(2),
    )


def fault_power(moments: Moments, shifts: Array, null: Null, level: float) -> float:
    """Smallest probability that Hotelling's test finds one of the shifts (faults, count) at that level."""
    tested = np.flatnonzero(moments.degrees <= TEST_DEGREE)
    covariance = null.total[np.ix_(tested, tested)]
    return min(power(shift[tested], covariance, null.replicates, level) for shift in shifts)


def judged(row: TimeRow, adjusted: Array, level: float) -> TimeRow:
    """The row with its corrected p-values and verdict; a row without power (the start) can only object."""
    wrong = bool(adjusted.min() < level) or row.sphere_defect > DEFECT
    told = math.isnan(row.power) or row.power >= POWER
    return replace(row, adjusted=adjusted, verdict=INCONSISTENT if wrong else CONSISTENT if told else TOO_FEW)
