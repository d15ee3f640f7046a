"""The layout of curves one below the other: everything has its known height, only tick labels and legends are measured.

Matplotlib's constrained layout measures every artist twice, which takes longer than drawing them.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import LayoutEngine
from matplotlib.text import Text

# All in points.
EDGE = 4.0  # kept free around everything
RIGHT = 10.0  # half of the last tick's label may stand there
TITLE = 11.0
ABOVE = 6.0  # between frame and title
NUMBER = 10.0
TICK = 7.0  # a tick and the gap to its label
GAP = 4.0  # between tick labels and the name of the axis
LINE = 1.15  # height of a line of text in units of its size


class Column(LayoutEngine):
    """Panels of equal height in one column, their frames and the names of their y axes in line."""

    _adjust_compatible = False
    _colorbar_gridspec = False

    def set(self, **_: Any) -> None:
        """There is nothing to set."""

    def execute(self, fig: Figure) -> None:
        """Place all axes of the figure and the names of their axes."""
        panels, point = fig.axes, fig.dpi / 72.0
        above, below = [_above(axes) for axes in panels], [_below(axes) for axes in panels]
        _stack(fig, above, below)
        hanging = [_legend_below(axes, point) for axes in panels]
        if any(legend > under for legend, under in zip(hanging, below, strict=True)):
            below = [max(pair) for pair in zip(hanging, below, strict=True)]
            _stack(fig, above, below)
        labels = max(_tick_labels(axes, point) for axes in panels)
        if any(axes.yaxis.get_offset_text().get_text() for axes in panels):
            # The power of ten that all labels share stands between frame and title.
            _stack(fig, [over + LINE * NUMBER for over in above], below)
            labels = max(_tick_labels(axes, point) for axes in panels)
        names = max(LINE * _size(axes.yaxis.label) for axes in panels)
        for axes in panels:
            _put(fig, axes, EDGE + names + labels + GAP, labels + GAP)


def _stack(figure: Figure, above: Sequence[float], below: Sequence[float]) -> None:
    """Share the height among the panels, with so many points above and below each."""
    panels, height = figure.axes, 72.0 * figure.get_figheight()
    tall = (height - EDGE - sum(above) - sum(below)) / len(panels)
    top = height - EDGE
    for axes, over, under in zip(panels, above, below, strict=True):
        axes.set_position((0.12, (top - over - tall) / height, 0.85, tall / height))
        top -= over + tall + under


def _put(figure: Figure, axes: Axes, left: float, name: float) -> None:
    """Let the frame begin at ``left`` and the name of the y axis stand ``name`` from it, inside the figure."""
    width, height = 72.0 * figure.get_figwidth(), 72.0 * figure.get_figheight()
    place = axes.get_position()
    bottom, tall, wide = place.y0 * height, place.height * height, width - left - RIGHT
    axes.set_position((left / width, place.y0, wide / width, place.height))
    axes.xaxis.set_label_coords(0.5, -(TICK + LINE * NUMBER + GAP) / tall)
    length = axes.yaxis.label.get_window_extent().height * 72.0 / figure.dpi
    middle = min(max(bottom + tall / 2, length / 2 + EDGE), height - EDGE - length / 2)
    axes.yaxis.set_label_coords(-name / wide, (middle - bottom) / tall)


def _above(axes: Axes) -> float:
    """Points above the frame: a title, or half of the topmost tick label."""
    return ABOVE + LINE * TITLE if axes.get_title("left") else 0.5 * LINE * NUMBER


def _below(axes: Axes) -> float:
    """Points below the frame: ticks, their labels and the name of the axis."""
    name = GAP + LINE * _size(axes.xaxis.label) if axes.get_xlabel() else 0.0
    return TICK + LINE * NUMBER + name + EDGE


def _size(label: Text) -> float:
    """Points of a line of the label, 0 where it is empty."""
    return float(label.get_fontsize()) if label.get_text() else 0.0


def _legend_below(axes: Axes, point: float) -> float:
    """Points that a legend hangs below the frame, 0 where there is none."""
    legend = axes.get_legend()
    if legend is None:
        return 0.0
    hanging = float(axes.bbox.y0 - legend.get_window_extent().y0) / point
    return hanging + EDGE if hanging > 0.0 else 0.0


def _tick_labels(axes: Axes, point: float) -> float:
    """Points from the frame to the left end of the y axis' tick labels."""
    # Out of the way, lest the name's automatic place be computed too.
    axes.yaxis.set_label_coords(1.0, 0.5)
    box = axes.yaxis.get_tightbbox()
    return TICK if box is None else max(TICK, float(axes.bbox.x0 - box.x0) / point)
