"""How early n tokens leave a metastable state, on the circle and on the sphere: a table and a figure.

    python examples/exit_times.py [DIR]

Case B of theory §1.5 (e is an eigenvector of VBᵀ but not of Bᵀ): the density stays for a time linear in β, 10.3 at
β = 60 on the circle; n tokens leave earlier, at a time that saturates like log n.
"""

import math
import sys
import tempfile
from pathlib import Path

import numpy as np

import tokensphere as ts
from tokensphere.validation.chaos import ExitTimes, exit_ladder
from tokensphere.validation.particle_figures import plot_exit_times
from tokensphere.validation.sampling import stratified_uniforms

TURN = np.array([[1.0, -1.0], [1.0, 1.0]]) / math.sqrt(2)


def head(dimension: int, beta: float) -> ts.Attention:
    """M = VBᵀ = diag(1, −.6, …) and Bᵀ a turn by 45° in the first plane."""
    turn = np.eye(dimension)
    turn[:2, :2] = TURN
    matrix = np.diag([1.0, *[-0.6] * (dimension - 1)])
    return ts.Attention(query=np.eye(dimension), key=turn.T, value=matrix @ np.linalg.inv(turn), beta=beta)


def main(
    folder: Path, beta: float = 60.0, counts: tuple[int, ...] = (125, 500, 2000), repeats: int = 4
) -> list[ExitTimes]:
    """Exit times on circle and sphere, printed and drawn to exit_times.png."""
    ladders = []
    for mesh, density_time in ((ts.circle(512), 10.3 if beta == 60.0 else math.inf), (ts.healpix(16), math.inf)):
        start = ts.densities.from_function(mesh, lambda x: 1 + 0.4 * x[..., 0] + 0.3 * x[..., 1] * (1 + x[..., 0]))
        ladder = exit_ladder(
            mesh,
            start,
            head(mesh.dimension, beta),
            counts,
            repeats,
            15.0,
            np.random.default_rng(1),
            density_time=density_time,
            uniforms=stratified_uniforms,
            entered=0.24,
            left=0.25,
        )
        ladders.append(ladder)
        print(f"{mesh.kind}, beta = {beta:g}")
        for row in ladder.table():
            print("  " + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))
    axes = plot_exit_times(ladders)
    axes.get_figure().savefig(folder / "exit_times.png")
    return ladders


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    target.mkdir(parents=True, exist_ok=True)
    main(target)
