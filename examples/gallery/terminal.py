"""After the metastable phase V takes over: from ±e1, which M prefers, the law goes to e2, which V prefers.

S¹, V = diag(1, 2), B = diag(1, .1), β = 20: M = VBᵀ = diag(1, .2), so E = ±e1, but the eigenvalue 2 of V belongs to e2
(Conjecture 1; theory §1.6).
"""

import numpy as np
import plateau
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution
from tokensphere.validation.phases import distance_to_eigenspace


def compute(quick: bool) -> Solution:
    """Solve on the circle, long past the exit."""
    mesh = ts.circle(256 if quick else 1024)
    attention = ts.Attention(np.eye(2), np.diag([1.0, 0.1]), np.diag([1.0, 2.0]), 20.0)
    return ts.solve(mesh, attention, plateau.start(mesh), save_at=np.linspace(0, 10, 81))


def distances(run: Solution) -> dict[str, np.ndarray]:
    """Distance to either axis at the saves."""
    axes = {"to ±e₁ = E": [[1.0], [0.0]], "to ±e₂, dominant in V": [[0.0], [1.0]]}
    return {name: distance_to_eigenspace(run.mesh, run.densities, np.array(axis)) for name, axis in axes.items()}


def draw(run: Solution) -> Axes:
    """Distances to the two axes against time."""
    return plots.terminal_curve(run.times, distances(run))


def check(run: Solution) -> Check:
    """Distance to ±e2 at the end: a collapsed cluster reads less than a cell's width."""
    at_end = float(distances(run)["to ±e₂, dominant in V"][-1])
    return Check("distance to ±e₂ at t = 10", at_end, 0.0, run.mesh.width, "theory §1.6")


if __name__ == "__main__":
    main("terminal", compute, draw, check)
