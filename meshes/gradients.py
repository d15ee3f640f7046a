"""Least-squares gradients in the tangent plane."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.meshes.mesh import Floats, Indices, Integers, Mesh


def least_squares_weights(centers: Floats, neighbours: Indices, cells: Integers | None = None) -> Floats:
    """Weights w (cells, m, d), of some cells or of all, of the gradient g_i = Σ_k w_ik (ρ_k − ρ_i), tangent at c_i.

    g and a symmetric H in the tangent plane minimise Σ_k |ρ_k − ρ_i − ⟨g, d_k⟩ − ½⟨d_k, H d_k⟩|², d_k = P_{c_i}(c_k −
    c_i): the quadratic terms keep the gradient of second order where the stencil is lopsided (at the edges of base
    faces and along |z| = 2/3). With too few neighbours for that (nside 1, the circle) H is left out. A neighbour padded
    with the cell itself has weight 0.
    """
    d = centers.shape[1]
    terms = 5 if neighbours.shape[1] == 8 and len(centers) > 12 else d - 1
    chosen = np.arange(len(centers)) if cells is None else cells
    weights = np.empty((len(chosen), neighbours.shape[1], d))
    _least_squares(centers, neighbours, chosen, terms, weights)
    return weights


@njit(cache=True, parallel=True)
def _least_squares(centers: Any, neighbours: Any, chosen: Any, terms: int, weights: Any) -> None:
    """w_ik = Σ_a ⟨N⁻¹e_a, r_ik⟩ t_a with the rows r_ik of offsets of size 1 in the basis t, and N = Σ_k r_ik r_ikᵀ."""
    cells, count = len(chosen), neighbours.shape[1]
    d = centers.shape[1]
    for block in prange((cells + 255) // 256):
        axes, rows = np.empty((d - 1, d)), np.empty((count, terms))
        lower, inverse = np.empty((terms, terms)), np.empty((d - 1, terms))
        for n in range(block * 256, min(cells, (block + 1) * 256)):
            i = chosen[n]
            _tangent_axes(centers[i], axes)
            square = 0.0
            for k in range(count):
                for a in range(d - 1):
                    along = 0.0
                    for x in range(d):
                        along += axes[a, x] * (centers[neighbours[i, k], x] - centers[i, x])
                    rows[k, a] = along
                    square += along * along
            scale = math.sqrt(square / count)
            for k in range(count):
                for a in range(d - 1):
                    rows[k, a] /= scale
                if terms == 5:
                    first, second = rows[k, 0], rows[k, 1]
                    rows[k, 2], rows[k, 3], rows[k, 4] = first**2 / 2, first * second, second**2 / 2
            _factorise(rows, lower)
            for a in range(d - 1):
                inverse[a] = 0.0
                inverse[a, a] = 1.0 / scale
                _solve(lower, inverse[a])
            for k in range(count):
                weights[n, k] = 0.0
                for a in range(d - 1):
                    along = 0.0
                    for b in range(terms):
                        along += inverse[a, b] * rows[k, b]
                    for x in range(d):
                        weights[n, k, x] += along * axes[a, x]


@njit(cache=True)
def _factorise(rows: Any, lower: Any) -> None:
    """L with L Lᵀ = RᵀR of rows R (count, terms)."""
    count, terms = rows.shape
    for a in range(terms):
        for b in range(a + 1):
            total = 0.0
            for k in range(count):
                total += rows[k, a] * rows[k, b]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            lower[a, b] = math.sqrt(total) if a == b else total / lower[b, b]


@njit(cache=True)
def _solve(lower: Any, column: Any) -> None:
    """L Lᵀ x = column, in place."""
    terms = len(column)
    for a in range(terms):
        for b in range(a):
            column[a] -= lower[a, b] * column[b]
        column[a] /= lower[a, a]
    for a in range(terms - 1, -1, -1):
        for b in range(a + 1, terms):
            column[a] -= lower[b, a] * column[b]
        column[a] /= lower[a, a]


@njit(cache=True)
def _tangent_axes(center: Any, axes: Any) -> None:
    """An orthonormal basis (d − 1, d) of the tangent space at a unit vector."""
    if len(center) == 2:
        axes[0, 0], axes[0, 1] = -center[1], center[0]
        return
    x, y, z = center[0], center[1], center[2]
    if abs(z) < 0.9:
        length = math.hypot(x, y)
        u, v, w = -y / length, x / length, 0.0
    else:
        length = math.hypot(y, z)
        u, v, w = 0.0, -z / length, y / length
    axes[0, 0], axes[0, 1], axes[0, 2] = u, v, w
    axes[1, 0], axes[1, 1], axes[1, 2] = y * w - z * v, z * u - x * w, x * v - y * u


def gradient(mesh: Mesh, values: Floats) -> Floats:
    """Tangent gradients (…, cells, d) of cell averages (…, cells)."""
    differences = values[..., mesh.neighbours] - values[..., None]
    result: Floats = np.einsum("...nm,nmd->...nd", differences, mesh.gradient_weights)
    return result
