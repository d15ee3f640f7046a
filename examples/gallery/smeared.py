"""A counterexample to a naive Conjecture 1: with V = diag(−1, −2), B = I the law does not become a point mass.

Every eigenvalue of V is negative: attention repels. The density stays smeared about ±e1 with β·Var → 1 (theory §1.6).
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.figure import Figure

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


@dataclass
class Result:
    """The run and β·Var of the angle from the axis e1 at its saves."""

    beta: float
    run: Solution
    spread: np.ndarray


def compute(quick: bool) -> Result:
    """Solve on the circle from a density that leans to one side."""
    beta, mesh = 60.0, ts.circle(256 if quick else 512)
    attention = ts.Attention(np.eye(2), np.eye(2), np.diag([-1.0, -2.0]), beta)
    rho0 = ts.densities.polynomial(mesh, 1.0, [0.3, 0.2])
    run = ts.solve(mesh, attention, rho0, save_at=np.linspace(0, 12, 25))
    angle = np.arctan2(mesh.centers[:, 1], np.abs(mesh.centers[:, 0]))
    # The outer shares hold the tail that has not arrived yet; it decays, but is not part of the law's shape.
    spread = beta * (run.densities * mesh.areas) @ angle**2
    return Result(beta, run, spread)


def draw(result: Result) -> Figure:
    """The final density, and β·Var against time."""
    figure = plots.new_figure(7.2, 6.4)
    upper, lower = figure.subplots(2, 1)
    run = result.run
    plots.circle_density(
        run.mesh, [0.0, run.times[-1]], [run.densities[0], run.densities[-1]], upper, limit_basis=[[1], [0]]
    )
    upper.legend(frameon=False)
    lower.plot(run.times, result.spread)
    lower.axhline(1.0, color="0.5", linestyle=":")
    lower.set(xlabel="time t", ylabel="β · variance of the angle from ±e₁", ylim=(0, None))
    upper.set_title("V = diag(−1, −2), B = I: smeared for ever", loc="left", fontsize=11)
    return figure


def check(result: Result) -> Check:
    """β·Var at the end: 1 up to O(1/β)."""
    return Check("β·Var at the end", float(result.spread[-1]), 1.0, 6.0 / result.beta, "theory §1.6")


if __name__ == "__main__":
    main("smeared", compute, draw, check)
