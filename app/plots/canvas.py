"""Figures without pyplot: each is its own object on an Agg canvas, so nothing depends on or changes global state."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from tokensphere.plots.colours import BLACK

DPI = 120


def new_figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure of the given size in inches, with a layout that keeps labels from being cut off."""
    figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def given_or_new(axes: Axes | None, width: float = 7.0, height: float = 4.2) -> Axes:
    """The axes given, or those of a new figure."""
    return new_figure(width, height).add_subplot() if axes is None else axes


def save(figure: Figure | Axes, path: str | Path) -> Path:
    """Write the picture (PNG, PDF or SVG by suffix) and return its path."""
    owner = figure if isinstance(figure, Figure) else figure.get_figure(root=True)
    assert isinstance(owner, Figure)
    target = Path(path)
    owner.savefig(target, dpi=DPI, facecolor="white")
    return target


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """The picture as (rows, columns, 3) colours."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[..., :3]


def dress(axes: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """Labels, light grid and no needless frame."""
    axes.set_title(title, fontsize=11, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="0.88", linewidth=0.7)
    axes.set_axisbelow(True)
    if axes.get_yscale() == "log" and np.ptp(np.log10(axes.get_ylim())) > 3.0:
        axes.yaxis.set_minor_locator(NullLocator())
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def mark_phases(axes: Axes, phases: Sequence[tuple[str, float, float]]) -> None:
    """Shade time intervals (name, start, end) alternately and write their names along the top."""
    for index, (name, start, end) in enumerate(phases):
        axes.axvspan(start, end, color=BLACK, alpha=0.03 + 0.05 * (index % 2), linewidth=0)
        axes.text(
            (start + end) / 2,
            0.985,
            name,
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=8,
            color="0.3",
        )


def record_column(records: Mapping[str, Sequence[float] | np.ndarray], name: str) -> np.ndarray | None:
    """A column of the records as floats, or None where it is absent or holds no finite number."""
    if name not in records:
        return None
    values = np.asarray(records[name], dtype=float)
    return values if np.isfinite(values).any() else None
