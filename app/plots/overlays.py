"""What is drawn over a map of the sphere: graticule, cell borders, named directions, the limit set."""

from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.views import Mollweide, View, great_circle, visible_pieces

Array = NDArray[np.float64]


def draw_curve(axes: Axes, view: View, points: ArrayLike, colour: str, width: float, edge: str | None = None) -> None:
    """A curve of unit vectors (n,3); ``edge`` outlines it so that it stands out on any colour."""
    effects = [withStroke(linewidth=width + 2.0, foreground=edge)] if edge is not None else []
    lines = LineCollection(list(visible_pieces(view, points)), colors=colour, linewidths=width, path_effects=effects)
    axes.add_collection(lines, autolim=False)


def draw_graticule(axes: Axes, view: View, step: int = 30) -> None:
    """Meridians and parallels each ``step`` degrees; on the Mollweide map, the numbers beside them."""
    axes.add_collection(LineCollection(_graticule(view, step), colors="#ffffff66", linewidths=0.5), autolim=False)
    if isinstance(view, Mollweide):
        _number_graticule(axes, view)
    else:
        _name_axes(axes, view)


@lru_cache(maxsize=8)
def _graticule(view: View, step: int) -> list[Array]:
    fine = np.radians(np.linspace(-90.0, 90.0, 91))
    around = np.radians(np.linspace(-180.0, 180.0, 361))
    lines: list[Array] = []
    for degrees in range(-180, 180, step):
        angle = np.radians(degrees)
        meridian = np.stack([np.cos(fine) * np.cos(angle), np.cos(fine) * np.sin(angle), np.sin(fine)], axis=-1)
        lines.extend(visible_pieces(view, meridian))
    for degrees in range(-60, 61, step):
        height, radius = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
        parallel = np.stack([radius * np.cos(around), radius * np.sin(around), np.full(around.size, height)], axis=-1)
        lines.extend(visible_pieces(view, parallel))
    return lines


def signed_degrees(angle: int) -> str:
    """The angle with a true minus sign, −60°."""
    return f"{angle}°".replace("-", "−")


def _number_graticule(axes: Axes, view: Mollweide) -> None:
    for degrees in (-60, -30, 0, 30, 60):
        angle = np.radians(degrees)
        seam = view.longitude - np.pi + 1e-9
        x, y, _ = view.flatten(np.array([np.cos(angle) * np.cos(seam), np.cos(angle) * np.sin(seam), np.sin(angle)]))
        axes.text(float(x) - 0.05, float(y), signed_degrees(degrees), ha="right", va="center", fontsize=7, color="0.35")
    for degrees in (-120, -60, 0, 60, 120):
        angle = view.longitude + np.radians(degrees)
        x, y, _ = view.flatten(np.array([np.cos(angle), np.sin(angle), 0.0]))
        longitude = round(np.degrees(angle))
        label = axes.text(
            float(x), float(y) + 0.02, signed_degrees(longitude), ha="center", va="bottom", fontsize=7, color="white"
        )
        label.set_path_effects([withStroke(linewidth=1.5, foreground="#00000088")])


def _name_axes(axes: Axes, view: View) -> None:
    for index in range(3):
        for sign, prefix in ((1.0, "+"), (-1.0, "−")):
            vector = np.zeros(3)
            vector[index] = sign
            x, y, visible = view.flatten(vector)
            if visible:
                axes.plot([float(x)], [float(y)], marker="+", color="white", markersize=5, markeredgewidth=0.8)
                # Below and towards the middle: names of e and v stand above, and the limb must not cut the text.
                side = "right" if float(x) > 0.75 else "left"
                label = axes.annotate(
                    f"{prefix}x{'₁₂₃'[index]}",
                    (float(x), float(y)),
                    xytext=(-4 if side == "right" else 4, -4),
                    textcoords="offset points",
                    ha=side,
                    va="top",
                    fontsize=7,
                    color="white",
                )
                label.set_path_effects([withStroke(linewidth=1.5, foreground="#00000088")])


def draw_borders(axes: Axes, view: View, mesh: Mesh) -> None:
    """The curved edges of all cells (meant for nside ≤ 16)."""
    import healpy

    corners = healpy.boundaries(mesh.resolution, np.arange(mesh.cells), step=8, nest=True)
    loops = np.concatenate([corners, corners[..., :1]], axis=-1).transpose(0, 2, 1)
    x, y, visible = view.flatten(loops)
    x = np.where(visible, x, np.nan)
    torn = np.abs(np.diff(x, axis=1)) > 0.5 * view.half_width
    x[:, 1:][torn] = np.nan
    gap = np.full((len(x), 1), np.nan)
    # One line broken by NaN: thousands of separate ones would take seconds.
    points = np.stack([np.column_stack([x, gap]), np.column_stack([y, gap])], axis=-1).reshape(-1, 2)
    axes.add_line(Line2D(points[:, 0], points[:, 1], color="#00000055", linewidth=0.5))


def draw_point(axes: Axes, view: View, vector: Array, name: str, colour: str = "white") -> None:
    """A named direction, drawn where it is visible."""
    x, y, visible = view.flatten(vector / np.linalg.norm(vector))
    if not visible:
        return
    axes.plot([float(x)], [float(y)], "o", color=colour, markeredgecolor="black", markersize=6, zorder=5)
    label = axes.annotate(
        name, (float(x), float(y)), xytext=(6, 5), textcoords="offset points", fontsize=9, color=colour, zorder=6
    )
    label.set_path_effects([withStroke(linewidth=2.0, foreground="black")])


def draw_limit(axes: Axes, view: View, basis: ArrayLike) -> None:
    """E∩S for an orthonormal basis (3,k): the points ±e, a great circle, or nothing when E is the whole space."""
    columns = np.asarray(basis, dtype=float).reshape(3, -1)
    if columns.shape[1] == 1:
        draw_point(axes, view, columns[:, 0], "+e")
        draw_point(axes, view, -columns[:, 0], "−e")
    elif columns.shape[1] == 2:
        draw_curve(axes, view, great_circle(columns), "white", 1.2, "black")
