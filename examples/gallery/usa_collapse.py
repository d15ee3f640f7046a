"""Without labels (USA) a law collapses to a single point, and the energy rises to its greatest value g(1)/2.

S¹, g(s) = e^(βs), β = 1, from a density that leans to one side: E → e/2 (theory §2.3, facts 2 and 14).
"""

import numpy as np
from common import Check, main
from matplotlib.figure import Figure

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


def compute(quick: bool) -> Solution:
    """Solve on the circle with a single label."""
    mesh, labels = ts.circle(128 if quick else 512), ts.labels.finite([1.0])
    kernel = ts.kernels.usa(ts.kernels.Exponential(beta=1.0))
    start = ts.densities.polynomial(mesh, 1.0, [0.5, 0.3])
    return ts.solve_joint(mesh, labels, kernel, start[None], save_at=[0.0, 0.5, 1.0, 1.5, 2.0, 24.0])


def draw(run: Solution) -> Figure:
    """The density at the saves, and the energy."""
    figure = plots.new_figure(7.2, 6.4)
    upper, lower = figure.subplots(2, 1)
    plots.circle_density(run.mesh, run.times[:-1], run.densities[:-1, 0], upper, log=True, title="USA: one cluster")
    upper.legend(frameon=False, fontsize=8)
    plots.energy_curve(run.records["time"], run.records["energy"], lower)
    lower.axhline(np.exp(1) / 2, color="0.5", linestyle=":")
    return figure


def check(run: Solution) -> Check:
    """The energy at the end; a cluster as wide as a cell h lacks about g'(1)h² of it."""
    missing = np.exp(1) * 4 * run.mesh.width**2
    return Check("energy at the end", float(run.records["energy"][-1]), np.exp(1) / 2, missing, "theory §2.3, fact 2")


if __name__ == "__main__":
    main("usa_collapse", compute, draw, check)
