"""Densities on the sphere: Mollweide and orthographic maps with graticule, borders, marked axes, stated scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import new_figure
from tokensphere.plots.colours import DENSITY_MAP, ORANGE, ColourScale, colour_scale
from tokensphere.plots.overlays import draw_borders, draw_graticule, draw_limit, draw_point
from tokensphere.plots.views import Mollweide, Orthographic, View, outline, pixel_grid

Array = NDArray[np.float64]
FRONT_AND_BACK = ((1.0, 0.35, 0.45), (-1.0, -0.35, -0.45))


@dataclass(frozen=True)
class Raster:
    """Which cell each pixel shows: ``cells`` (rows, columns), −1 outside the map. Computed once, painted many times."""

    view: View
    cells: NDArray[np.int64]

    def paint(self, values: ArrayLike) -> Array:
        """Pixel values (rows, columns) of one value per cell, NaN outside the map."""
        padded = np.append(np.asarray(values, dtype=float), np.nan)
        return padded[self.cells]


def rasterise(mesh: Mesh, view: View, width: int = 900) -> Raster:
    """Find the cell under each pixel of a picture ``width`` pixels wide."""
    if mesh.dimension != 3:
        raise InputError(
            f"A map of the sphere needs a HEALPix mesh, not one of kind {mesh.kind!r}; use circle_density."
        )
    vectors, inside = view.directions(*pixel_grid(view, width))
    cells = np.full(inside.shape, -1, dtype=np.int64)
    cells[inside] = locate(mesh, vectors[inside])
    return Raster(view, cells)


def density_map(
    mesh: Mesh,
    density: ArrayLike,
    view: View | None = None,
    axes: Axes | None = None,
    *,
    scale: ColourScale | None = None,
    limit_basis: ArrayLike | None = None,
    vectors: Sequence[tuple[str, ArrayLike]] = (),
    borders: bool | None = None,
    graticule: bool = True,
    raster: Raster | None = None,
    width: int = 900,
) -> Axes:
    """One map of a density (cells,), per steradian, without its colour bar (see ``colour_bar``).

    ``limit_basis`` (3,k) marks E∩S: ±e for k=1, a great circle for k=2. ``vectors`` marks named directions. ``borders``
    draws the cells' edges; left at None, it does so up to nside 8. ``raster`` reuses a pixel search of the same view.
    """
    chosen = view if view is not None else Mollweide()
    where = new_figure(7.0, 4.0).add_subplot() if axes is None else axes
    values = np.asarray(density, dtype=float)
    if values.shape != (mesh.cells,):
        raise InputError(
            f"The density has shape {values.shape}; a map needs one value for each of the {mesh.cells} cells."
        )
    shade = scale if scale is not None else colour_scale(values)
    picture = raster if raster is not None else rasterise(mesh, chosen, width)
    half = (chosen.half_width, chosen.half_height)
    image = where.imshow(
        picture.paint(values),
        extent=(-half[0], half[0], -half[1], half[1]),
        origin="lower",
        cmap=DENSITY_MAP,
        norm=shade.norm(),
        interpolation="nearest",
    )
    edge = Polygon(outline(chosen), closed=True, fill=False, edgecolor="0.25", linewidth=1.0)
    where.add_patch(edge)
    image.set_clip_path(edge)
    where.set(xlim=(-1.02 * half[0], 1.02 * half[0]), ylim=(-1.02 * half[1], 1.02 * half[1]), aspect="equal")
    where.set_axis_off()
    if graticule:
        draw_graticule(where, chosen)
    if borders if borders is not None else mesh.resolution <= 8:
        draw_borders(where, chosen, mesh)
    if limit_basis is not None:
        draw_limit(where, chosen, limit_basis)
    for name, vector in vectors:
        draw_point(where, chosen, np.asarray(vector, dtype=float), name, ORANGE)
    return where


def scale_words(scale: ColourScale, density: ArrayLike, unit: str = "per steradian") -> str:
    """The colour bar's label: quantity, unit, kind of scale and what happens below its lower end."""
    words = f"probability {unit}" + (", logarithmic" if scale.log else ", linear")
    below = scale.fraction_below(density)
    if scale.log and below > 0.0:
        words += f"; {100 * below:.2g} % of the sphere is below {scale.low:.1e} and drawn at that colour"
    return words


def colour_bar(figure: Figure, axes: Sequence[Axes], scale: ColourScale, label: str) -> None:
    """A horizontal colour bar under the given maps, with an arrow where values lie below it."""
    extend = "min" if "below" in label else "neither"
    mappable = ScalarMappable(norm=scale.norm(), cmap=DENSITY_MAP)
    bar = figure.colorbar(
        mappable, ax=list(axes), orientation="horizontal", fraction=0.05, pad=0.03, aspect=45, extend=extend
    )
    bar.set_label(label, fontsize=8.5)
    bar.ax.tick_params(labelsize=8)


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
    figure = new_figure(7.2, 8.0)
    cells = figure.add_gridspec(2, 2, height_ratios=(1.0, 1.0))
    grid = [figure.add_subplot(cells[0, :]), figure.add_subplot(cells[1, 0]), figure.add_subplot(cells[1, 1])]
    sides = centres if centres is not None else view_centres(limit_basis)
    views: list[View] = [Mollweide(), *(Orthographic(side) for side in sides)]
    for where, view in zip(grid, views, strict=True):
        width = 900 if isinstance(view, Mollweide) else 480
        density_map(mesh, density, view, where, scale=shade, limit_basis=limit_basis, vectors=vectors, width=width)
        if isinstance(view, Orthographic):
            where.set_title(
                "seen from ({:+.2f}, {:+.2f}, {:+.2f})".format(*view.frame()[2]).replace("-", "−"), fontsize=8.5
            )
    grid[0].set_title(title, fontsize=11, loc="left")
    label = scale_words(shade, density)
    colour_bar(figure, grid, shade, label + (f"\n{scale_note}" if scale_note else ""))
    return figure


def view_centres(limit_basis: ArrayLike | None) -> list[tuple[float, float, float]]:
    """Two opposite directions to look from: a little beside ±e, or the default pair where E is no line."""
    if limit_basis is None or np.asarray(limit_basis).reshape(3, -1).shape[1] != 1:
        return list(FRONT_AND_BACK)
    axis = np.asarray(limit_basis, dtype=float).reshape(3)
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    seen = axis + 0.35 * side / np.linalg.norm(side) + 0.35 * np.cross(axis, side / np.linalg.norm(side))
    seen = seen / np.linalg.norm(seen)
    return [tuple(float(c) for c in sign * seen) for sign in (1.0, -1.0)]  # type: ignore[misc]


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
    columns = 2 if len(times) in (2, 4) else min(3, len(times))
    rows = -(-len(times) // columns)
    figure = new_figure(3.6 * columns, 2.1 * rows + 1.1)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    raster = rasterise(mesh, Mollweide(), 540)
    for where, time, density in zip(grid, times, densities, strict=False):
        density_map(mesh, density, axes=where, scale=shade, limit_basis=limit_basis, raster=raster)
        where.set_title(f"t = {time:.4g}", fontsize=10)
    for where in grid[len(times) :]:
        where.set_axis_off()
    figure.suptitle(title, fontsize=11)
    label = scale_words(shade, np.concatenate([np.asarray(rho, dtype=float) for rho in densities]))
    label = label.replace("of the sphere is", "of all cells are")
    colour_bar(figure, list(grid), shade, label + "; the same scale at all times")
    return figure
