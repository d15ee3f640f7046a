"""report.html: one offline page that shows and judges a run."""

from pathlib import Path

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

__all__ = ["RunData", "load_run", "write_report"]


def write_report(folder: str | Path) -> Path:
    """Draw the figures of a run folder anew and write its report.html; returns the path of the page.

    Works on unfinished runs too: what is not there is not shown. Raises InputError where the folder holds no
    configuration or no solution.
    """
    import numpy as np

    from tokensphere.durable import replace_text
    from tokensphere.figures import write_run_figures
    from tokensphere.folder import RunFolder

    run = load_run(folder)
    place = RunFolder(Path(folder))
    curve = run.records.get("w2_to_limit")
    predictions: dict[str, Curve] = {}
    plateau: float | None = None
    phases: list[tuple[str, float, float]] = []
    if run.limit_basis is not None and curve is not None and np.isfinite(curve).any():
        predictions, plateau = predicted(run)
        phases = phase_intervals(run.records["time"], curve)
    write_run_figures(
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
    replace_text(place.report, page(run, verdicts(run, plateau), predictions, phases))
    return place.report


def predicted(run: RunData) -> tuple[dict[str, Curve], float | None]:
    """Named curves of W2 that theory gives for this run, and the level of the plateau."""
    import numpy as np

    if run.attention is None or run.projection is None:
        return {}, None
    metric = run.config.solver.metric
    curves = {
        "β = ∞, exact": zero_temperature_curve(
            run.mesh, run.attention, run.projection, run.marginal[0], run.times, metric
        )
    }
    for item in run.summary.get("hypotheses") or []:
        details = item.get("details") or {}
        if item.get("name") == "H2" and details.get("moment") and details.get("p") and metric == "chordal":
            name = f"bound at β = ∞ from H2, p = {details['p']:.3g}"
            curves[name] = bound_curve(run.attention, run.projection, details["p"], details["moment"], run.times)
    plateau = plateau_level(run.attention, run.projection, initial_function(run.config), metric)
    if plateau is not None:
        curves["plateau for large β, 2√|δp|" if metric == "chordal" else "plateau for large β, π√|δp|"] = (
            np.array([run.times[0], run.times[-1]]),
            np.array([plateau, plateau]),
        )
    return curves, plateau
