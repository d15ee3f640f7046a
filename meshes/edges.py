"""Quadrature on the edges of HEALPix cells: points and normals for which rotations are exact."""

import math
from typing import Any

import numpy as np
from numba import njit, prange

from tokensphere.meshes.face_map import point, tangents
from tokensphere.meshes.mesh import Booleans, Floats, Integers
from tokensphere.meshes.rules import interval_rule

# The four edges of a cell, anticlockwise from outside: south-east, north-east, north-west, south-west.
EDGE_STARTS = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float64)
EDGE_DIRECTIONS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float64)


def edge_quadrature(
    nside: int, base: Integers, ix: Integers, iy: Integers, edge: Integers, polar: Booleans
) -> tuple[Floats, Floats, Integers]:
    """Points X_q (points, 3), outward normals N_q (points, 3) and offsets (edges + 1,) of edges of cells.

    Two Gauss points on an edge, three where `polar` says so. N_q = T_q × X_q with T_q = w_q X'(s_q) + P_{X_q} λ and λ
    from [Σ_q P_{X_q}] λ = (b − a) − Σ_q w_q X'(s_q), a and b the ends: then Σ_q ⟨Ω × X_q, N_q⟩ = ⟨Ω, b − a⟩ and the
    fluxes of a rotation add up to zero around every cell.

    Args:
        base, ix, iy: (edges,) base face and face coordinates of each edge's cell.
        edge: (edges,) which of the cell's edges, in the order of EDGE_STARTS.
    """
    offsets = np.concatenate([[0], np.cumsum(np.where(polar, 3, 2))])
    points, normals = np.empty((offsets[-1], 3)), np.empty((offsets[-1], 3))
    _edges(nside, base, ix, iy, edge, offsets, *interval_rule(3), *interval_rule(5), points, normals)
    return points, normals, offsets


@njit(cache=True, parallel=True)
def _edges(
    nside: int,
    base: Any,
    ix: Any,
    iy: Any,
    edge: Any,
    offsets: Any,
    nodes2: Any,
    weights2: Any,
    nodes3: Any,
    weights3: Any,
    points: Any,
    normals: Any,
) -> None:
    for f in prange(len(edge)):
        first, last = offsets[f], offsets[f + 1]
        nodes, weights = (nodes2, weights2) if last - first == 2 else (nodes3, weights3)
        step_u, step_v = EDGE_DIRECTIONS[edge[f], 0], EDGE_DIRECTIONS[edge[f], 1]
        corner_u, corner_v = ix[f] + EDGE_STARTS[edge[f], 0], iy[f] + EDGE_STARTS[edge[f], 1]
        begin = point(base[f], corner_u / nside, corner_v / nside)
        end = point(base[f], (corner_u + step_u) / nside, (corner_v + step_v) / nside)
        d0, d1, d2 = end[0] - begin[0], end[1] - begin[1], end[2] - begin[2]
        # Σ_q P_{X_q} = m − Σ_q X_q X_qᵀ, symmetric, by its lower triangle
        a00 = a11 = a22 = float(last - first)
        a10 = a20 = a21 = 0.0
        for q in range(last - first):
            u, v = (corner_u + nodes[q] * step_u) / nside, (corner_v + nodes[q] * step_v) / nside
            x, y, z = point(base[f], u, v)
            points[first + q, 0], points[first + q, 1], points[first + q, 2] = x, y, z
            along_u, along_v = tangents(base[f], u, v)
            share_u, share_v = step_u * weights[q] / nside, step_v * weights[q] / nside
            t0 = share_u * along_u[0] + share_v * along_v[0]
            t1 = share_u * along_u[1] + share_v * along_v[1]
            t2 = share_u * along_u[2] + share_v * along_v[2]
            normals[first + q, 0], normals[first + q, 1], normals[first + q, 2] = t0, t1, t2
            d0, d1, d2 = d0 - t0, d1 - t1, d2 - t2
            a00, a11, a22 = a00 - x * x, a11 - y * y, a22 - z * z
            a10, a20, a21 = a10 - x * y, a20 - x * z, a21 - y * z
        l0, l1, l2 = _solve(a00, a10, a11, a20, a21, a22, d0, d1, d2)
        for p in range(first, last):
            x, y, z = points[p, 0], points[p, 1], points[p, 2]
            along = l0 * x + l1 * y + l2 * z
            t0, t1, t2 = normals[p, 0] + l0 - along * x, normals[p, 1] + l1 - along * y, normals[p, 2] + l2 - along * z
            normals[p, 0], normals[p, 1], normals[p, 2] = t1 * z - t2 * y, t2 * x - t0 * z, t0 * y - t1 * x


@njit(cache=True)
def _solve(
    a00: float, a10: float, a11: float, a20: float, a21: float, a22: float, b0: float, b1: float, b2: float
) -> tuple[float, float, float]:
    """A λ = b for a symmetric positive definite A by its lower triangle (Cholesky)."""
    c00 = math.sqrt(a00)
    c10, c20 = a10 / c00, a20 / c00
    c11 = math.sqrt(a11 - c10 * c10)
    c21 = (a21 - c20 * c10) / c11
    c22 = math.sqrt(a22 - c20 * c20 - c21 * c21)
    y0 = b0 / c00
    y1 = (b1 - c10 * y0) / c11
    y2 = (b2 - c20 * y0 - c21 * y1) / c22
    x2 = y2 / c22
    x1 = (y1 - c21 * x2) / c11
    return (y0 - c10 * x1 - c20 * x2) / c00, x1, x2
