"""Diagrams over two parameters, lifetimes against β, and curves of maximisers on the sphere."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, Normalize
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from tokensphere.meshes.errors import InputError
from tokensphere.plots.canvas import dress, given_or_new
from tokensphere.plots.colours import CYCLE, DENSITY_MAP, LABEL_MAP
from tokensphere.plots.overlays import draw_graticule
from tokensphere.plots.views import Orthographic, View, outline

# Light enough for black symbols, told apart by lightness as well as by hue; symbols repeat the message in grey print.
_FILLS = ("#E8F1FA", "#F7C873", "#79B8E0", "#C44E30", "#7FBF9E", "#9A6A9E", "#555555")
_SYMBOLS = ("·", "○", "+", "×", "△", "□", "*")


def phase_map(
    x: ArrayLike,
    y: ArrayLike,
    phases: ArrayLike,
    names: Sequence[str],
    axes: Axes | None = None,
    *,
    x_label: str = "",
    y_label: str = "",
    title: str = "",
) -> Axes:
    """Phases (len(y), len(x)), indices into ``names``, as coloured boxes with a symbol in each; −1 is left white."""
    where = given_or_new(axes)
    index = np.asarray(phases, dtype=int)
    columns, rows = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if index.shape != (rows.size, columns.size) or index.max(initial=-1) >= len(names) or len(names) > len(_FILLS):
        raise InputError(
            f"Phases of shape {index.shape} do not fit {rows.size} rows, {columns.size} columns, {len(names)} names; "
            f"give one index per (y, x) pair into at most {len(_FILLS)} names."
        )
    shades = ListedColormap(_FILLS[: len(names)])
    norm = BoundaryNorm(np.arange(len(names) + 1) - 0.5, len(names))
    boxes = np.ma.masked_less(index, 0)
    where.pcolormesh(_edges(columns), _edges(rows), boxes, cmap=shades, norm=norm, edgecolors="white", linewidth=0.5)
    for row, height in enumerate(rows):
        for column, position in enumerate(columns):
            if index[row, column] >= 0:
                where.text(position, height, _SYMBOLS[index[row, column]], ha="center", va="center", fontsize=9)
    if columns.min() > 0.0 and columns.size > 2 and columns.max() > 20.0 * columns.min():
        where.set_xscale("log")
    handles = [
        Patch(facecolor=fill, edgecolor="0.4", label=f"{symbol}  {name}")
        for fill, symbol, name in zip(_FILLS, _SYMBOLS, names, strict=False)
    ]
    where.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=8, frameon=False)
    dress(where, title, x_label, y_label).grid(False)
    return where


def _edges(centres: np.ndarray) -> np.ndarray:
    """Box edges between increasing centres: geometric means where the values span decades, else midpoints."""
    if centres.size == 1:
        return np.array([centres[0] - 0.5, centres[0] + 0.5])
    log = centres.min() > 0.0 and centres.size > 2 and centres.max() > 20.0 * centres.min()
    values = np.log(centres) if log else centres
    inner = (values[1:] + values[:-1]) / 2.0
    edges = np.concatenate([[2.0 * values[0] - inner[0]], inner, [2.0 * values[-1] - inner[-1]]])
    return np.asarray(np.exp(edges) if log else edges)


def against_beta(
    betas: ArrayLike,
    series: Mapping[str, ArrayLike],
    axes: Axes | None = None,
    *,
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    y_label: str = "",
    title: str = "",
    log_y: bool = True,
) -> Axes:
    """Measured values against β (logarithmic) as symbols, with theory curves ``lines`` (name → (β, value)) dashed."""
    where = given_or_new(axes)
    markers = "os^Dv"
    for index, (name, values) in enumerate(series.items()):
        colour, marker = CYCLE[index % len(CYCLE)], markers[index % len(markers)]
        where.plot(betas, values, marker, color=colour, markersize=6, label=name)
    for index, (name, (when, what)) in enumerate((lines or {}).items()):
        where.plot(when, what, "--", color=CYCLE[index % len(CYCLE)], linewidth=1.3, label=name)
    where.set_xscale("log")
    where.set_yscale("log" if log_y else "linear")
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    where.set_xticks(np.asarray(betas, dtype=float))
    where.xaxis.set_major_formatter(plain)
    where.xaxis.set_minor_formatter(NullFormatter())
    if log_y and np.ptp(np.log10(where.get_ylim())) < 2.5:
        where.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        where.yaxis.set_major_formatter(plain)
        where.yaxis.set_minor_formatter(NullFormatter())
    where.legend(fontsize=8, frameon=False)
    return dress(where, title, "inverse temperature β", y_label)


def label_curve(
    labels: ArrayLike,
    points: ArrayLike,
    view: View | None = None,
    axes: Axes | None = None,
    *,
    period: float = 2.0 * np.pi,
    cyclic: bool = True,
    title: str = "",
) -> Axes:
    """The graph ξ ↦ x(ξ) of a maximiser: unit vectors (labels,3) on an empty globe, coloured by label.

    Labels run from 0 to ``period``; ``cyclic`` gives both ends one colour. Points on the far side are small and pale.
    Without a ``view`` the globe is seen from where the points are.
    """
    chosen = view if view is not None else _facing(np.asarray(points, dtype=float))
    where = given_or_new(axes, 5.2, 5.2)
    vectors, angle = np.asarray(points, dtype=float), np.asarray(labels, dtype=float)
    x, y, visible = chosen.flatten(vectors)
    where.fill(*outline(chosen).T, facecolor="#5b6770", edgecolor="0.25")
    draw_graticule(where, chosen)
    shades, colours = Normalize(0.0, period), LABEL_MAP if cyclic else DENSITY_MAP
    for seen, size, edge, alpha in ((~visible, 16.0, 0.0, 0.6), (visible, 34.0, 0.6, 1.0)):
        where.scatter(
            x[seen],
            y[seen],
            c=angle[seen],
            cmap=colours,
            norm=shades,
            s=size,
            edgecolors="white",
            linewidths=edge,
            alpha=alpha,
            zorder=4,
        )
    where.set(aspect="equal", xlim=(-1.03 * chosen.half_width, 1.03 * chosen.half_width))
    where.set_axis_off()
    where.set_title(title, fontsize=11, loc="left")
    paint = ScalarMappable(shades, colours)
    bar = where.figure.colorbar(paint, ax=where, orientation="horizontal", fraction=0.045, pad=0.03)
    bar.set_label("label ξ; small pale points lie on the far side", fontsize=8.5)
    return where


def _facing(points: np.ndarray) -> Orthographic:
    """A view from the side of the points' mean, from a little above; the usual one where they have none."""
    mean = points.mean(axis=0)
    if np.linalg.norm(mean) < 0.2:
        return Orthographic((1.0, 0.6, 0.6))
    seen = mean / np.linalg.norm(mean) + np.array([0.0, 0.0, 0.25])
    return Orthographic((float(seen[0]), float(seen[1]), float(seen[2])))
