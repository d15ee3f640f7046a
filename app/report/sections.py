"""The sections of the report below the interactive picture; each is empty where the run has nothing for it."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokensphere.decay import fit_decay
from tokensphere.figures import chosen_saves
from tokensphere.plots.canvas import column_figure, record_column
from tokensphere.plots.circle import circle_figure
from tokensphere.plots.curves import (
    energy_curve,
    lipschitz_curve,
    mass_defect,
    mean_vector,
    minimum_density,
    moment_curve,
    spread_curve,
    wasserstein_curve,
)
from tokensphere.plots.pages import time_series_figure
from tokensphere.report.clusters import PEAK, SHARE
from tokensphere.report.drawings import png_uri, spectrum_figure, svg_uri
from tokensphere.report.loading import RunData
from tokensphere.report.markup import figure, section, table, words
from tokensphere.report.predictions import Curve
from tokensphere.report.wording import number
from tokensphere.validation.lipschitz import lipschitz_constant

Array = NDArray[np.float64]
ROWS = 800  # more points than this add nothing to a curve a page wide


def hypotheses_section(run: RunData) -> str:
    """H1, H2, H3 with verdict, number and reason."""
    rows = []
    for item in run.summary.get("hypotheses") or []:
        verdict = str(item.get("verdict"))
        mark = f'<b class="{escape(verdict)}">{escape(verdict)}</b>'
        size = f"{number(item.get('value'), 4)} (± {number(item.get('tolerance'), 2)})"
        rows.append([f"<strong>{escape(str(item.get('name')))}</strong>", mark, size, words(item.get("reason"))])
    return section(
        "hypotheses",
        "Hypotheses of the theorem",
        table(["", "verdict", "value", "why"], rows, (2,), "wide") if rows else "",
    )


def thinned(values: Array, rows: int = ROWS) -> Array:
    """At most about ``rows`` entries, the last one included."""
    step = max(1, -(-len(values) // rows))
    return np.concatenate([values[:-1:step], values[-1:]])


def distance_section(run: RunData, predictions: Mapping[str, Curve], phases: Sequence[tuple[str, float, float]]) -> str:
    """W2 with floor, fit, predictions and phases."""
    distance = record_column(run.records, "w2_to_limit")
    if distance is None:
        return ""
    time, floor = run.records["time"], record_column(run.records, "w2_floor")
    fit = fit_decay(time, distance, 0.0 if floor is None else floor)
    drawn, (panel,) = column_figure(1, 6.6, 4.6)
    wasserstein_curve(
        thinned(time),
        thinned(distance),
        None if floor is None else thinned(floor),
        panel,
        fit=fit,
        predictions=predictions,
        phases=phases,
        metric=run.config.solver.metric,
    )
    caption = (
        "Wasserstein distance between the density and the predicted limit Π♯ρ₀. The grey band is what the mesh cannot "
        "tell from 0. Dotted: predictions. Shaded: phases read off the curve."
    )
    alt = f"W2 against time falls from {distance[0]:.3g} to {np.nanmin(distance):.3g} and ends at {distance[-1]:.3g}."
    picks = np.linspace(0, len(time) - 1, min(12, len(time))).round().astype(int)
    rows = [[number(float(time[k])), number(float(distance[k]), 4)] for k in picks]
    numbers = f"<details><summary>Numbers</summary>{table(['time', 'W₂'], rows, (0, 1))}</details>"
    return section("distance", "Distance to the limit", figure(svg_uri(drawn), alt, caption) + numbers)


def regularity_section(run: RunData) -> str:
    """Least density, Lipschitz constant at the saves, mass defect."""
    least, mass = record_column(run.records, "density_min"), record_column(run.records, "mass")
    panels = (least is not None) + (mass is not None) + 1
    drawn, column = column_figure(panels, 6.6, 2.4 * panels)
    axes = iter(column)
    if least is not None:
        minimum_density(thinned(run.records["time"]), thinned(least), next(axes), bound=lower_bound(run), unit=run.unit)
    constants = lipschitz_constants(run)
    lipschitz_curve(run.times, constants, next(axes), unit=run.unit)
    if mass is not None:
        mass_defect(thinned(run.records["time"]), thinned(mass), next(axes))
    caption = (
        "The theorem needs a positive Lipschitz density at the start. Both degrade as mass concentrates; once a "
        "cluster is as narrow as a cell, the Lipschitz constant seen is the mesh's, not the density's."
    )
    alt = f"The largest difference quotient goes from {constants[0]:.3g} to {constants[-1]:.3g}."
    return section("regularity", "Least density, Lipschitz constant, mass", figure(svg_uri(drawn), alt, caption))


def lipschitz_constants(run: RunData) -> Array:
    """The largest difference quotient of each save, from the summary where it knows these saves."""
    facts = (run.summary.get("theorem") or {}).get("regularity") or {}
    if facts.get("time") == run.times.tolist() and None not in facts.get("lipschitz", [None]):
        return np.array(facts["lipschitz"], dtype=float)
    return np.array([lipschitz_constant(run.mesh, density) for density in run.marginal])


def lower_bound(run: RunData) -> tuple[Array, Array] | None:
    """Times and lower bounds of the density from the summary, where they are positive."""
    facts = (run.summary.get("theorem") or {}).get("regularity") or {}
    if not facts.get("minimum_lower_bound"):
        return None
    time, bound = np.array(facts["time"], dtype=float), np.array(facts["minimum_lower_bound"], dtype=float)
    return time[bound > 0], bound[bound > 0]


def energy_section(run: RunData) -> str:
    """Energy and mean direction where they were recorded."""
    energy = record_column(run.records, "energy")
    names = [name for name in ("mean_x", "mean_y", "mean_z") if record_column(run.records, name) is not None]
    panels = (energy is not None) + bool(names)
    if not panels:
        return ""
    time = thinned(run.records["time"])
    drawn, axes = column_figure(panels, 6.6, 2.4 * panels)
    if energy is not None:
        energy_curve(time, thinned(energy), axes[0])
    if names:
        means = {f"x{'₁₂₃'['xyz'.index(name[-1])]}": thinned(run.records[name]) for name in names}
        mean_vector(time, means, axes[-1])
    caption = "A mean of length 1 is a single cluster; two equal opposite clusters have mean 0."
    return section("energy", "Energy and mean", figure(svg_uri(drawn), "Energy and mean against time.", caption))


def order_section(run: RunData) -> str:
    """How far the labels' slices and the content of a joint law are from points and planes."""
    spread = record_column(run.records, "conditional_spread")
    if spread is None:
        return ""
    time = thinned(run.records["time"])
    names = [f"second_moment_{k}" for k in (1, 2, 3) if f"second_moment_{k}" in run.records]
    panels = 1 + bool(names)
    drawn, axes = column_figure(panels, 6.6, 2.4 * panels)
    shown = {"mean over labels": thinned(spread)}
    largest = record_column(run.records, "largest_spread")
    if largest is not None:
        shown["largest"] = thinned(largest)
    spread_curve(time, shown, axes[0])
    if names:
        moment_curve(time, [thinned(run.records[name]) for name in names], axes[-1])
    caption = (
        "1 − |∫x dμ_ξ| is 0 where the law of x at a label ξ is a single point. Eigenvalues of ∫x xᵀ of the "
        "content: one of them 1 is a point (or two opposite ones), one of them 0 is a great circle."
    )
    alt = f"The mean spread goes from {spread[0]:.3g} to {spread[-1]:.3g}."
    return section("order", "Slices and shape of the content", figure(svg_uri(drawn), alt, caption))


