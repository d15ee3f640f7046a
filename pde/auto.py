"""The cheapest method for each point: spectral where its floor allows the tolerance, a log-safe sum elsewhere."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.gridded import GriddedPlan
from tokensphere.pde.spectral import NOISE, SpectralPlan

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Integral = tuple[Array, Array]
SafeSum = Callable[[Array, Indices | None], Integral]

PROBES = 256
"""Targets at which the share that the spectral method can serve is estimated."""

BLOCKS = 768
"""Blocks of sources (at most) that stand for the measure in that estimate."""

PEAKS = 32
"""Heaviest blocks at which the largest value of e^{−r}F is looked for."""


class AutoPlan:
    """Spectral sum with a safe sum (masses' logarithms, targets) → (mean, log F) for the points under its floor.

    Every choice depends on the masses alone, so that equal densities give bitwise equal results whatever came before.
    The spectral method is left out where, by a lower bound of F from Jensen's inequality, it can serve fewer than
    `worthwhile` of the points.  `sources` are in nested order.
    """

    def __init__(
        self,
        sources: Array,
        tilts: Array,
        spectral: SpectralPlan | GriddedPlan,
        safe: SafeSum,
        rtol: float,
        worthwhile: float,
    ) -> None:
        self._sources, self._spectral, self._safe = sources, spectral, safe
        self._rtol, self._worthwhile = rtol, worthwhile
        self._probes = np.ascontiguousarray(tilts[:: max(1, len(tilts) // PROBES)])
        self._block = 1
        while len(sources) > BLOCKS * self._block and len(sources) % (2 * self._block) == 0:
            self._block *= 2
        self.floor: Array | None = None
        self.spectral_share = 0.0

    def __call__(self, masses: Array, log_masses: Array) -> Integral:
        self.floor, self.spectral_share = None, 0.0
        if self._servable(masses) < self._worthwhile:
            return self._safe(log_masses, None)
        mean, log_normaliser, self.floor = self._spectral(masses)
        rest = np.flatnonzero(~(self.floor <= self._rtol))
        self.spectral_share = 1.0 - len(rest) / len(mean)
        if len(rest):
            mean[rest], log_normaliser[rest] = self._safe(log_masses, rest)
        return mean, log_normaliser

    def _servable(self, masses: Array) -> float:
        """Estimated share of the points where e^{−r}F exceeds its largest value by the floor over the tolerance."""
        blocks = masses.reshape(-1, self._block)
        totals = blocks.sum(axis=1)
        kept = totals > 0.0
        if not kept.any():
            return 0.0
        firsts = np.einsum("bk,bkd->bd", blocks, self._sources.reshape(*blocks.shape, -1))[kept]
        totals = totals[kept]
        # By Jensen's inequality a block weighs at least its mass at its mean point.
        means, log_totals = firsts / totals[:, None], np.log(totals)
        radii = np.linalg.norm(self._probes, axis=1)
        heaviest = np.argsort(-totals, kind="stable")[:PEAKS]
        peaks = means[heaviest] / np.maximum(np.linalg.norm(means[heaviest], axis=1, keepdims=True), 1e-300)
        levels = log_sum_exp(self._probes, means, log_totals)[1] - radii
        largest = (log_sum_exp(radii.max() * peaks, means, log_totals)[1] - radii.max()).max()
        return float(np.mean(levels > max(largest, levels.max()) + np.log(3.0 * NOISE / self._rtol)))
