"""Curves of a run against time: distance to the limit, minimum density, mass defect, energy."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from tokensphere.decay import Decay
from tokensphere.plots.canvas import dress, given_or_new, mark_phases, points_below
from tokensphere.plots.colours import BLUE, CYCLE, GREEN, ORANGE, VERMILION

Phase = tuple[str, float, float]


def wasserstein_curve(
    times: ArrayLike,
    distances: ArrayLike,
    floor: ArrayLike | None = None,
    axes: Axes | None = None,
    *,
    fit: Decay | None = None,
    predictions: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    phases: Sequence[Phase] = (),
    metric: str = "chordal",
    title: str = "Distance to the predicted limit",
) -> Axes:
    """W2(ρ_t, Π♯ρ0) against time on a logarithmic axis, with the mesh's floor, the fit and predictions."""
    where = given_or_new(axes)
    time, value = np.asarray(times, dtype=float), np.asarray(distances, dtype=float)
    shown = np.isfinite(value) & (value > 0.0)
    where.semilogy(time[shown], value[shown], color=BLUE, linewidth=2.5, label="measured", zorder=3)
    for index, (name, (when, what)) in enumerate((predictions or {}).items()):
        where.semilogy(when, what, ":", color=CYCLE[(index + 2) % len(CYCLE)], linewidth=1.5, label=name)
    if fit is not None:
        stretch = np.array([fit.start, fit.end])
        label = f"fit: rate {fit.rate:.3f} on t = {fit.start:.2g} … {fit.end:.2g}"
        where.semilogy(stretch, fit(stretch), "--", color=VERMILION, linewidth=1.5, label=label, zorder=4)
    if floor is not None:
        base = np.broadcast_to(np.asarray(floor, dtype=float), time.shape)
        known = np.isfinite(base) & (base > 0.0)
        if known.any():
            where.fill_between(
                time[known], base[known], 1e-300, color="0.8", linewidth=0, label="below the floor of the mesh"
            )
            lowest = np.append(value[shown], base[known]).min()
            where.set_ylim(bottom=0.5 * lowest)
    if shown.any():
        where.set_ylim(top=3.0 * value[shown].max())
    mark_phases(where, phases)
    beneath = points_below(where, 32.0)
    where.legend(
        fontsize=8, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=beneath
    )
    return dress(where, title, "time t", f"W₂(ρₜ, Π♯ρ₀), {metric}")


def minimum_density(
    times: ArrayLike,
    minima: ArrayLike,
    axes: Axes | None = None,
    *,
    bound: tuple[ArrayLike, ArrayLike] | None = None,
    unit: str = "per steradian",
) -> Axes:
    """Least density over the cells against time, with a lower ``bound`` (times, values) dotted.

    A value of exactly 0 is marked at the bottom, not left out.
    """
    where = given_or_new(axes)
    time, value = np.asarray(times, dtype=float), np.asarray(minima, dtype=float)
    positive = value > 0.0
    where.semilogy(time[positive], value[positive], color=GREEN, linewidth=2.0)
    if bound is not None:
        where.semilogy(*bound, ":", color=BLUE, linewidth=1.3, label="lower bound min ρ₀·e^(−∫ max div v)")
        where.legend(fontsize=8, frameon=False)
    empty = np.isfinite(value) & ~positive
    if empty.any():
        where.plot(
            time[empty],
            np.full(empty.sum(), 0.01),
            "v",
            color=VERMILION,
            transform=where.get_xaxis_transform(),
            label=f"zero or negative at {int(empty.sum())} steps",
        )
        where.legend(fontsize=8, frameon=False)
    return dress(where, "Least density of any cell", "time t", f"min ρ, probability {unit}")


def mass_defect(times: ArrayLike, masses: ArrayLike, axes: Axes | None = None) -> Axes:
    """|mass − 1| against time on a logarithmic axis that starts at double precision; exact values are drawn there."""
    where = given_or_new(axes)
    precision = float(np.finfo(float).eps)
    defect = np.maximum(np.abs(np.asarray(masses, dtype=float) - 1.0), precision)
    where.semilogy(np.asarray(times, dtype=float), defect, color=ORANGE, linewidth=1.2)
    where.axhline(precision, color="0.5", linestyle=":", linewidth=1.0, label="double precision, 2.2e−16")
    where.set_ylim(1e-16, max(1e-13, 10.0 * float(defect.max())))
    where.legend(fontsize=8, frameon=False, loc="upper left")
    return dress(where, "Mass defect", "time t", "|total mass − 1|")


