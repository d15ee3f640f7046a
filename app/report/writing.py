"""From a run folder to its figures and its page."""

from pathlib import Path

import numpy as np

from tokensphere import figures
from tokensphere.durable import replace_text
from tokensphere.folder import RunFolder
from tokensphere.report.loading import RunData, load_run
from tokensphere.report.page import page
from tokensphere.report.predictions import (
    Curve,
    bound_curve,
    initial_function,
    phase_intervals,
    plateau_level,
    zero_temperature_curve,
)
from tokensphere.report.verdicts import verdicts


def draw_and_write(folder: str | Path) -> Path:
    """Write figures/*.png and report.html of a run folder; returns the path of the page."""
    run, place = load_run(folder), RunFolder(Path(folder))
    curve = run.records.get("w2_to_limit")
    predictions: dict[str, Curve] = {}
    plateau: float | None = None
    phases: list[tuple[str, float, float]] = []
    if run.limit_basis is not None and curve is not None and np.isfinite(curve).any():
        predictions, plateau = predicted(run)
        phases = phase_intervals(run.records["time"], curve)
    drawn = figures.write_run_figures(
        run.mesh,
        run.times,
        run.densities,
        run.records,
        place.figures,
        limit_basis=run.limit_basis,
        label_weights=run.label_weights,
        label_points=run.label_points,
        predictions=predictions,
        phases=phases,
        metric=run.config.solver.metric,
        title=run.title,
    )
    overview = next((path for path in drawn if path.name == "density.png"), None)
    replace_text(place.report, page(run, verdicts(run, plateau), predictions, phases, overview))
    return place.report


def predicted(run: RunData) -> tuple[dict[str, Curve], float | None]:
    """Named curves of W2 that theory gives for this run, and the level of the plateau."""
    if run.attention is None or run.projection is None:
        return {}, None
    metric = run.config.solver.metric
    exact = zero_temperature_curve(run.mesh, run.attention, run.projection, run.marginal[0], run.times, metric)
    curves = {"β = ∞, exact": exact}
    for item in run.summary.get("hypotheses") or []:
        details = item.get("details") or {}
        if item.get("name") == "H2" and details.get("moment") and details.get("p") and metric == "chordal":
            name = f"bound at β = ∞ from H2, p = {details['p']:.3g}"
            curves[name] = bound_curve(run.attention, run.projection, details["p"], details["moment"], run.times)
    plateau = plateau_level(run.attention, run.projection, initial_function(run.config), metric)
    if plateau is not None:
        name = "plateau for large β, 2√|δp|" if metric == "chordal" else "plateau for large β, π√|δp|"
        curves[name] = (np.array([run.times[0], run.times[-1]]), np.array([plateau, plateau]))
    return curves, plateau
