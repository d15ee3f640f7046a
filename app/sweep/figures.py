"""Figures of a sweep: plateau and exit time against one parameter, and what happened over two."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tokensphere.plots.canvas import new_figure, save
from tokensphere.plots.phase_diagram import against_beta, phase_map

OUTCOMES = ("no limit", "not concentrated", "on E to the end", "left E again")


def draw_sweep(dataset: Any, folder: Path) -> list[Path]:
    """Write the figures that the data set allows and return their paths.

    One numeric parameter: plateau and exit time against it. Two: those for each value of the second one, and the phase
    diagram of the plane.
    """
    numeric = [name for name in dataset.dims if name in dataset.coords and dataset[name].dtype.kind in "fi"]
    if len(dataset.finished.dims) not in (1, 2) or len(numeric) != len(dataset.finished.dims):
        return []
    figures: dict[str, Callable[[], Figure | None]] = {
        "plateau.png": lambda: _curves(dataset, numeric, "plateau", "distance to E on the plateau", log=True),
        "exit_time.png": lambda: _curves(dataset, numeric, "exit_time", "exit time", log=False),
    }
    if len(numeric) == 2:
        figures["phases.png"] = lambda: _phases(dataset, numeric)
    drawn = {name: draw() for name, draw in figures.items()}
    folder.mkdir(parents=True, exist_ok=True)
    return [save(figure, folder / name) for name, figure in drawn.items() if figure is not None]


def _curves(dataset: Any, names: list[str], quantity: str, label: str, *, log: bool) -> Figure | None:
    """A quantity against β if it is among the parameters, else the first one; a series for each value of the other."""
    first = next((name for name in names if name.endswith("beta")), names[0])
    other = [name for name in names if name != first]
    values = dataset[quantity].where(np.isfinite(dataset[quantity]))
    x = dataset[first].values
    usable = x[np.isfinite(x) & (x > 0)]
    if not np.isfinite(values).any() or len(usable) < len(x) or len(x) < 2:
        return None
    series = {label: values.values}
    if other:
        series = {f"{other[0]} = {value:g}": values.sel({other[0]: value}).values for value in dataset[other[0]].values}
    figure = new_figure(6.4, 4.4)
    axes = against_beta(x, series, figure.add_subplot(), y_label=label, log_y=log)
    axes.set_xlabel("β" if first.endswith("beta") else first)
    return figure


def _phases(dataset: Any, names: list[str]) -> Figure | None:
    x, y = names
    if not (dataset.finished == 1).any():
        return None
    if any(len(dataset[name]) > 1 and np.any(np.diff(dataset[name].values) <= 0) for name in names):
        dataset = dataset.sortby(names)
    if not np.isfinite(dataset[x]).all() or not np.isfinite(dataset[y]).all():
        return None
    figure = new_figure(6.8, 5.0)
    phase_map(
        dataset[x].values,
        dataset[y].values,
        outcomes(dataset).transpose(y, x).values,
        OUTCOMES,
        figure.add_subplot(),
        x_label=x,
        y_label=y,
    )
    return figure


def outcomes(dataset: Any) -> Any:
    """Index into OUTCOMES for every member, −1 where it is not finished."""
    concentrated, left = np.isfinite(dataset.concentration_time), np.isfinite(dataset.exit_time)
    known = dataset.concentration_time.notnull()
    index = left.where(left, 0).astype(int)
    index = index + np.where(concentrated, 2, 1)
    return index.where(known, 0).where(dataset.finished == 1, -1).astype(int)
