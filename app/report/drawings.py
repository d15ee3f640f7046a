"""The report's figures as self-contained SVG."""

import base64
import io
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tokensphere.pde.attention import Attention
from tokensphere.plots.canvas import blank_figure, dress, place, png, write
from tokensphere.plots.colours import BLUE, ORANGE, VERMILION
from tokensphere.plots.overlays import draw_graticule, draw_limit
from tokensphere.plots.views import Orthographic, outline, visible_pieces
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]


def svg_uri(figure: Figure) -> str:
    """The figure as a data URI."""
    buffer = io.BytesIO()
    write(figure, buffer, format="svg", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def png_uri(picture: Figure | Path) -> str:
    """A figure, or the file it was saved to, as a data URI of pixels, for pictures with many cells."""
    content = picture.read_bytes() if isinstance(picture, Path) else png(picture)
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")


def spectrum_figure(attention: Attention, projection: Projection | None) -> Figure:
    """Eigenvalues of M = VBᵀ and of V in the complex plane, and beside them Π drawn as paths from x to Π(x)."""
    drawn = projection is not None and projection.gap > 0
    figure = blank_figure(7.6 if drawn else 4.4, 3.8)
    eigenvalue_plot(attention, projection, place(figure, 0.75, 0.55, 3.3, 2.9))
    if projection is not None and drawn:
        draw_projection(projection, place(figure, 4.35, 0.45, 3.1, 3.1))
    return figure


def eigenvalue_plot(attention: Attention, projection: Projection | None, axes: Axes) -> Axes:
    """Eigenvalues of M (circles; those of E filled) and V (crosses); the gap γ marked."""
    of_m, of_v = np.linalg.eigvals(attention.M), np.linalg.eigvals(attention.value)
    top = -np.inf if projection is None else projection.eigenvalues[0].value
    tolerance = 1e-6 * max(1.0, float(np.abs(of_m).max()))
    dominant = np.abs(of_m - top) <= tolerance
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.axvline(0.0, color="0.6", linewidth=0.8)
    axes.plot(
        of_m[~dominant].real, of_m[~dominant].imag, "o", color=BLUE, markersize=10, fillstyle="none", label="M = VBᵀ"
    )
    axes.plot(of_m[dominant].real, of_m[dominant].imag, "o", color=BLUE, markersize=10, label="M on E")
    axes.plot(of_v.real, of_v.imag, "x", color=VERMILION, markersize=8, markeredgewidth=2.0, label="V")
    reach = 1.25 * max(float(np.abs(np.concatenate([of_m, of_v])).max()), 1e-3)
    axes.set(xlim=(-reach, reach), ylim=(-0.75 * reach, 0.75 * reach))
    if projection is not None and projection.gap > 0:
        second, level = projection.eigenvalues[1].value, -0.18 * reach
        axes.annotate("", (top, level), (second, level), arrowprops={"arrowstyle": "<->", "color": "0.2"})
        axes.text((top + second) / 2, 1.25 * level, f"γ = {projection.gap:.4g}", ha="center", va="top", fontsize=9)
    axes.legend(fontsize=8, frameon=False, ncols=3, loc="upper left")
    return dress(axes, "Eigenvalues", "real part", "imaginary part")


def draw_projection(projection: Projection, axes: Axes) -> Axes:
    """E∩S and the shortest paths from points x to Π(x), each with a dot at its end."""
    turns = np.linspace(0.0, 1.0, 16)[:, None]
    if projection.dimension == 2:
        angle = np.linspace(0.0, 2.0 * np.pi, 361)
        axes.plot(np.cos(angle), np.sin(angle), color="0.5", linewidth=1.0)
        starts = np.stack([np.cos(angle[5::18]), np.sin(angle[5::18])], axis=1)
        for k, (x, end) in enumerate(zip(starts, projection.project(starts), strict=True)):
            path = _arc(x, end, turns) * (1.06 + 0.03 * (k % 4))
            axes.plot(*path.T, color=BLUE, linewidth=0.9)
            axes.plot(*path[0], ".", color=BLUE, markersize=5)
        for sign in (1.0, -1.0):
            axes.plot(*(sign * projection.basis[:, :1]), "o", color=ORANGE, markeredgecolor="black", markersize=9)
            x, y = 0.84 * sign * projection.basis[:, 0]
            axes.text(float(x), float(y), "+e" if sign > 0 else "−e", ha="center", va="center")
        axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    else:
        view = Orthographic((1.0, 0.6, 0.5))
        axes.fill(*outline(view).T, facecolor="#44525c", edgecolor="0.25")
        draw_graticule(axes, view)
        starts = np.random.default_rng(7).normal(size=(90, 3))
        starts /= np.linalg.norm(starts, axis=1, keepdims=True)
        arcs = [_arc(x, end, turns) for x, end in zip(starts, projection.project(starts), strict=True)]
        paths = [piece for arc in arcs for piece in visible_pieces(view, arc)]
        axes.add_collection(LineCollection(paths, colors="#8fd0ff", linewidths=0.8), autolim=False)
        flat_x, flat_y, seen = view.flatten(starts)
        axes.plot(flat_x[seen], flat_y[seen], ".", color="#8fd0ff", markersize=4)
        draw_limit(axes, view, projection.basis)
        axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03))
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title("Π takes each x (dot) along its path to E∩S", fontsize=11, loc="left", y=1.0)
    return axes


def _arc(start: Array, end: Array, turns: Array) -> Array:
    """Points along the great circle from start to end."""
    chord = (1.0 - turns) * start + turns * end
    return np.asarray(chord / np.linalg.norm(chord, axis=1, keepdims=True))
