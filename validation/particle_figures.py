"""Figures of particle runs; each draws on the axes given or on new ones, and returns them."""

from typing import TYPE_CHECKING

import numpy as np

from tokensphere.validation.chaos import ExitTimes, Ladder
from tokensphere.validation.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_comparison(comparison: Comparison, axes: "Axes | None" = None) -> "Axes":
    """Coordinates of the mean, tokens (dots) against the density (lines with 95 % bands), and where they disagree."""
    axes = axes or _new_axes()
    times = np.array([row.time for row in comparison.rows])
    for k, name in zip(range(len(comparison.rows[0].mean)), "xyz", strict=False):
        expected = np.array([row.mean_expected[k] for row in comparison.rows])
        band = np.array([row.mean_interval[k] for row in comparison.rows])
        (line,) = axes.plot(times, expected, label=f"mean {name}")
        axes.fill_between(times, expected - band, expected + band, alpha=0.2, color=line.get_color())
        axes.plot(times, [row.mean[k] for row in comparison.rows], "o", color=line.get_color())
    for row in comparison.rows:
        if row.verdict == "inconsistent":
            axes.axvline(row.time, color="0.6", linestyle=":")
    axes.set(xlabel="time", ylabel="mean", title=f"{comparison.tokens} tokens: {comparison.verdict}")
    axes.legend()
    return axes


def plot_ladder(ladder: Ladder, axes: "Axes | None" = None) -> "Axes":
    """Error of n tokens against n, with the fit scale²/n + floor² and the crossover."""
    axes = axes or _new_axes()
    axes.loglog(np.repeat(ladder.counts, ladder.errors.shape[1]), ladder.errors.ravel(), ".", color="0.7")
    axes.loglog(ladder.counts, ladder.rms, "o", label=f"rms, slope {ladder.exponent:.2f}")
    line = np.geomspace(ladder.counts[0], ladder.counts[-1], 100)
    axes.loglog(line, np.sqrt(ladder.scale**2 / line + ladder.floor**2), "-", label="fit")
    if ladder.counts[0] < ladder.crossover < ladder.counts[-1]:
        axes.axvline(ladder.crossover, linestyle=":", color="0.5", label="crossover to discretisation")
    axes.set(xlabel="tokens", ylabel="root of the energy distance")
    axes.legend()
    return axes


def plot_exit_times(ladders: "ExitTimes | list[ExitTimes]", axes: "Axes | None" = None) -> "Axes":
    """Exit times against n on a logarithmic axis, for one β or several, with the density's times as lines."""
    axes = axes or _new_axes()
    for ladder in [ladders] if isinstance(ladders, ExitTimes) else ladders:
        points = np.repeat(ladder.counts, ladder.times.shape[1])
        name = f"{'circle' if ladder.dimension == 2 else 'sphere'}, β = {ladder.beta:g}"
        (dots,) = axes.semilogx(points, ladder.times.ravel(), ".", label=name)
        axes.semilogx(ladder.counts, ladder.median, "-", color=dots.get_color())
        if np.isfinite(ladder.density):
            axes.axhline(ladder.density, linestyle="--", color=dots.get_color())
    axes.set(xlabel="tokens", ylabel="exit time (dashed: the density's)")
    axes.legend()
    return axes


def _new_axes() -> "Axes":
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()
