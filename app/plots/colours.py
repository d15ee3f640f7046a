"""Colours that survive colour-blindness and grey print, and one scale for many times."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

DENSITY_MAP = "viridis"
LABEL_MAP = "twilight_shifted"
TIME_MAP = "cividis"

# Okabe and Ito (2008): distinguishable under all common forms of colour-blindness.
BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
YELLOW = "#F0E442"
BLACK = "#000000"
CYCLE = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)


@dataclass(frozen=True)
class ColourScale:
    """Range of a colour bar: values outside [low, high] take the end colours; ``log`` spaces them logarithmically."""

    low: float
    high: float
    log: bool

    def fraction(self, values: ArrayLike) -> NDArray[np.float64]:
        """Places of values along the scale, 0 at its lower end and below, 1 at its upper end and above."""
        inside = np.clip(np.asarray(values, dtype=float), self.low, self.high)
        if self.log:
            return np.asarray(np.log(inside / self.low) / np.log(self.high / self.low))
        return np.asarray((inside - self.low) / (self.high - self.low))

    def fraction_below(self, density: ArrayLike) -> float:
        """Share of the equal-area cells whose value lies under the lower end."""
        values = np.asarray(density, dtype=float)
        return float(np.mean(values < self.low))


def colour_scale(densities: ArrayLike, log: bool = True, decades: float = 6.0) -> ColourScale:
    """One scale for all given densities: [0, max], or in logarithms from max·10^−decades or the least value, if larger.

    A nearly constant density gets a range of at least a factor 1.5, so that round-off is not painted as structure.
    """
    values = np.asarray(densities, dtype=float)
    high = float(values.max())
    if high <= 0.0:
        return ColourScale(1e-12, 1.0, log)
    if not log:
        return ColourScale(0.0, high, False)
    low = max(float(values.min()), high * 10.0**-decades)
    if high < 1.5 * low:
        middle = np.sqrt(low * high)
        low, high = float(middle / np.sqrt(1.5)), float(middle * np.sqrt(1.5))
    return ColourScale(low, high, True)


def time_colours(count: int) -> list[tuple[float, float, float, float]]:
    """``count`` colours from dark (early) to light (late), short of the lightest that would vanish on white."""
    from matplotlib import colormaps

    shades: NDArray[np.float64] = np.asarray(colormaps[TIME_MAP](np.linspace(0.0, 0.88, max(count, 1))))
    return [(float(r), float(g), float(b), float(a)) for r, g, b, a in shades]
