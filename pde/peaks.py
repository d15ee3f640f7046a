"""Clusters narrower than two cells, taken as the points they stand for.

The transport keeps the first moment of a cluster by holding it in the cells around its place, as linear interpolation
would: up to h²/4 of variance per direction that the equation does not have.  A softmax of inverse temperature β would
take that width for real and be off by βh²/4, so the integral sees the mass of such cells at its local centre.
"""

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.limiter import gradients_and_bendings, prolong
from tokensphere.pde.sources import log_masses

BLUNT, SHARP = 0.15, 0.3
"""Bendings (see ``transport_kernels.least_squares``) up to which a peak stays on the mesh and from which it is a point.

About 1/(4σ²) for a Gaussian σ cells wide; a third where two cells share the mass equally, more where they do not.
"""

LIGHTER = 0.25
"""Neighbours lighter than this times a cell do not make it part of their peak; heavier ones than itself do in full."""

FAINT, FULL = 1e-6, 1e-3
"""A cell below the first of these times its heaviest neighbour stays on the mesh; from the second on it counts."""


def split(mesh: Mesh, density: Floats) -> tuple[Floats, Floats, Floats]:
    """The density without its sharp peaks, and these as points.

    A cell gives up the share of its mass that is the sharpness of its neighbourhood, itself and the cells that share a
    face or a vertex, at the centre of mass of that neighbourhood; a lighter neighbour's sharpness counts less. Only
    ratios of neighbouring values enter, so that a peak in a void is treated as any other, and the shares are smooth, as
    the field has to be in time.

    Args:
        density: (cells,).

    Returns:
        The rest (cells,), unit vectors (k, d) and masses (k,); the density itself and no points where no peak is sharp.
    """
    bendings = gradients_and_bendings(mesh, density[None])[1][0, :, 0]
    sharp = _step((bendings - BLUNT) / (SHARP - BLUNT))
    around = mesh.neighbours
    near = sharp > 0
    near[around[near]] = True
    cells = np.flatnonzero(near & (density > 0))
    around = around[cells]
    own, others = density[cells, None], density[around]
    with np.errstate(over="ignore"):
        ratios = others / own
    shares = 1 - (1 - sharp[cells]) * (1 - _step((ratios - LIGHTER) / (1 - LIGHTER)) * sharp[around]).prod(axis=1)
    heaviest = np.maximum(1.0, ratios.max(axis=1))
    shares *= _step(np.log(heaviest * FAINT) / np.log(FAINT / FULL))
    cells, around, others, shares = (each[shares > 0] for each in (cells, around, others, shares))
    others = np.where(around == cells[:, None], 0.0, others)
    points = density[cells, None] * mesh.centers[cells] + np.einsum("nk,nkd->nd", others, mesh.centers[around])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    if not len(cells):
        return density, points, np.empty(0)
    rest = density.copy()
    rest[cells] *= 1.0 - shares
    return rest, points, shares * density[cells] * mesh.areas[cells]


def _step(x: Floats) -> Floats:
    """From 0 at 0 to 1 at 1, with a continuous slope."""
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3 - 2 * x)


def integral_with_peaks(
    mesh: Mesh, density: Floats, levels: int, integral: AttentionIntegral, tilts: Floats
) -> tuple[Floats, Floats]:
    """Mean ∇log F (n, d) and log F (n,) of a density whose sharp peaks are taken as points.

    Args:
        density: (cells,).
        levels: levels down the rest is prolonged to the cells of the integral.
        integral: of the finer cells at the n points.
        tilts: z = βBᵀx (n, d) of those points.
    """
    rest, points, masses = split(mesh, density)
    mean, log_normaliser = integral(prolong(mesh, rest, levels))
    if len(masses) == 0:
        return mean, log_normaliser
    mean_of_peaks, log_of_peaks = log_sum_exp(tilts, points, log_masses(masses))
    total = np.logaddexp(log_normaliser, log_of_peaks)
    share = np.exp(log_of_peaks - total)[:, None]
    return mean + share * (mean_of_peaks - mean), total
