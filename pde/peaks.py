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
from tokensphere.pde.transport_kernels import SHARPNESS_ONSET, SHARPNESS_SLOPE

LEAST = 1e-6
"""Cells with less than this share of the mass stay on the mesh."""


def split(mesh: Mesh, density: Floats) -> tuple[Floats, Floats, Floats]:
    """The density without its sharp peaks, and these as points.

    A cell gives up the share of its mass that is the largest sharpness (see ``transport_kernels.sharpness``) of its
    neighbourhood, at the centre of mass of that neighbourhood: itself and the cells that share a face or a vertex.

    Args:
        density: (cells,).

    Returns:
        The rest (cells,), unit vectors (k, d) and masses (k,); the density itself and no points where no peak is sharp.
    """
    masses = density * mesh.areas
    heavy = masses > LEAST * masses.sum()
    if not heavy.any():
        return density, np.empty((0, mesh.dimension)), np.empty(0)
    bendings = gradients_and_bendings(mesh, density[None])[1][0]
    sharp = np.clip(SHARPNESS_SLOPE * bendings - SHARPNESS_ONSET, 0.0, 1.0)
    cells = np.flatnonzero(heavy)
    around = mesh.neighbours[cells]
    shares = np.maximum(sharp[cells], sharp[around].max(axis=1))
    cells, around, shares = cells[shares > 0], around[shares > 0], shares[shares > 0]
    near = np.where(around == cells[:, None], 0.0, masses[around])
    points = masses[cells, None] * mesh.centers[cells] + np.einsum("nk,nkd->nd", near, mesh.centers[around])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    rest = density.copy()
    rest[cells] *= 1.0 - shares
    return rest, points, shares * masses[cells]


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
