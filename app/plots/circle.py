"""Densities on the circle against the angle."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import dress, given_or_new, new_figure
from tokensphere.plots.colours import BLACK, time_colours


def circle_density(
    mesh: Mesh,
    times: Sequence[float],
    densities: Sequence[ArrayLike],
    axes: Axes | None = None,
    *,
    log: bool = False,
    decades: float = 12.0,
    limit_basis: ArrayLike | None = None,
    title: str = "",
) -> Axes:
    """Cell averages per radian against the angle, as steps, one curve per time from dark to light.

    With ``log`` the axis ends ``decades`` below the largest value, and the title says so. ``limit_basis`` (2,1)
    marks ±e.
    """
    if mesh.dimension != 2:
        raise InputError(f"Density against angle needs a circle mesh, not one of kind {mesh.kind!r}; use density_map.")
    where = given_or_new(axes)
    basis = None if limit_basis is None else np.asarray(limit_basis, dtype=float).reshape(2, -1)
    axis = basis[:, 0] if basis is not None and basis.shape[1] == 1 else None
    first = 0 if axis is None else _first_cell(mesh, axis)
    edges = 360.0 / mesh.cells * (first + np.arange(mesh.cells + 1))
    values = [np.roll(np.asarray(density, dtype=float), -first) for density in densities]
    for time, value, colour in zip(times, values, time_colours(len(values)), strict=True):
        where.stairs(value, edges, color=colour, linewidth=1.4, label=f"t = {time:.4g}", baseline=None)
    top = max(float(value.max()) for value in values)
    if log:
        low = min(float(value[value > 0.0].min(initial=top)) for value in values)
        bottom = max(low, top * 10.0**-decades)
        where.set_yscale("log")
        where.set_ylim(0.5 * bottom, 3.0 * top)
        if low < bottom:
            title += f" (cut at {bottom:.0e}; the least value is {low:.0e})"
    else:
        where.set_ylim(0.0, 1.08 * top)
    if axis is not None:
        _mark_axis(where, axis, float(edges[0]))
    where.set_xlim(edges[0], edges[-1])
    where.set_xticks([angle for angle in range(-360, 721, 45) if edges[0] <= angle <= edges[-1]])
    where.xaxis.set_major_formatter(lambda angle, _: f"{round(angle) % 360}°")
    return dress(where, title, "angle from x₁ towards x₂", "probability per radian")


def _first_cell(mesh: Mesh, axis: NDArray[np.float64]) -> int:
    """The cell to begin with so that +e stands at a quarter and −e at three quarters of the picture."""
    turn = float(np.arctan2(axis[1], axis[0]) / (2.0 * np.pi)) - 0.25
    return round(turn * mesh.cells)


def _mark_axis(axes: Axes, axis: NDArray[np.float64], start: float) -> None:
    for name, vector in (("+e", axis), ("−e", -axis)):
        angle = float((np.degrees(np.arctan2(vector[1], vector[0])) - start) % 360.0 + start)
        axes.axvline(angle, color=BLACK, linestyle=":", linewidth=1.0)
        axes.annotate(
            name,
            (angle, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(4, -2),
            textcoords="offset points",
            va="top",
        )


def circle_figure(
    mesh: Mesh,
    times: Sequence[float],
    densities: Sequence[ArrayLike],
    *,
    limit_basis: ArrayLike | None = None,
    title: str = "",
) -> Figure:
    """The densities on a linear and on a logarithmic axis, with one legend of times."""
    figure = new_figure(7.2, 7.0)
    upper, lower = figure.subplots(2, 1)
    circle_density(mesh, times, densities, upper, limit_basis=limit_basis, title="linear")
    circle_density(mesh, times, densities, lower, log=True, limit_basis=limit_basis, title="logarithmic")
    upper.set_xlabel("")
    figure.legend(*upper.get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    figure.suptitle(title, fontsize=11)
    return figure
