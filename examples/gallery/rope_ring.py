"""RoPE with product data can still collapse: a ring about the axis shrinks to the pole (theory §2.3, fact 5).

β = 2, factor 1/β, a Gaussian ring at colatitude 1.2: of width .1, its mean colatitude is 1.0081 at t = .5.
"""

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution
from tokensphere.validation.exact_joint import gaussian_ring, ring_colatitude


def compute(quick: bool) -> Solution:
    """Solve in the co-rotating frame: data that do not depend on the label stay so."""
    mesh, labels = ts.healpix(16 if quick else 32), ts.labels.circle(2 if quick else 8)
    kernel = ts.kernels.rope(frequency=1.0, profile=ts.kernels.Exponential(beta=2.0, factor="1/beta"))
    ring = ts.densities.from_function(mesh, gaussian_ring(1.2, 0.1), 19)
    start = np.repeat(ring[None], labels.count, axis=0)
    times = [0.0, 0.5] if quick else np.linspace(0, 1, 11)
    return ts.solve_joint(mesh, labels, kernel, start, save_at=times, frame="co-rotating")


def colatitudes(run: Solution) -> np.ndarray:
    """Mean colatitude of u at the saves."""
    return np.asarray((run.densities[:, 0] * run.mesh.areas) @ np.arccos(run.mesh.centers[:, 2]))


def draw(run: Solution) -> Axes:
    """The mean colatitude, beside that of an infinitely thin ring."""
    times = np.linspace(0, run.times[-1], 60)
    axes = plots.new_figure(7.2, 4.2).add_subplot()
    axes.plot(
        run.times, colatitudes(run), "o", color=plots.CYCLE[0], label=f"ring of width .1, nside {run.mesh.resolution}"
    )
    axes.plot(
        times, ring_colatitude(run.model.profile, 1.2, times), "--", color=plots.CYCLE[1], label="thin ring, exact"
    )
    plots.dress(axes, "RoPE with product data: a ring closes on the pole", "time t", "mean colatitude (radians)")
    axes.legend(frameon=False)
    return axes


def check(run: Solution) -> Check:
    """The mean colatitude at t = .5."""
    index = int(np.argmin(np.abs(run.times - 0.5)))
    return Check("mean colatitude at t = .5", float(colatitudes(run)[index]), 1.0081, 0.01, "theory §2.3, fact 5")


if __name__ == "__main__":
    main("rope_ring", compute, draw, check)
