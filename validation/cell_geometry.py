"""Integrals over whole cells and parts of cells of the limited linear reconstruction ρ_i + ⟨g_i, x − c_i⟩."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from tokensphere.meshes.levels import subcells
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import batches

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

RANGE_DEPTH = 2
BEYOND = 2**RANGE_DEPTH / (2**RANGE_DEPTH - 1.0) * 1.1
"""From the reach of the centres of sub-cells to that of the cell; a tenth more for the polar cells, where sub-cells
differ most in shape."""


@dataclass(frozen=True, eq=False)
class CellMoments:
    """∫_K f dS (cells,) and ∫_K f (x − c) dS (cells, d) of a function f, so that ∫_K fρ = ρ·constant + ⟨g, linear⟩."""

    constant: Array
    linear: Array

    def integrate(self, density: Array, gradient: Array) -> Array:
        """∫_K f(x)(ρ_K + ⟨g_K, x − c_K⟩) dS for every cell, (cells,)."""
        return np.asarray(density * self.constant + np.einsum("cd,cd->c", gradient, self.linear))


def cell_moments(mesh: Mesh, function: Callable[[Array], Array], degree: int = 5) -> CellMoments:
    """Moments of f: (n, q, d) → (n, q) by the exact equal-area cell rules."""
    constant = np.empty(mesh.cells)
    linear = np.empty((mesh.cells, mesh.dimension))
    for cells, points, weights in batches(mesh, degree):
        weighted = function(points) * weights
        constant[cells] = weighted.sum(axis=-1)
        linear[cells] = np.einsum("nq,nqd->nd", weighted, points) - constant[cells, None] * mesh.centers[cells]
    return CellMoments(constant * mesh.areas, linear * mesh.areas[:, None])


@lru_cache(maxsize=8)
def cell_radii(mesh: Mesh) -> Array:
    """Upper bound of the chordal distance from a cell's centre to its points, (cells,).

    The farthest sub-cell centre is at most half a sub-cell short of the corner; see BEYOND.
    """
    # A turn by one base face, or one cell of the circle, maps the mesh to itself: the first of them stands for all.
    shape = (3, 4, mesh.cells // 12) if mesh.kind == "healpix" else (1, mesh.cells, 1)
    cells = np.arange(mesh.cells).reshape(shape)[:, 0].ravel()
    points = subcells(mesh, cells, RANGE_DEPTH)
    points -= mesh.centers[cells, None]
    bound = np.sqrt(np.einsum("nqd,nqd->nq", points, points).max(axis=-1)) * BEYOND
    return np.broadcast_to(bound.reshape(shape[0], 1, shape[2]), shape).ravel()


@dataclass(frozen=True, eq=False)
class Pieces:
    """Equal-area pieces of some cells: cells (n,), points (n, pieces, d) and offsets x − c from the cell's centre."""

    cells: Integers
    points: Array
    offsets: Array

    def masses(self, mesh: Mesh, density: Array, gradient: Array) -> Array:
        """Mass of each piece (n, pieces): those of a cell sum to the cell's mass, and none is negative.

        Where the linear reconstruction would be negative at a piece outside the hull of the face points, the cell's
        gradient is scaled down as in `prolong`; nothing is cut off.
        """
        result = np.empty(self.points.shape[:2])
        _piece_masses(self.cells, self.offsets, density, gradient, mesh.areas, result)
        return result


@njit(cache=True, parallel=True)
def _piece_masses(cells: Any, offsets: Any, density: Any, gradient: Any, areas: Any, result: Any) -> None:
    count, d = offsets.shape[1], offsets.shape[2]
    for n in prange(len(cells)):
        i = cells[n]
        mean = lowest = 0.0
        for q in range(count):
            rise = 0.0
            for k in range(d):
                rise += gradient[i, k] * offsets[n, q, k]
            result[n, q] = rise
            mean += rise / count
        for q in range(count):
            lowest = min(lowest, result[n, q] - mean)
        scale = density[i] / -lowest if -lowest > density[i] else 1.0
        for q in range(count):
            result[n, q] = (density[i] + scale * (result[n, q] - mean)) * (areas[i] / count)


def pieces(mesh: Mesh, cells: Integers, depth: int) -> Pieces:
    """The pieces of `cells`, `depth` levels down."""
    points = subcells(mesh, cells, depth)
    return Pieces(cells, points, points - mesh.centers[cells, None])


def half_space_mass(mesh: Mesh, density: Array, gradient: Array, direction: Array, depth: int = 4) -> float:
    """∫_{⟨x,e⟩>0} ρ dS: whole cells, and the cells cut by the great circle piece by piece.

    A piece that is cut itself counts with the fraction of its width in the direction of e that lies above.
    """
    return half_space(mesh, density, (gradient,), direction, depth)[0]


def half_space(
    mesh: Mesh, density: Array, gradients: Sequence[Array], direction: Array, depth: int = 4
) -> list[float]:
    """`half_space_mass` for several gradients of one density."""
    height = mesh.centers @ direction
    near = np.flatnonzero(np.abs(height) <= cell_radii(mesh))
    levels = subcells(mesh, near, RANGE_DEPTH) @ direction
    reach = 0.5 * np.ptp(levels, axis=-1) * BEYOND
    cut = near[np.abs(0.5 * (levels.max(axis=-1) + levels.min(axis=-1))) <= reach]
    above = height > 0
    above[cut] = False
    parts = pieces(mesh, cut, depth)
    level = parts.points @ direction
    # The level varies by this much from one piece to the next, that is across a piece.
    width = np.maximum(np.ptp(level, axis=-1, keepdims=True) / (2**depth - 1.0), 1e-300)
    fraction = np.clip(0.5 + level / width, 0.0, 1.0)
    whole = float(np.sum(density[above] * mesh.areas[above]))
    return [whole + float(np.sum(parts.masses(mesh, density, gradient) * fraction)) for gradient in gradients]
