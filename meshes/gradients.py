"""Least-squares gradients in the tangent plane."""

import numpy as np

from tokensphere.meshes.mesh import Floats, Integers, Mesh


def least_squares_weights(centers: Floats, neighbours: Integers) -> Floats:
    """Weights w (cells, m, d) of the gradient g_i = Σ_k w_ik (ρ_k − ρ_i), tangent at c_i.

    g and a symmetric H in the tangent plane minimise Σ_k |ρ_k − ρ_i − ⟨g, d_k⟩ − ½⟨d_k, H d_k⟩|², d_k = P_{c_i}(c_k −
    c_i): the quadratic terms keep the gradient of second order where the stencil is lopsided (at the edges of base
    faces and along |z| = 2/3). With too few neighbours for that (nside 1, the circle) H is left out. A neighbour padded
    with the cell itself has weight 0.
    """
    weights = np.empty((*neighbours.shape, centers.shape[1]))
    for part in np.array_split(np.arange(len(centers)), max(1, len(centers) // 50_000)):
        offset = centers[neighbours[part]] - centers[part][:, None]
        axes = _tangent_axes(centers[part])
        plane = np.einsum("nmd,nkd->nmk", offset, axes)
        scale = np.sqrt((plane**2).sum(axis=(1, 2)) / neighbours.shape[1])[:, None, None]
        terms = plane / scale
        if neighbours.shape[1] == 8 and len(centers) > 12:
            first, second = terms[..., 0], terms[..., 1]
            terms = np.stack([first, second, first**2 / 2, first * second, second**2 / 2], axis=-1)
        normal = np.einsum("nmi,nmj->nij", terms, terms)
        solved = np.linalg.solve(normal, terms.transpose(0, 2, 1))[:, : axes.shape[1]]
        weights[part] = np.einsum("nkm,nkd->nmd", solved, axes) / scale
    return weights


def _tangent_axes(centers: Floats) -> Floats:
    """Orthonormal bases (n, d − 1, d) of the tangent spaces at unit vectors (n, d)."""
    if centers.shape[1] == 2:
        return np.stack([-centers[:, 1], centers[:, 0]], axis=1)[:, None]
    away = np.where(np.abs(centers[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    first = np.cross(away, centers)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([first, np.cross(centers, first)], axis=1)


def gradient(mesh: Mesh, values: Floats) -> Floats:
    """Tangent gradients (…, cells, d) of cell averages (…, cells)."""
    differences = values[..., mesh.neighbours] - values[..., None]
    result: Floats = np.einsum("...nm,nmd->...nd", differences, mesh.gradient_weights)
    return result
