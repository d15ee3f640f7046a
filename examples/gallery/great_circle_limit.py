"""For dim E = 2 the limit Π♯ρ0 is a law on a great circle, not a set of points.

Uniform start on S², B = I, M = diag(1, 1, 0) in a turned frame, β = ∞: W2² = 2 − 2[E(m) − a²K(m)]/m, a = e^(−γt),
m = 1 − a² (theory §1.3 g).
"""

import numpy as np
from common import Check, main
from matplotlib.figure import Figure
from scipy.special import ellipe, ellipk

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


def compute(quick: bool) -> Solution:
    """Solve in a frame that is not aligned with the mesh."""
    frame = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))[0]
    value = frame @ np.diag([1.0, 1.0, 0.0]) @ frame.T
    mesh = ts.healpix(8 if quick else 32)
    attention = ts.Attention(np.eye(3), np.eye(3), value, np.inf)
    return ts.solve(mesh, attention, ts.densities.uniform(mesh), save_at=[0.0, 1.0, 2.0, 3.0])


def exact(time: float) -> float:
    """W2² in closed form."""
    a = np.exp(-time)
    m = 1 - a**2
    return float(2 - 2 * (ellipe(m) - a**2 * ellipk(m)) / m)


def draw(run: Solution) -> Figure:
    """The density at the end, with E∩S drawn."""
    basis = ts.Projection(run.attention).basis
    title = f"dim E = 2, t = {run.times[-1]:g}: mass on a great circle (white)"
    return plots.sphere_figure(run.mesh, run.densities[-1], title=title, limit_basis=basis)


def check(run: Solution) -> Check:
    """W2² at t = 2."""
    limit = ts.Projection(run.attention)
    distance = float(ts.wasserstein2_to_limit(run.mesh, run.densities[2], run.densities[0], limit))
    return Check("W2² at t = 2", distance**2, exact(2.0), run.mesh.width**2, "theory §1.3 g")


if __name__ == "__main__":
    main("great_circle_limit", compute, draw, check)
