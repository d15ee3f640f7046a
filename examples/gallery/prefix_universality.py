"""Prefix tokens can realise any law of the content, by reflections O(p) with O(p)T(p) = e3 (Theorem 4).

Theory §2.3, fact 4. The target is cut into parts, one prefix each; from a cap about e3 in u the slices gather at T(p).
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.figure import Figure

import tokensphere as ts
from tokensphere import plots
from tokensphere.validation.universality import Realisation, distance_to_target, gauge_universality


@dataclass
class Result:
    """Mesh, target and reached content, and their distance."""

    mesh: ts.Mesh
    target: np.ndarray
    realisation: Realisation
    distance: float


def compute(quick: bool) -> Result:
    """Solve in u, and measure how far the content is from the target (an upper bound of W1)."""
    mesh = ts.healpix(8 if quick else 16)
    parts = [(0.6, [1.0, 0.3, 0.2]), (0.4, [-0.4, 0.7, -0.5])]
    target = ts.densities.mixture(mesh, [(w, ts.densities.von_mises_fisher(mesh, m, 15.0)) for w, m in parts])
    realisation = gauge_universality(mesh, target, 32 if quick else 128, ts.kernels.Linear())
    cap = ts.densities.von_mises_fisher(mesh, [0.0, 0.0, 1.0], 4.0)
    start = np.repeat(cap[None], realisation.labels.count, axis=0)
    run = ts.solve_joint(mesh, realisation.labels, realisation.kernel, start, save_at=[8.0], frame="co-rotating")
    turns = realisation.kernel.gauge(realisation.labels, 3)
    return Result(mesh, target, realisation, distance_to_target(mesh, realisation, run.densities[0], turns))


def draw(result: Result) -> Figure:
    """The target, and the points T(p) that realise it."""
    figure = plots.new_figure(7.2, 4.6)
    view = plots.Mollweide()
    axes = plots.density_map(result.mesh, result.target, view, figure.add_subplot(), borders=False)
    x, y, _ = view.flatten(result.realisation.points)
    axes.plot(x, y, "o", color="white", markeredgecolor="black", markersize=4)
    axes.set_title(f"Target law, and where {len(x)} prefixes take their tokens (dots)", loc="left", fontsize=11)
    plots.colour_bar(
        figure, [axes], plots.colour_scale(result.target), "target, probability per steradian, logarithmic"
    )
    return figure


def check(result: Result) -> Check:
    """W1 from the content to the target: no more than the parts' size and the width of a cluster."""
    return Check("W1 to the target", result.distance, 0.0, 3 * result.mesh.width, "theory §2.3, fact 4")


if __name__ == "__main__":
    main("prefix_universality", compute, draw, check)
