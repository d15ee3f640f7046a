"""A positive distance bias does not prevent collapse: labels agree on one point, E = g(1)(ℓ − ℓ²(1 − e^(−1/ℓ))).

b(ξ,ζ) = e^(−|ξ−ζ|/ℓ) on [0, 1], ℓ = .3, linear profile (theory §2.3, fact 10).
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.figure import Figure

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.joint import perturbed
from tokensphere.pde.solution import Solution
from tokensphere.validation.exact_joint import distance_bias_energy
from tokensphere.validation.maximisers import graph_energy

LENGTH = 0.3


@dataclass
class Result:
    """The run, where each label has gone, and the energy of those points."""

    run: Solution
    points: np.ndarray
    energy: float


def compute(quick: bool) -> Result:
    """Solve from perturbed uniform slices."""
    mesh, labels = ts.healpix(4 if quick else 8), ts.labels.gauss_interval(8 if quick else 16)
    kernel = ts.kernels.distance_bias(LENGTH, ts.kernels.Linear())
    uniform = np.repeat(ts.densities.uniform(mesh)[None], labels.count, axis=0)
    start = perturbed(mesh, uniform, 0.3, np.random.default_rng(7))
    run = ts.solve_joint(mesh, labels, kernel, start, save_at=[0.0, 50.0])
    means = (run.densities[-1] * mesh.areas) @ mesh.centers
    points = means / np.linalg.norm(means, axis=1, keepdims=True)
    return Result(run, points, graph_energy(labels, kernel, points))


def draw(result: Result) -> Figure:
    """Spread of the slices against time, and where the labels have gone."""
    run = result.run
    figure = plots.new_figure(9.0, 4.4)
    plots.label_curve(run.labels.points, result.points, axes=figure.add_subplot(1, 2, 1), period=1.0, cyclic=False)
    spreads = {"mean over labels": run.records["conditional_spread"], "largest": run.records["largest_spread"]}
    plots.spread_curve(run.records["time"], spreads, figure.add_subplot(1, 2, 2))
    return figure


def check(result: Result) -> Check:
    """The energy of the labels' points; few labels stand for [0, 1] up to about 1/labels²."""
    expected = distance_bias_energy(ts.kernels.Linear(), LENGTH)
    tolerance = 1 / result.run.labels.count**2
    return Check("energy of the points", result.energy, expected, tolerance, "theory §2.3, fact 10")


if __name__ == "__main__":
    main("distance_bias", compute, draw, check)