def energy_curve(times: ArrayLike, energies: ArrayLike, axes: Axes | None = None) -> Axes:
    """Interaction energy E = (1/2β)∬e^{β⟨x,By⟩}dρdρ against time; logarithmic when it spans more than two decades."""
    where = given_or_new(axes)
    time, value = np.asarray(times, dtype=float), np.asarray(energies, dtype=float)
    shown = np.isfinite(value)
    where.plot(time[shown], value[shown], color=BLUE, linewidth=2.0)
    if shown.any() and value[shown].min() > 0.0 and value[shown].max() > 100.0 * value[shown].min():
        where.set_yscale("log")
    return dress(where, "Interaction energy", "time t", "energy E")


def mean_vector(times: ArrayLike, components: Mapping[str, ArrayLike], axes: Axes | None = None) -> Axes:
    """Components and length of the mean ∫x dρ against time: length 1 means one cluster."""
    where = given_or_new(axes)
    time = np.asarray(times, dtype=float)
    total = np.zeros_like(time)
    for (name, values), colour in zip(components.items(), CYCLE[1:], strict=False):
        column = np.asarray(values, dtype=float)
        total += column**2
        where.plot(time, column, color=colour, linewidth=1.2, label=name)
    where.plot(time, np.sqrt(total), color=CYCLE[0], linewidth=2.0, label="length")
    where.set_ylim(-1.05, 1.05)
    where.legend(fontsize=8, frameon=False, ncols=4, loc="lower left")
    return dress(where, "Mean direction", "time t", "mean of x")


def terminal_curve(
    times: ArrayLike, distances: Mapping[str, ArrayLike], axes: Axes | None = None, *, phases: Sequence[Phase] = ()
) -> Axes:
    """Mean distances to several candidate limits (name → values) against time: which one the law ends on."""
    where = given_or_new(axes)
    for (name, values), colour in zip(distances.items(), CYCLE, strict=False):
        where.semilogy(np.asarray(times, dtype=float), np.asarray(values, dtype=float), color=colour, label=name)
    mark_phases(where, phases)
    where.legend(fontsize=8, frameon=False)
    return dress(where, "Where the law ends", "time t", "distance")


def step_sizes(times: ArrayLike, steps: ArrayLike, axes: Axes | None = None) -> Axes:
    """Accepted step sizes against time."""
    where = given_or_new(axes)
    size = np.asarray(steps, dtype=float)
    shown = size > 0.0
    where.semilogy(np.asarray(times, dtype=float)[shown], size[shown], ".", color=BLUE, markersize=2)
    return dress(where, "Time step", "time t", "dt")


def lipschitz_curve(
    times: ArrayLike, constants: ArrayLike, axes: Axes | None = None, *, unit: str = "per steradian"
) -> Axes:
    """Largest difference quotient of the density against time, at the saves."""
    where = given_or_new(axes)
    value = np.asarray(constants, dtype=float)
    shown = value > 0.0
    where.semilogy(np.asarray(times, dtype=float)[shown], value[shown], ".-", color=BLUE, linewidth=1.5)
    return dress(where, "Lipschitz constant seen on the mesh", "time t", f"{unit} per radian")


def spread_curve(times: ArrayLike, spreads: Mapping[str, ArrayLike], axes: Axes | None = None) -> Axes:
    """Spreads 1 − |∫x dμ_ξ| of a joint law's slices (name → values) against time, logarithmic."""
    where = given_or_new(axes)
    for (name, values), colour in zip(spreads.items(), CYCLE, strict=False):
        column = np.asarray(values, dtype=float)
        shown = column > 0.0
        where.semilogy(np.asarray(times, dtype=float)[shown], column[shown], color=colour, linewidth=1.8, label=name)
    where.legend(fontsize=8, frameon=False)
    return dress(where, "Spread of the slices", "time t", "1 − |∫x dμ_ξ|")


def moment_curve(times: ArrayLike, eigenvalues: Sequence[ArrayLike], axes: Axes | None = None) -> Axes:
    """Eigenvalues of the second moment ∫x xᵀ against time, ascending; they sum to 1."""
    where = given_or_new(axes)
    for index, (values, colour) in enumerate(zip(eigenvalues, CYCLE, strict=False)):
        where.plot(
            np.asarray(times, dtype=float), np.asarray(values, dtype=float), color=colour, label=f"λ{'₁₂₃'[index]}"
        )
    where.set_ylim(-0.03, 1.03)
    where.legend(fontsize=8, frameon=False, ncols=3)
    return dress(where, "Shape of the content", "time t", "eigenvalues of ∫x xᵀ")
