"""Two clusters approach by φ' = −g'(cos φ) sin φ, whatever their masses: at large β they persist (facts 11 and 13).

S¹, g(s) = e^(β(s−1))/β, β = 4, clusters .9 rad apart with masses .7 and .3.
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution
from tokensphere.validation.exact_joint import two_clusters

ANGLE, BETA = 0.9, 4.0


@dataclass
class Result:
    """The run, and the angle between the clusters at the saves."""

    run: Solution
    angles: np.ndarray


def compute(quick: bool) -> Result:
    """Solve on the circle; the clusters are told apart at the middle between them."""
    mesh, labels = ts.circle(512 if quick else 2048), ts.labels.finite([1.0])
    kernel = ts.kernels.usa(ts.kernels.Exponential(beta=BETA, factor="exp(-beta)/beta"))
    places = [[np.cos(a), np.sin(a)] for a in (1.0, 1.0 + ANGLE)]
    bumps = [ts.densities.von_mises_fisher(mesh, place, 1500.0) for place in places]
    start = ts.densities.mixture(mesh, [(0.7, bumps[0]), (0.3, bumps[1])])
    run = ts.solve_joint(mesh, labels, kernel, start[None], save_at=np.linspace(0, 1.5, 7))
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    masses = run.densities[:, 0] * mesh.areas
    # The heavy cluster moves by .3 of the way, the light one by .7: the point that divides them moves too.
    exact = two_clusters(kernel.profile, ANGLE, run.times)
    middles = 1.0 + 0.3 * (ANGLE - exact) + 0.5 * exact
    left = angle[None] < middles[:, None]
    near, far = masses * left, masses * ~left
    return Result(run, (far @ angle) / far.sum(axis=1) - (near @ angle) / near.sum(axis=1))


def draw(result: Result) -> Axes:
    """The angle between the clusters, beside the exact curve."""
    times = np.linspace(0, result.run.times[-1], 60)
    axes = plots.new_figure(7.2, 4.2).add_subplot()
    axes.plot(result.run.times, result.angles, "o", color=plots.CYCLE[0], label="density, masses .7 and .3")
    exact = two_clusters(result.run.model.profile, ANGLE, times)
    axes.plot(times, exact, "--", color=plots.CYCLE[1], label="φ' = −g'(cos φ) sin φ")
    plots.dress(axes, f"Two clusters at β = {BETA:g}", "time t", "angle between the clusters (radians)")
    axes.legend(frameon=False)
    return axes


def check(result: Result) -> Check:
    """The angle at the end, to which clusters of finite width add O(β·width²)."""
    expected = float(two_clusters(result.run.model.profile, ANGLE, result.run.times)[-1])
    return Check("angle at the end", float(result.angles[-1]), expected, 0.01, "theory §2.3, fact 11")


if __name__ == "__main__":
    main("metastable_clusters", compute, draw, check)
