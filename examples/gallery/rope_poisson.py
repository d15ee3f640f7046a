"""A nonlinear joint law in closed form: RoPE with the linear profile keeps Poisson slices Poisson.

μ = ((1−r²)/(1−2r⟨R_ξx, e⟩+r²))² σρ, r' = (1−r²)M(r)/2, E = M(r)²/2; from r(0) = .3, r(1) = .5137516269 (theory §2.3,
fact 6).
"""

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution
from tokensphere.validation.exact_joint import poisson_density, poisson_mean, poisson_radius

AXIS = np.array([np.sin(0.8), 0.0, np.cos(0.8)])


def compute(quick: bool) -> Solution:
    """Solve in the co-rotating frame, where every slice is the same law of u."""
    mesh, labels = ts.healpix(8 if quick else 32), ts.labels.circle(4)
    kernel = ts.kernels.rope(frequency=1.0, profile=ts.kernels.Linear())
    slice_ = ts.densities.from_function(
        mesh, lambda u: poisson_density(0.3 * AXIS[None], u.reshape(-1, 3)).reshape(u.shape[:-1])
    )
    start = np.repeat(slice_[None], labels.count, axis=0)
    return ts.solve_joint(mesh, labels, kernel, start, save_at=np.linspace(0, 2, 9), frame="co-rotating")


def draw(run: Solution) -> Axes:
    """The energy against the closed form."""
    times = run.records["time"]
    axes = plots.energy_curve(times, run.records["energy"])
    axes.plot(
        times, 0.5 * poisson_mean(poisson_radius(0.3, times)) ** 2, "--", color=plots.CYCLE[1], label="M(r)²/2, exact"
    )
    axes.legend(frameon=False)
    axes.set_title("RoPE, linear profile: an exact nonlinear solution", loc="left", fontsize=11)
    return axes


def check(run: Solution) -> Check:
    """The energy at t = 1; second order in the width of a cell."""
    index = int(np.argmin(np.abs(run.records["time"] - 1.0)))
    expected = 0.5 * float(poisson_mean(0.5137516269)) ** 2
    return Check(
        "energy at t = 1", float(run.records["energy"][index]), expected, 0.1 * run.mesh.width**2, "theory §2.3, fact 6"
    )


if __name__ == "__main__":
    main("rope_poisson", compute, draw, check)
