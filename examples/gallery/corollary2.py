"""Zero-temperature solutions converge exponentially to Π♯ρ0 (Corollary 2), here along a known curve.

Uniform start on S², B = I, M = diag(1, 0, 0): W2² = 2a/(1+a), a = e^(−γt) (theory §1.3 g). The rate is γ/2, not γ:
mass beside the separatrix is late.
"""

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


def compute(quick: bool) -> Solution:
    """Solve at β = ∞."""
    mesh = ts.healpix(8 if quick else 32)
    attention = ts.Attention(np.eye(3), np.eye(3), np.diag([1.0, 0.0, 0.0]), np.inf)
    return ts.solve(mesh, attention, ts.densities.uniform(mesh), save_at=np.linspace(0, 6, 13))


def exact(times: np.ndarray) -> np.ndarray:
    """W2 in closed form."""
    a = np.exp(-times)
    return np.sqrt(2 * a / (1 + a))


def draw(run: Solution) -> Axes:
    """The measured and the exact curve, with the fitted rate."""
    time, distance, floor = (run.records[name] for name in ("time", "w2_to_limit", "w2_floor"))
    fit = plots.fit_decay(time, distance, floor)
    curves = {"exact: √(2a/(1+a)), a = e^(−t)": (time, exact(time))}
    title = f"Corollary 2 on S², nside {run.mesh.resolution}"
    return plots.wasserstein_curve(time, distance, floor, fit=fit, predictions=curves, title=title)


def check(run: Solution) -> Check:
    """W2² at t = 3; a cell of size h can be told from its neighbour up to h²."""
    index = int(np.argmin(np.abs(run.records["time"] - 3.0)))
    time, distance = run.records["time"][index], run.records["w2_to_limit"][index]
    return Check("W2² at t = 3", distance**2, float(exact(time) ** 2), run.mesh.width**2, "theory §1.3 g")


if __name__ == "__main__":
    main("corollary2", compute, draw, check)