def spectrum_section(run: RunData) -> str:
    """Spectra of M and V with E and Π."""
    if run.attention is None:
        return ""
    uri = svg_uri(spectrum_figure(run.attention, run.projection))
    caption = (
        "M = VBᵀ with B = QᵀK rules the first phase: mass goes to the eigenspace E of its largest eigenvalue μ₁, by "
        "Π(x) = P_E x/|P_E x|. V rules the last phase."
    )
    values = ", ".join(_complex(value) for value in np.linalg.eigvals(run.attention.value))
    ofm = ", ".join(_complex(value) for value in np.linalg.eigvals(run.attention.M))
    alt = f"Eigenvalues of M: {ofm}. Eigenvalues of V: {values}."
    rows = [["M = VBᵀ", ofm], ["V", values]]
    if run.limit_basis is not None:
        columns = "; ".join("(" + ", ".join(f"{c:.4f}" for c in column) + ")" for column in run.limit_basis.T)
        rows.append([f"E, dimension {run.limit_basis.shape[1]}", columns.replace("-", "−")])
    return section(
        "spectrum", "What attracts: M, V, E and Π", figure(uri, alt, caption) + table(["", "spectrum"], rows)
    )


def _complex(value: complex) -> str:
    value = complex(value)
    text = f"{value.real:.4g}" if abs(value.imag) < 1e-12 else f"{value.real:.4g}{value.imag:+.4g}i"
    return text.replace("-", "−")


