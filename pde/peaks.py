"""Clusters narrower than two cells, taken as the points they stand for.

The transport keeps the first moment of a cluster by holding it in the cells around its place, as linear interpolation
would: up to h²/4 of variance per direction that the equation does not have.  A softmax of inverse temperature β would
take that width for real and be off by βh²/4, so the integral sees the mass of such cells at its local centre.
"""

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.limiter import gradients_and_bendings, prolong, skews
from tokensphere.pde.point_kernels import add_points
from tokensphere.pde.sources import log_masses
from tokensphere.pde.transport_kernels import SLANT

BLUNT, SHARP = 0.15, 0.3
"""Bendings (``transport_kernels.gradient_and_bendings``) up to which a peak is on the mesh, and from which a point.

About 1/(4σ²) for a Gaussian σ cells wide; a third where two cells share the mass equally, more where they do not.
"""

LIGHTER = 0.25
"""Neighbours lighter than this times a cell do not make it part of their peak; heavier ones than itself do in full."""

FAINT, FULL = 1e-6, 1e-4
"""A cell with less than the first of these shares of all mass stays on the mesh; from the second on it counts."""


def split(mesh: Mesh, density: Floats) -> tuple[Floats, Floats, Floats]:
    """The density without its sharp peaks, and these as points.

    A cell is sharp where it stands out in every direction (a curve, which is narrow in one, stays on the mesh). It and
    its neighbours, which share a face or a vertex, give up their mass at the centres of mass of their neighbourhoods.
    The shares are smooth in the density, as the field has to be in time.

    Args:
        density: (cells,).

    Returns:
        The rest (cells,), unit vectors (k, d) and masses (k,); the density itself and no points where no peak is sharp.
    """
    sharp = _sharpness(mesh, density)
    masses = density * mesh.areas
    masses /= masses.sum() or 1.0
    cells = np.flatnonzero(masses > FAINT)
    near = mesh.neighbours[cells]
    cells = cells[(sharp[cells] > 0) | (sharp[near] > 0).any(axis=1)]
    around = mesh.neighbours[cells]
    own, others = density[cells, None], density[around]
    weights = _step((others / own - LIGHTER) / (1 - LIGHTER))
    shares = 1 - (1 - sharp[cells]) * (1 - weights * sharp[around]).prod(axis=1)
    shares *= _step(np.log(masses[cells] / FAINT) / np.log(FULL / FAINT))
    cells, around, others, shares = (each[shares > 0] for each in (cells, around, others, shares))
    others = np.where(around == cells[:, None], 0.0, others)
    points = density[cells, None] * mesh.centers[cells] + np.einsum("nk,nkd->nd", others, mesh.centers[around])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    if not len(cells):
        return density, points, np.empty(0)
    rest = density.copy()
    rest[cells] *= 1.0 - shares
    return rest, points, shares * density[cells] * mesh.areas[cells]


def _sharpness(mesh: Mesh, density: Floats) -> Floats:
    """(cells,), from 0 where a cell bends less than BLUNT in some direction to 1 where more than SHARP in all."""
    gradients, bendings = gradients_and_bendings(mesh, density[None])
    result = np.zeros(mesh.cells)
    cells = np.flatnonzero(bendings[0, :, 0] > BLUNT)
    own, half = density[cells, None], mesh.cell_faces.shape[1] // 2
    across = density[mesh.neighbours[cells, : 2 * half]]
    around = across[:, :half] + across[:, half:]
    slopes = np.clip(np.einsum("nsd,nd->ns", skews(mesh)[cells], gradients[0, cells]), -SLANT * own, SLANT * own)
    result[cells] = _step(((2 * own - around + slopes) / (2 * own + around) - BLUNT) / (SHARP - BLUNT)).prod(axis=1)
    return result


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
    if len(masses):
        add_points(tilts, points, log_masses(masses), mean, log_normaliser)
    return mean, log_normaliser
