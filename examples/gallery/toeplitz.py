"""The Toeplitz dichotomy: cos(ξ−ζ) spreads the content over a great circle, .6 + cos(ξ−ζ) makes a single point.

Linear profile, labels uniform on the circle: E = κ̂_k*/2 at the dominant Fourier mode k*; cos gives k* = 1 and E = 1/4,
.6 + cos gives k* = 0 and E = .3, although it changes sign too (theory §2.3, fact 8).
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.figure import Figure

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.joint import perturbed
from tokensphere.pde.solution import Solution
from tokensphere.validation.maximisers import graph_energy


@dataclass
class Result:
    """Runs by name, and the energy of the points that their slices have gathered at."""

    runs: dict[str, Solution]
    points: dict[str, np.ndarray]
    energies: dict[str, float]


def compute(quick: bool) -> Result:
    """Solve from perturbed uniform slices: symmetric data would never choose."""
    mesh, labels = ts.healpix(8), ts.labels.circle(8 if quick else 16)
    kernels = {
        "cos": ts.kernels.toeplitz(ts.kernels.Linear(), cosines=[(1, 1.0)]),
        ".6 + cos": ts.kernels.toeplitz(ts.kernels.Linear(), cosines=[(0, 0.6), (1, 1.0)]),
    }
    uniform = np.repeat(ts.densities.uniform(mesh)[None], labels.count, axis=0)
    start = perturbed(mesh, uniform, 0.3, np.random.default_rng(7))
    result = Result({}, {}, {})
    for name, kernel in kernels.items():
        run = ts.solve_joint(mesh, labels, kernel, start, save_at=[0.0, 80.0])
        means = (run.densities[-1] * mesh.areas) @ mesh.centers
        result.runs[name] = run
        result.points[name] = means / np.linalg.norm(means, axis=1, keepdims=True)
        result.energies[name] = graph_energy(labels, kernel, result.points[name])
    return result


def draw(result: Result) -> Figure:
    """Where each label has gone."""
    figure = plots.new_figure(9.0, 5.2)
    for index, (name, points) in enumerate(result.points.items()):
        labels, title = result.runs[name].labels, f"κ = {name}, E = {result.energies[name]:.3f}"
        plots.label_curve(labels.points, points, axes=figure.add_subplot(1, 2, index + 1), title=title)
    return figure


def check(result: Result) -> Check:
    """The energy of the great circle."""
    assert abs(result.energies[".6 + cos"] - 0.3) < 0.005
    return Check("energy for cos", result.energies["cos"], 0.25, 0.005, "theory §2.3, fact 8")


if __name__ == "__main__":
    main("toeplitz", compute, draw, check)
