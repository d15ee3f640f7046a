"""Densities on the sphere: Mollweide and orthographic maps with graticule, borders, marked axes, stated scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colorbar import make_axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import new_figure
from tokensphere.plots.colours import DENSITY_MAP, ORANGE, ColourScale, colour_scale
from tokensphere.plots.map_image import MapImage
from tokensphere.plots.overlays import draw_borders, draw_graticule, draw_limit, draw_point
from tokensphere.plots.scale_bar import draw_bar
from tokensphere.plots.views import Mollweide, View, outline, pixel_grid

Array = NDArray[np.float64]
FRONT_AND_BACK = ((1.0, 0.35, 0.45), (-1.0, -0.35, -0.45))


@dataclass(frozen=True)
class Raster:
    """Which cell each pixel shows: ``cells`` (rows, columns), −1 outside the map. Computed once, painted many times."""

    view: View
    cells: NDArray[np.int32]

    def paint(self, values: ArrayLike) -> Array:
        """Pixel values (rows, columns) of one value per cell, NaN outside the map."""
        padded = np.append(np.asarray(values, dtype=float), np.nan)
        return padded[self.cells]


@lru_cache(maxsize=4)  # the views of one run's figures
def rasterise(mesh: Mesh, view: View, width: int = 900) -> Raster:
    """Find the cell under each pixel of a picture ``width`` pixels wide."""
    if mesh.dimension != 3:
        raise InputError(
            f"A map of the sphere needs a HEALPix mesh, not one of kind {mesh.kind!r}; use circle_density."
        )
    vectors, inside = view.directions(*pixel_grid(view, width))
    cells = np.full(inside.shape, -1, dtype=np.int32)
    cells[inside] = locate(mesh, vectors[inside])
    cells.setflags(write=False)
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
    # The last colour, transparent, is that of the pixels outside the map: their cell is −1.
    colours = np.concatenate([colormaps[DENSITY_MAP](shade.fraction(values), bytes=True), np.zeros((1, 4), np.uint8)])
    image = where.add_image(MapImage(where, picture.cells, colours, half))
    edge = Polygon(outline(chosen), closed=True, fill=False, edgecolor="0.25", linewidth=1.0)
    where.add_artist(edge)
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
    where, _ = make_axes(list(axes), orientation="horizontal", fraction=0.05, pad=0.03, aspect=45)
    draw_bar(where, scale, label, "below" in label)


def view_centres(limit_basis: ArrayLike | None) -> list[tuple[float, float, float]]:
    """Two opposite directions to look from: a little beside ±e, or the default pair where E is no line."""
    if limit_basis is None or np.asarray(limit_basis).reshape(3, -1).shape[1] != 1:
        return list(FRONT_AND_BACK)
    axis = np.asarray(limit_basis, dtype=float).reshape(3)
    side = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    seen = axis + 0.35 * side / np.linalg.norm(side) + 0.35 * np.cross(axis, side / np.linalg.norm(side))
    seen = seen / np.linalg.norm(seen)
    return [tuple(float(c) for c in sign * seen) for sign in (1.0, -1.0)]  # type: ignore[misc]
