"""A density stays on E for a time linear in β where e is no eigenvector of Bᵀ; a finite set of tokens leaves early.

Case B of theory §1.5: S¹, Bᵀ = rotation by 45°, M = diag(1, −.6), V = M B^(−ᵀ). The density leaves at 4.99, 10.3, 21.1
for β = 30, 60, 120, because the place that attention looks at holds ever less mass but never none; among 2,000 tokens
nobody is there, and they leave at about 5 whatever β.
"""

from dataclasses import dataclass

import numpy as np
import plateau
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.validation.particles import advance_tokens
from tokensphere.validation.phases import distance_to_eigenspace, read_phases
from tokensphere.validation.sampling import sample_density

EXPECTED = {30.0: 4.99, 60.0: 10.3}


@dataclass
class Result:
    """β, and the times of exit of the density and of the tokens (NaN where they stayed)."""

    betas: list[float]
    density: list[float]
    tokens: list[float]


def rotated(beta: float) -> ts.Attention:
    """B = rotation by −45°, V = M B^(−ᵀ)."""
    c = np.sqrt(0.5)
    transposed = np.array([[c, -c], [c, c]])
    return ts.Attention(np.eye(2), transposed.T, np.diag([1.0, -0.6]) @ transposed.T, beta)


def compute(quick: bool) -> Result:
    """Solve for the density and for 2,000 tokens sampled from the same start."""
    result = Result([30.0] if quick else [30.0, 60.0, 90.0], [], [])
    for beta in result.betas:
        mesh = ts.circle(512 if quick else 768)
        times = np.linspace(0, 0.22 * beta, 133)
        attention, rho0 = rotated(beta), plateau.start(mesh)
        run = ts.solve(mesh, attention, rho0, save_at=times)
        distance = distance_to_eigenspace(mesh, run.densities, np.array([[1.0], [0.0]]))
        result.density.append(read_phases(times, distance).exit_time)
        tokens = sample_density(mesh, rho0, 400 if quick else 2000, np.random.default_rng(1))
        moved = advance_tokens(attention, tokens, times, tolerance=1e-5).positions
        spread = np.sqrt(np.mean(2 * (1 - np.minimum(np.abs(moved[..., 0]), 1.0)), axis=1))
        result.tokens.append(read_phases(times, spread).exit_time)
    return result


def draw(result: Result) -> Axes:
    """Lifetimes against β."""
    betas = np.array([min(result.betas) * 0.8, max(result.betas) * 1.2])
    tokens = [time if np.isfinite(time) else np.nan for time in result.tokens]
    return plots.against_beta(
        result.betas,
        {"density": result.density, "tokens": tokens},
        lines={"leading order, .183 β": (betas, 0.183 * betas)},
        y_label="time of exit",
        title="Metastable lifetime, case B: linear in β only for a density",
    )


def check(result: Result) -> Check:
    """The density's exit at the largest β that the theory gives a number for."""
    beta = max(EXPECTED.keys() & set(result.betas))
    return Check(
        f"time of exit at β = {beta:g}",
        result.density[result.betas.index(beta)],
        EXPECTED[beta],
        0.03 * EXPECTED[beta],
        "theory §1.5, case B",
    )


if __name__ == "__main__":
    main("lifetime_linear", compute, draw, check)
