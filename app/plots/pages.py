"""Whole pages of maps of the sphere, each with one colour bar."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import blank_figure, place
from tokensphere.plots.colours import ColourScale, colour_scale
from tokensphere.plots.scale_bar import draw_bar, height_below
from tokensphere.plots.sphere import density_map, rasterise, scale_words, view_centres
from tokensphere.plots.views import Mollweide, Orthographic

BAR = 0.16  # inches
LETTERS = 14.0  # of the bar's label in an inch


def sphere_figure(
    mesh: Mesh,
    density: ArrayLike,
    *,
    title: str = "",
    scale: ColourScale | None = None,
    scale_note: str = "",
    limit_basis: ArrayLike | None = None,
    vectors: Sequence[tuple[str, ArrayLike]] = (),
    centres: Sequence[tuple[float, float, float]] | None = None,
) -> Figure:
    """A Mollweide map above two orthographic views from opposite sides, with one colour bar.

    ``centres``: the two directions looked from; by default +e and −e for a one-dimensional ``limit_basis``.
    """
    shade = scale if scale is not None else colour_scale(density)
    figure = blank_figure(7.2, 8.0)
    label = scale_words(shade, density) + (f"\n{scale_note}" if scale_note else "")
    lines = _wrapped(label, 7.2)
    _bar_below(figure, shade, lines)
    floor = height_below(len(lines)) + BAR + 0.12
    side = 3.24
    top = floor + side + 0.3
    for k, centre in enumerate(centres if centres is not None else view_centres(limit_basis)):
        view = Orthographic(centre)
        where = place(figure, 1.8 + 3.6 * k - side / 2, floor, side, side)
        density_map(mesh, density, view, where, scale=shade, limit_basis=limit_basis, vectors=vectors, width=480)
        seen_from = "seen from ({:+.2f}, {:+.2f}, {:+.2f})".format(*view.frame()[2]).replace("-", "−")
        where.set_title(seen_from, fontsize=8.5, y=1.0)
    tall = 8.0 - 0.3 - top
    where = place(figure, 3.6 - tall, top, 2.0 * tall, tall)
    density_map(mesh, density, Mollweide(), where, scale=shade, limit_basis=limit_basis, vectors=vectors)
    where.set_title(title, fontsize=11, loc="left", y=1.0)
    return figure


def time_series_figure(
    mesh: Mesh,
    times: Sequence[float],
    densities: Sequence[ArrayLike],
    *,
    title: str = "",
    scale: ColourScale | None = None,
    limit_basis: ArrayLike | None = None,
) -> Figure:
    """Mollweide maps of several times on one shared scale."""
    shade = scale if scale is not None else colour_scale(np.stack([np.asarray(rho, dtype=float) for rho in densities]))
    label = scale_words(shade, np.concatenate([np.asarray(rho, dtype=float) for rho in densities]))
    label = label.replace("of the sphere is", "of all cells are") + "; the same scale at all times"
    figure, grid = map_grid(len(times), 2 if len(times) in (2, 4) else min(3, len(times)), title, shade, label)
    raster = rasterise(mesh, Mollweide(), 540)
    for where, time, density in zip(grid, times, densities, strict=True):
        density_map(mesh, density, axes=where, scale=shade, limit_basis=limit_basis, raster=raster)
        where.set_title(f"t = {time:.4g}", fontsize=10, y=1.0)
    return figure


def map_grid(count: int, columns: int, title: str, scale: ColourScale, label: str) -> tuple[Figure, list[Axes]]:
    """Axes for Mollweide maps in rows of ``columns``, with their common title and colour bar."""
    rows = -(-count // columns)
    lines = _wrapped(label, 3.6 * columns)
    floor = height_below(len(lines)) + BAR + 0.05
    figure = blank_figure(3.6 * columns, floor + 2.1 * rows + (0.2 if title else 0.05))
    _bar_below(figure, scale, lines)
    tall = 1.66
    figure.text(0.5, 1.0 - 0.08 / figure.get_figheight(), title, fontsize=11, ha="center", va="top")
    return figure, [
        place(figure, 3.6 * (k % columns) + 0.22, floor + 2.1 * (rows - 1 - k // columns), 2 * tall, tall)
        for k in range(count)
    ]


def _wrapped(label: str, across: float) -> list[str]:
    """The label in lines that fit a page so many inches wide."""
    return [part for line in label.split("\n") for part in textwrap.wrap(line, int(LETTERS * across))]


def _bar_below(figure: Figure, scale: ColourScale, lines: Sequence[str]) -> None:
    """Draw the colour bar and its label at the foot of the figure."""
    across = figure.get_figwidth()
    where = place(figure, 0.08 * across, height_below(len(lines)), 0.88 * across, BAR)
    draw_bar(where, scale, "\n".join(lines), any("below" in line for line in lines))
