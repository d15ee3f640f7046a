"""Which figures a run gets, and their writing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from tokensphere.decay import fit_decay
from tokensphere.meshes.mesh import Mesh
from tokensphere.plots.canvas import column_figure, new_figure, record_column, save
from tokensphere.plots.circle import circle_density, circle_figure
from tokensphere.plots.colours import colour_scale
from tokensphere.plots.curves import (
    Phase,
    energy_curve,
    mass_defect,
    mean_vector,
    minimum_density,
    wasserstein_curve,
)
from tokensphere.plots.pages import map_grid, sphere_figure, time_series_figure
from tokensphere.plots.sphere import density_map, scale_words

Array = NDArray[np.float64]
Records = Mapping[str, Array]


def write_run_figures(
    mesh: Mesh,
    times: ArrayLike,
    densities: ArrayLike,
    records: Mapping[str, ArrayLike],
    folder: str | Path,
    *,
    limit_basis: ArrayLike | None = None,
    label_weights: ArrayLike | None = None,
    label_points: ArrayLike | None = None,
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    phases: Sequence[Phase] = (),
    metric: str = "chordal",
    title: str = "",
) -> list[Path]:
    """Write the figures of a run into ``folder`` (made if absent) and return their paths.

    ``densities`` is (saves, cells), or (saves, labels, cells) with ``label_weights`` (labels,): then the maps show the
    content marginal and one figure the slices at the end. ``records`` has one row per step (see Solution). Columns that
    are absent or without a finite number get no figure. ``limit_basis`` (d,k) is the basis of E where it is known.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    when, what = np.asarray(times, dtype=float), np.asarray(densities, dtype=float)
    columns = {name: np.asarray(values, dtype=float) for name, values in records.items()}
    slices = what[-1] if what.ndim == 3 else None
    if what.ndim == 3:
        weights = np.full(what.shape[1], 1.0 / what.shape[1]) if label_weights is None else np.asarray(label_weights)
        what = np.einsum("l,slc->sc", weights, what)
    figures = density_figures(mesh, when, what, limit_basis, title)
    figures |= curve_figures(columns, mesh.dimension, predictions, phases, metric)
    if slices is not None:
        figures["slices.png"] = slices_figure(mesh, slices, label_points, _joined(title, when[-1]))
    return [save(figure, target / name) for name, figure in figures.items()]


def _joined(title: str, time: float) -> str:
    return ", ".join(part for part in (title, f"t = {time:.4g}") if part)


def chosen_saves(count: int, wanted: int = 6) -> list[int]:
    """Indices of at most ``wanted`` saves, evenly spread, first and last included."""
    return sorted({round(float(index)) for index in np.linspace(0, count - 1, min(wanted, count))})


def density_figures(
    mesh: Mesh, times: Array, densities: Array, limit_basis: ArrayLike | None, title: str
) -> dict[str, Figure]:
    """Overview of at most six times, and on the sphere one page for the first, middle and last of them."""
    picks = chosen_saves(len(times))
    when, what = [float(times[k]) for k in picks], [densities[k] for k in picks]
    if mesh.dimension == 2:
        return {"density.png": circle_figure(mesh, when, what, limit_basis=limit_basis, title=title)}
    scale = colour_scale(densities[picks])
    figures = {"density.png": time_series_figure(mesh, when, what, title=title, scale=scale, limit_basis=limit_basis)}
    for k in sorted({picks[0], picks[len(picks) // 2], picks[-1]}):
        figures[f"density-{k:04d}.png"] = sphere_figure(
            mesh,
            densities[k],
            title=_joined(title, times[k]),
            scale=scale,
            scale_note="the same scale in all density figures of this run",
            limit_basis=limit_basis,
        )
    return figures


def curve_figures(
    records: Records,
    dimension: int,
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    phases: Sequence[Phase] = (),
    metric: str = "chordal",
) -> dict[str, Figure]:
    """Distance to the limit; least density and mass defect; energy and mean direction, as far as they are recorded."""
    if "time" not in records:
        return {}
    time = records["time"]
    figures: dict[str, Figure] = {}
    distance, floor = record_column(records, "w2_to_limit"), record_column(records, "w2_floor")
    if distance is not None:
        page, (panel,) = column_figure(1, 7.2, 4.4)
        figures["wasserstein.png"] = page
        fit = fit_decay(time, distance, 0.0 if floor is None else floor)
        wasserstein_curve(time, distance, floor, panel, fit=fit, predictions=predictions, phases=phases, metric=metric)
    least, mass = record_column(records, "density_min"), record_column(records, "mass")
    if least is not None and mass is not None:
        page, (upper, lower) = column_figure(2, 7.2, 6.2)
        figures["minimum_and_mass.png"] = page
        minimum_density(time, least, upper, unit="per steradian" if dimension == 3 else "per radian")
        mass_defect(time, mass, lower)
    names = [name for name in ("mean_x", "mean_y", "mean_z") if record_column(records, name) is not None]
    energy = record_column(records, "energy")
    if energy is not None or names:
        rows = (energy is not None) + bool(names)
        page, panels = column_figure(rows, 7.2, 0.2 + 3.0 * rows)
        figures["energy_and_mean.png"] = page
        if energy is not None:
            energy_curve(time, energy, panels[0])
        if names:
            mean_vector(time, {f"x{'₁₂₃'['xyz'.index(name[-1])]}": records[name] for name in names}, panels[-1])
    return figures


def slices_figure(mesh: Mesh, slices: Array, label_points: ArrayLike | None, title: str) -> Figure:
    """Up to six conditional densities (labels, cells) of a joint law, on one scale."""
    picks = chosen_saves(len(slices))
    names = [f"label {k}" if label_points is None else f"ξ = {np.ravel(label_points)[k]:.3g}" for k in picks]
    if mesh.dimension == 2:
        page = new_figure(7.2, 2.2 * len(picks))
        panels = page.subplots(len(picks), 1, sharex=True, squeeze=False).ravel()
        for panel, k, name in zip(panels, picks, names, strict=True):
            circle_density(mesh, [0.0], [slices[k]], panel, title=name)
        page.suptitle(title, fontsize=11)
        return page
    scale = colour_scale(slices[picks])
    words = scale_words(scale, slices[picks].ravel()).replace("of the sphere is", "of all cells are")
    label = words + "; conditional density, each slice integrates to 1"
    page, maps = map_grid(len(picks), min(3, len(picks)), title, scale, label)
    for where, k, name in zip(maps, picks, names, strict=True):
        density_map(mesh, slices[k], axes=where, scale=scale, width=540)
        where.set_title(name, fontsize=10, y=1.0)
    return page
