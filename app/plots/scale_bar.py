"""The bar that tells what the colours of a map mean."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.markers import TICKDOWN
from matplotlib.patches import Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tokensphere.plots.canvas import points_below
from tokensphere.plots.colours import DENSITY_MAP, ColourScale
from tokensphere.plots.decades import power_words

Array = NDArray[np.float64]

TIP = 0.06  # length of the arrow in units of the bar's
LABEL = 8.5  # points
NUMBER = 8.0
NEAREST = 0.09  # two numbers, in units of the bar's length


def height_below(lines: int) -> float:
    """Inches that marks, numbers and a label of so many lines take below a bar."""
    return (7.0 + 1.2 * NUMBER + 4.0 + 1.2 * LABEL * lines + 3.0) / 72.0


def draw_bar(axes: Axes, scale: ColourScale, label: str, below: bool) -> None:
    """Fill ``axes`` with the colours of ``scale`` from left to right; with ``below``, an arrow at the lower end.

    Marks, numbers and the label stand beneath the axes. It is a picture and a line: matplotlib's own bar, whose marks
    are objects, takes as long to draw as the map.
    """
    axes.set_axis_off()
    shades = colormaps[DENSITY_MAP](np.linspace(0.0, 1.0, 256), bytes=True)
    axes.imshow(shades[None], extent=(0.0, 1.0, 0.0, 1.0), aspect="auto", interpolation="nearest")
    corners = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
    if below:
        tip = [(0.0, 0.0), (0.0, 1.0), (-TIP, 0.5)]
        axes.add_artist(Polygon(tip, facecolor=shades[0] / 255.0, linewidth=0.0, clip_on=False))
        corners.append((-TIP, 0.5))
    axes.add_artist(Polygon(corners, fill=False, edgecolor="black", linewidth=0.8, clip_on=False, joinstyle="miter"))
    values, words, marks = bar_marks(scale)
    for places, length in ((values, 3.5), (marks, 2.0)):
        where = scale.fraction(places)
        axes.plot(
            where, np.zeros(where.size), linestyle="none", marker=TICKDOWN, markersize=length, color="black",
            markeredgewidth=0.7, clip_on=False,
        )  # fmt: skip
    axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    numbers = points_below(axes, 7.0)
    for place, word in zip(scale.fraction(values), words, strict=True):
        axes.text(place, 0.0, word, transform=numbers, ha="center", va="top", fontsize=NUMBER)
    beneath = points_below(axes, 11.0 + 1.2 * NUMBER)
    axes.text(0.5, 0.0, label, transform=beneath, ha="center", va="top", fontsize=LABEL, linespacing=1.2)


def bar_marks(scale: ColourScale) -> tuple[Array, list[str], Array]:
    """Values with a number, the numbers, and values with only a mark.

    Powers of ten where two fall into the range of a logarithmic scale; else round values, no two too near.
    """
    if scale.log:
        exponents = np.arange(np.floor(np.log10(scale.low)), np.ceil(np.log10(scale.high)) + 1.0)
        powers, between = 10.0**exponents, np.ravel(np.outer(10.0**exponents, np.arange(2.0, 10.0)))
        inside = powers[(powers >= scale.low) & (powers <= scale.high)]
        if inside.size >= 2:
            chosen = inside[:: -(-inside.size // 10)]
            marks = between[(between >= scale.low) & (between <= scale.high)]
            return chosen, [power_words(value) for value in chosen], marks if inside.size <= 10 else inside
    values = np.asarray(MaxNLocator(7).tick_values(scale.low, scale.high))
    values = values[(values >= scale.low) & (values <= scale.high)]
    values = values[_apart(scale.fraction(values))]
    return values, [f"{value:.6g}".replace("-", "−") for value in values], np.zeros(0)


def _apart(places: Array) -> list[int]:
    """Indices of ascending places that keep so far from each other that numbers fit between."""
    kept: list[int] = []
    for index, place in enumerate(places):
        if not kept or place - places[kept[-1]] >= NEAREST:
            kept.append(index)
    return kept
