"""Figures without pyplot: each is its own object on an Agg canvas, so nothing depends on or changes global state."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import NDArray
from PIL import Image

from tokensphere.plots.colours import BLACK
from tokensphere.plots.column import Column
from tokensphere.plots.decades import plain_decades

DPI = 120


def new_figure(width: float = 7.0, height: float = 4.2) -> Figure:
    """An empty figure of the given size in inches, with a layout that keeps labels from being cut off."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def column_figure(panels: int, width: float = 7.2, height: float = 4.4) -> tuple[Figure, list[Axes]]:
    """A figure of curves, one below the other, and its axes from top to bottom.

    Its layout measures only what varies and takes a small part of the time of the general one.
    """
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=Column())
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(panels, 1, 1 + row) for row in range(panels)]


def blank_figure(width: float, height: float) -> Figure:
    """An empty figure whose axes are placed by hand, see ``place``."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def place(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """New axes of a blank figure, in inches from its lower left corner."""
    across, up = figure.get_size_inches()
    return figure.add_axes((left / across, bottom / up, width / across, height / up))


def given_or_new(axes: Axes | None, width: float = 7.0, height: float = 4.2) -> Axes:
    """The axes given, or those of a new figure."""
    return new_figure(width, height).add_subplot() if axes is None else axes


def figure_of(axes: Axes) -> Figure:
    """The whole figure that axes stand in."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def points_below(axes: Axes, points: float) -> Transform:
    """Coordinates of the axes, from 0 to 1, moved down by so many points."""
    return axes.transAxes + ScaledTranslation(0.0, -points / 72.0, figure_of(axes).dpi_scale_trans)


def save(figure: Figure | Axes, path: str | Path) -> Path:
    """Write the picture (PNG, PDF or SVG by suffix) and return its path."""
    owner = figure if isinstance(figure, Figure) else figure_of(figure)
    target = Path(path)
    if target.suffix == ".png":
        target.write_bytes(png(owner))
    else:
        write(owner, target)
    return target


def png(figure: Figure) -> bytes:
    """The picture as a PNG file, opaque: without the fourth channel it is smaller and sooner packed."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(figure)).save(buffer, "png", dpi=(figure.dpi, figure.dpi))
    return buffer.getvalue()


def write(figure: Figure, target: Path | BinaryIO, **options: Any) -> None:
    """Figure.savefig with the layout done once; while saving with a layout engine matplotlib draws all things twice."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    figure.savefig(target, facecolor="white", **options)
    if engine is not None:
        figure.set_layout_engine(engine)


def pixels(figure: Figure) -> NDArray[np.uint8]:
    """The picture as (rows, columns, 3) colours."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[..., :3]


def dress(axes: Axes, title: str = "", x: str = "", y: str = "") -> Axes:
    """Labels, light grid and no needless frame."""
    # Where no power of ten is taken out of the labels and put there, the title need not look for a free place.
    axes.set_title(title, fontsize=11, loc="left", y=1.0 if axes.get_yscale() == "log" else None)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", color="0.88", linewidth=0.7)
    axes.set_axisbelow(True)
    plain_decades(axes)
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
