"""Where e is an eigenvector of Bᵀ, the metastable state on E lasts a time that grows like log β (case A, theory §1.5).

S¹, V = diag(1, 2), B = diag(1, .1): M = diag(1, .2), E = ±e1, but V favours e2. The distance to E is above .3 again at
t = 2.52, 4.17, 5.7 for β = 10, 40, 160; the slope is 1.125 per unit of log β.
"""

from dataclasses import dataclass

import numpy as np
import plateau
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.validation.phases import Thresholds, distance_to_eigenspace, read_phases


@dataclass
class Result:
    """β, times and distances to E, and the times of exit."""

    betas: list[float]
    curves: list[tuple[np.ndarray, np.ndarray]]
    exits: list[float]


def compute(quick: bool) -> Result:
    """Solve on the circle and read off when the distance to E exceeds .3 again."""
    result = Result([10.0, 40.0] if quick else [10.0, 40.0, 160.0], [], [])
    for beta in result.betas:
        mesh = ts.circle(256 if quick else int(256 * np.sqrt(beta / 10)))
        attention = ts.Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), beta)
        times = np.linspace(0, 3.4 + 1.2 * np.log(beta / 10), 161)
        run = ts.solve(mesh, attention, plateau.start(mesh), save_at=times)
        distance = distance_to_eigenspace(mesh, run.densities, np.array([[1.0], [0.0]]))
        result.curves.append((times, distance))
        result.exits.append(read_phases(times, distance, Thresholds(inside=0.3, outside=0.3)).exit_time)
    return result


def draw(result: Result) -> Axes:
    """Distance to E against time, with the level .3."""
    axes = plots.new_figure(7.2, 4.4).add_subplot()
    for beta, (times, distance), leaving, colour in zip(
        result.betas, result.curves, result.exits, plots.CYCLE, strict=False
    ):
        axes.semilogy(times, distance, color=colour, label=f"β = {beta:g}: leaves at {leaving:.3g}")
    axes.axhline(0.3, color="0.5", linestyle=":")
    plots.dress(axes, "Metastable lifetime, case A: logarithmic in β", "time t", "distance to E∩S")
    axes.legend(frameon=False)
    return axes


def check(result: Result) -> Check:
    """The exit at β = 40."""
    return Check("time of exit at β = 40", result.exits[result.betas.index(40.0)], 4.17, 0.08, "theory §1.5, case A")


if __name__ == "__main__":
    main("lifetime_logarithmic", compute, draw, check)
