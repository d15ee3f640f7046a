"""Logarithmic axes whose labels are plain text and whose minor marks are one line.

Matplotlib sets 10⁻³ as a formula and makes every minor mark an object with two texts; together that takes longer than
all the rest of a curve.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.markers import TICKLEFT, MarkerStyle
from matplotlib.ticker import LogFormatter, LogFormatterMathtext, NullLocator

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MARKED = 3.0  # decades: with more, minor marks would run into each other


class PowerFormatter(LogFormatter):
    """10⁻³, and 2 × 10⁻³ between powers where the axis is short of them."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at x, empty where the axis has enough others."""
        return power_words(x) if super().__call__(x, pos) else ""


def power_words(value: float) -> str:
    """A positive number to one digit as a power of ten: 10⁻³, 2 × 10⁻³."""
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = round(value / 10.0**exponent)
    power = "10" + str(exponent).translate(RAISED)
    return power if digit == 1 else f"{digit} × {power}"


def plain_decades(axes: Axes) -> None:
    """Label the powers of ten of logarithmic axes as text; on y mark 2 … 9 between them on up to three decades.

    Labels that were chosen for the axes stay.
    """
    for axis in (axes.xaxis, axes.yaxis):
        if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
            axis.set_major_formatter(PowerFormatter())
        if isinstance(axis.get_minor_formatter(), LogFormatterMathtext):
            axis.set_minor_formatter(PowerFormatter())
    if axes.get_yscale() != "log":
        return
    decades = float(np.ptp(np.log10(axes.get_ylim())))
    # On at most two decades numbers may have to stand at the minor marks.
    lines_do = 2.0 < decades <= MARKED and isinstance(axes.yaxis.get_minor_formatter(), PowerFormatter)
    if lines_do:
        axes.add_artist(MinorMarks())
    if lines_do or decades > MARKED:
        axes.yaxis.set_minor_locator(NullLocator())


class MinorMarks(Line2D):
    """The marks at 2 … 9 times the powers of ten inside the limits of the y axis."""

    def __init__(self) -> None:
        super().__init__(
            [], [], linestyle="none", marker=MarkerStyle(TICKLEFT), markersize=2.0, markeredgewidth=0.6, color="black"
        )
        self.set(clip_on=False, in_layout=False)

    def draw(self, renderer: Any) -> None:
        """Draw those inside the present limits."""
        assert isinstance(self.axes, Axes)
        low, high = sorted(self.axes.get_ylim())
        exponents = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
        places = np.ravel(np.outer(10.0**exponents, np.arange(2.0, 10.0)))
        places = places[(places >= low) & (places <= high)]
        self.set_transform(self.axes.get_yaxis_transform())
        self.set_data(np.zeros(places.size), places)
        super().draw(renderer)
