"""At finite β the distance to Π♯ρ0 falls exponentially and then stops at a plateau, W2 ≈ 2√|δp| ~ β^(−1/2).

The finite-β drift (1/β)V∇log ρ carries the mass δp across the separatrix. On S¹ with M = diag(1, −.6) and
ρ0 = (1 + .4x1 + .3x2 + .3x1x2)/2π, β·δp tends to .0398 (theory §1.4).
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


@dataclass
class Result:
    """Runs by β, and β·δp of each."""

    betas: list[float]
    runs: list[Solution]
    shifts: list[float]


def start(mesh: ts.Mesh) -> np.ndarray:
    """ρ0 ∝ 1 + .4x1 + .3x2 + .3x1x2."""
    return ts.densities.from_function(
        mesh, lambda x: 1 + 0.4 * x[..., 0] + 0.3 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]
    )


def compute(quick: bool) -> Result:
    """Solve on the circle for several β; δp is the change of mass on e's side, which cell edges separate exactly."""
    betas = [20.0, 40.0] if quick else [10.0, 20.0, 40.0, 80.0, 160.0]
    mesh = ts.circle(512 if quick else 1024)
    right = mesh.centers[:, 0] > 0
    result = Result(betas, [], [])
    for beta in betas:
        attention = ts.Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), beta)
        run = ts.solve(mesh, attention, start(mesh), save_at=np.linspace(0, 7, 15))
        moved = (run.densities[-1] - run.densities[0])[right] @ mesh.areas[right]
        result.runs.append(run)
        result.shifts.append(beta * float(moved))
    return result


def draw(result: Result) -> Axes:
    """W2 against time for all β, with the plateau 2√(.0398/β) of each."""
    axes = plots.new_figure(7.2, 4.6).add_subplot()
    for beta, run, colour in zip(result.betas, result.runs, plots.CYCLE, strict=False):
        axes.semilogy(run.records["time"], run.records["w2_to_limit"], color=colour, label=f"β = {beta:g}")
        axes.axhline(2 * np.sqrt(0.0398 / beta), color=colour, linestyle=":", linewidth=1)
    plots.dress(axes, "Two phases: exponential, then a plateau (dotted: 2√(δp))", "time t", "W₂(ρₜ, Π♯ρ₀), chordal")
    axes.legend(frameon=False)
    return axes


def check(result: Result) -> Check:
    """β·δp extrapolated to β = ∞ from the two largest β, whose error is O(1/β)."""
    limit = 2 * result.shifts[-1] - result.shifts[-2]
    return Check("β·δp for β → ∞", limit, 0.0398, 0.0008, "theory §1.4")


if __name__ == "__main__":
    main("plateau", compute, draw, check)
