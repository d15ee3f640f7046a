"""The limited linear reconstruction: what the solver believes about the inside of a cell."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import children, finer_cells, refine
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.transport_kernels import SAFE, least_squares, limit

Unsigned = NDArray[np.uint32]


def limited_gradient(mesh: Mesh, density: Floats) -> Floats:
    """Gradients G of the reconstruction ρ_i(x) = ρ_i + ⟨G_i, x − c_i⟩, tangent at the centroid c_i.

    G_i is the least-squares gradient times the largest θ ≤ 1 that keeps 0 ≤ ρ_i(x) ≤ 2ρ_i at every face point of the
    cell; ρ_i(x) has the cell's average. This is what integrals that look inside a cell use.

    Args:
        density: (cells,) or (labels, cells) non-negative averages per unit area.

    Returns:
        (…, cells, d).
    """
    rows = np.ascontiguousarray(density).reshape(-1, mesh.cells)
    gradients = gradients_and_bendings(mesh, rows)[0]
    _, centers, points = vectors(mesh)
    _, _, cell_faces, offsets = indices(mesh)
    limit(rows, centers, cell_faces, offsets, points, gradients)
    return gradients[..., : mesh.dimension].reshape(*density.shape, mesh.dimension)


def gradients_and_bendings(mesh: Mesh, rows: Floats) -> tuple[Floats, Floats]:
    """Least-squares gradients (labels, cells, 3) and bendings (labels, cells, 2): largest, and largest absolute."""
    gradients, bendings = np.empty((*rows.shape, 3)), np.empty((*rows.shape, 2))
    least_squares(rows, indices(mesh)[0], vectors(mesh)[0], skews(mesh), gradients, bendings)
    return gradients, bendings


@lru_cache(maxsize=16)
def vectors(mesh: Mesh) -> tuple[Floats, Floats, Floats]:
    """Gradient weights, centres and face points with three columns, the third zero on the circle."""
    found = (mesh.gradient_weights, mesh.centers, mesh.face_points)
    if mesh.dimension == 3:
        return found
    weights, centers, points = (np.concatenate([each, np.zeros((*each.shape[:-1], 1))], axis=-1) for each in found)
    return weights, centers, points


@lru_cache(maxsize=16)
def indices(mesh: Mesh) -> tuple[Unsigned, Unsigned, Unsigned, Unsigned]:
    """Neighbours, cells of faces, faces of cells and offsets, unsigned: loops need not ask which count from the end."""
    neighbours, face_cells, cell_faces, offsets = (
        each.view(np.uint32) for each in (mesh.neighbours, mesh.face_cells, mesh.cell_faces, mesh.face_offsets)
    )
    return neighbours, face_cells, cell_faces, offsets


@lru_cache(maxsize=16)
def skews(mesh: Mesh) -> Floats:
    """c_− + c_+ − 2c_i of the cells across opposite faces: (cells, 2, 3), (cells, 1, 3) on the circle."""
    _, centers, _ = vectors(mesh)
    half = mesh.cell_faces.shape[1] // 2
    across = centers[mesh.neighbours[:, : 2 * half]] - centers[:, None]
    return np.ascontiguousarray(across[:, :half] + across[:, half:])


def prolong(mesh: Mesh, density: Floats, levels: int = 1) -> Floats:
    """The limited reconstruction averaged over nested children: conservative and non-negative.

    Args:
        density: (…, cells) on ``mesh``.
        levels: how many levels down.

    Returns:
        (…, cells of ``finer(mesh, levels)``).
    """
    if levels == 0:
        return density
    count = children(mesh) ** levels
    offsets = finer_cells(mesh, levels).centers.reshape(mesh.cells, count, -1) - mesh.centers[:, None]
    rises = np.einsum("nkd,...nd->...nk", offsets, limited_gradient(mesh, density))
    # The children's centroids are a hair off the parent's in their mean, and may reach past its face points.
    rises -= rises.mean(axis=-1, keepdims=True)
    lowest = -rises.min(axis=-1)
    bound = density * SAFE
    scale = np.divide(bound, lowest, out=np.ones_like(lowest), where=lowest > bound)
    fine: Floats = refine(mesh, density, levels).reshape(rises.shape) + scale[..., None] * rises
    return fine.reshape(*density.shape[:-1], -1)
