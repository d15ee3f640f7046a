"""A particle code judged by the density: one that is right, one with B for its transpose, and what its tokens cost.

    python examples/particle_comparison.py [DIR]

Writes tokens.npz and comparison.png to DIR (default: a temporary folder) and prints both reports.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import tokensphere as ts
from tokensphere.validation.comparison import Comparison, compare_run
from tokensphere.validation.particle_figures import plot_comparison
from tokensphere.validation.sampling import sample_density, stratified_uniforms

VALUE = np.array([[1, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
BETA, TIMES = 2.0, np.array([0.0, 0.5, 1.0])


def my_code(x: np.ndarray, B: np.ndarray, dt: float = 0.05) -> np.ndarray:
    """Heun's method for dx_i/dt = P V softmax(βXBXᵀ)X, positions (times, n, d)."""

    def rate(x: np.ndarray) -> np.ndarray:
        weights = np.exp(BETA * x @ B @ x.T)
        pull = weights @ x / weights.sum(axis=1, keepdims=True) @ VALUE.T
        return pull - np.sum(pull * x, axis=1, keepdims=True) * x

    def unit(x: np.ndarray) -> np.ndarray:
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    frames = [x]
    for gap in np.diff(TIMES):
        for _ in range(round(gap / dt)):
            guess = unit(x + dt * rate(x))
            x = unit(x + dt / 2 * (rate(x) + rate(guess)))
        frames.append(x)
    return np.array(frames)


def main(folder: Path, nside: int = 8, tokens: int = 400, replicates: int = 40) -> tuple[Comparison, Comparison]:
    """Reports on the right and on the wrong code."""
    mesh, head = ts.healpix(nside), ts.Attention(query=np.eye(3), key=KEY, value=VALUE, beta=BETA)
    rho0 = ts.densities.from_function(mesh, lambda x: 1 + x @ np.array([0.1, 0.3, 0.4]))
    run = ts.solve(mesh, head, rho0, save_at=TIMES)
    start = sample_density(mesh, rho0, tokens, np.random.default_rng(1), stratified_uniforms)
    answers = []
    for B in (KEY, KEY.T):  # B = QᵀK with Q = I
        np.savez(folder / "tokens.npz", positions=my_code(start, B), times=TIMES)
        answers.append(compare_run(mesh, run.times, run.densities, head, folder / "tokens.npz", replicates=replicates))
        print("\n".join(answers[-1].lines()), end="\n\n")
    plot_comparison(answers[-1]).figure.savefig(folder / "comparison.png")
    return answers[0], answers[1]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    target.mkdir(parents=True, exist_ok=True)
    main(target)
