"""Least-squares gradients in the tangent plane."""

import numpy as np

from tokensphere.meshes.mesh import Floats, Integers, Mesh


def least_squares_weights(centers: Floats, neighbours: Integers) -> Floats:
    """Weights w (cells, m, d) of the gradient g_i = Σ_k w_ik (ρ_k − ρ_i), tangent at c_i.

    g minimises Σ_k |ρ_k − ρ_i − ⟨g, d_k⟩|² with d_k = P_{c_i}(c_k − c_i). A neighbour padded with the cell itself has
    d = 0 and weight 0.
    """
    weights = np.empty((*neighbours.shape, centers.shape[1]))
    for part in np.array_split(np.arange(len(centers)), max(1, len(centers) // 100_000)):
        center = centers[part]
        offset = centers[neighbours[part]] - center[:, None]
        offset -= np.einsum("nmd,nd->nm", offset, center)[..., None] * center[:, None]
        moments = np.einsum("nmi,nmj->nij", offset, offset)
        scale = np.trace(moments, axis1=1, axis2=2)[:, None, None]
        moments += scale * center[:, :, None] * center[:, None, :]
        weights[part] = np.linalg.solve(moments, offset.transpose(0, 2, 1)).transpose(0, 2, 1)
    return weights


def gradient(mesh: Mesh, values: Floats) -> Floats:
    """Tangent gradients (…, cells, d) of cell averages (…, cells)."""
    differences = values[..., mesh.neighbours] - values[..., None]
    result: Floats = np.einsum("...nm,nmd->...nd", differences, mesh.gradient_weights)
    return result
