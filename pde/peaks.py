"""Clusters narrower than two cells, taken as the points they stand for.

The transport keeps the first moment of a cluster by holding it in the cells around its place, as linear interpolation
would: up to h²/4 of variance per direction that the equation does not have.  A softmax of inverse temperature β would
take that width for real and be off by βh²/4, so the integral sees the mass of such cells at its local centre.
"""

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.limiter import gradients_and_peaks

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
    sharp = gradients_and_peaks(mesh, density[None])[1][0]
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