def times_section(run: RunData, overview: Path | None = None) -> str:
    """A still picture of six times, for paper and for browsers without scripts.

    overview: the figure of these maps of the sphere where it is already on disk.
    """
    picks = chosen_saves(len(run.times))
    when, what = [float(run.times[k]) for k in picks], [run.marginal[k] for k in picks]
    if run.mesh.dimension == 3:
        uri = png_uri(overview or time_series_figure(run.mesh, when, what, limit_basis=run.limit_basis))
    else:
        uri = svg_uri(circle_figure(run.mesh, when, what, limit_basis=run.limit_basis))
    what_is_shown = "Content marginal" if run.densities.ndim == 3 else "Density"
    alt = f"{what_is_shown} at t = " + ", ".join(f"{t:.3g}" for t in when)
    return section("times", "All at a glance", figure(uri, alt, f"{what_is_shown} at {len(when)} times, one scale."))


def reading_section(run: RunData) -> str:
    """The words used above, explained."""
    meaning = {
        "Density": f"probability {run.unit}, averaged over cells of equal size. Uniform is "
        + ("1/4π ≈ 0.0796." if run.mesh.dimension == 3 else "1/2π ≈ 0.159."),
        "Cluster": f"the basin of a peak at least {PEAK:g} times uniform that holds at least {100 * SHARE:g} % of the "
        "mass; its dashed circle holds half of that mass. A cluster cannot look narrower than a cell.",
    }
    if run.attention is not None:
        meaning |= {
            "W₂": "the least root-mean-square distance by which mass must be moved to turn one law into the other, "
            f"{run.config.solver.metric} metric.",
            "Π♯ρ₀": "every token of ρ₀ moved straight to the nearest point of E: where the theorem says the law goes "
            "for large β and times up to about log β.",
            "Floor": "the W₂ that remains on this mesh however long one waits, because a cell has a width.",
            "Plateau": "W₂ stops falling because finite β pushes some mass across the separatrix: W₂ ~ β^(−1/2). "
            "Run again with a larger attention.beta and see the plateau sink.",
        }
    items = "".join(f"<dt><strong>{escape(key)}</strong></dt><dd>{escape(text)}</dd>" for key, text in meaning.items())
    return section("reading", "How to read this", f"<dl>{items}</dl>")


def making_section(run: RunData) -> str:
    """The commands, the configuration and where it ran."""
    again = f"tokensphere run config.toml --out {run.name}"
    change = f"tokensphere run config.toml --set attention.beta=400 --out {run.name}-beta-400"
    commands = [again, *([change] if run.attention is not None else []), f"tokensphere report {run.name}"]
    origin = run.summary.get("origin") or {}
    versions = origin.get("versions") or {}
    facts = [[escape(str(key)), escape(str(value))] for key, value in versions.items()]
    if origin.get("threads") is not None:
        facts.append(["threads", escape(str(origin["threads"]))])
    if run.summary.get("seed") is not None:
        facts.append(["seed", escape(str(run.summary["seed"]))])
    body = f"<p>In the folder of this run:</p><pre>{escape(chr(10).join(commands))}</pre>"
    body += f"<details open><summary>Configuration</summary><pre>{escape(run.configuration)}</pre></details>"
    if facts:
        body += f"<details><summary>Versions</summary>{table(['', ''], facts)}</details>"
    return section("making", "Make it again", body)
