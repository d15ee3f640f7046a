"""Exact cell averages: the map of a cell is equal-area, so an average over it is a plain average over its square."""

from collections.abc import Callable, Iterator

import numpy as np

from tokensphere.meshes.face_map import sphere_point, turned
from tokensphere.meshes.mesh import Floats, Integers, Mesh
from tokensphere.meshes.nested import face_coordinates
from tokensphere.meshes.rules import interval_rule, kinked_rule, polar_rule, square_rule

Batch = tuple[Integers, Floats, Floats]
BATCH_POINTS = 400_000


def healpix_batches(nside: int, degree: int, cells: Integers | None = None) -> Iterator[Batch]:
    """Cells (n,), their points (n, q, 3) and weights (q,) with Σ w = 1; regular, kinked and polar cells in turn."""
    # Without a choice of cells, base faces 0, 4 and 8 stand for all: the others are turned by right angles.
    quarters = 4 if cells is None else 1
    pixels = first_faces(nside) if cells is None else np.asarray(cells)
    ix, iy, face = face_coordinates(nside, pixels)
    north = (face < 4) & (ix == nside - 1) & (iy == nside - 1)
    south = (face >= 8) & (ix == 0) & (iy == 0)
    kinked = ((face < 4) | (face >= 8)) & (ix + iy == nside - 1) & ~north & ~south
    polar_points, polar_weights = polar_rule(degree)
    for chosen, (square, weights) in (
        (~(kinked | north | south), square_rule(degree)),
        (kinked, kinked_rule(degree)),
        (north, (polar_points, polar_weights)),
        (south, (1 - polar_points, polar_weights)),
    ):
        indices = np.flatnonzero(chosen)
        for part in np.array_split(indices, max(1, len(indices) * len(weights) // BATCH_POINTS)):
            u = (ix[part, None] + square[:, 0]) / nside
            v = (iy[part, None] + square[:, 1]) / nside
            points = sphere_point(face[part, None], u, v)
            yield pixels[part], points, weights
            for quarter in range(1, quarters):
                yield pixels[part] + quarter * nside**2, turned(points, quarter), weights


def first_faces(nside: int) -> Integers:
    """The cells of base faces 0, 4 and 8."""
    return np.arange(12 * nside**2).reshape(3, 4, -1)[:, 0].ravel()


def circle_batches(cells: int, degree: int, chosen: Integers | None = None) -> Iterator[Batch]:
    """Cells (n,), their Gauss points (n, q, 2) in the angle, and weights (q,) summing to 1."""
    nodes, weights = interval_rule(degree)
    indices = np.arange(cells) if chosen is None else np.asarray(chosen)
    for part in np.array_split(indices, max(1, len(indices) * len(weights) // BATCH_POINTS)):
        angle = (part[:, None] + nodes) * (2 * np.pi / cells)
        yield part, np.stack([np.cos(angle), np.sin(angle)], axis=-1), weights


def batches(mesh: Mesh, degree: int, cells: Integers | None = None) -> Iterator[Batch]:
    """Quadrature of the cells: indices (n,), points (n, q, d), weights (q,) with Σ w = 1, batch by batch."""
    if mesh.kind == "healpix":
        return healpix_batches(mesh.resolution, degree, cells)
    return circle_batches(mesh.resolution, degree, cells)


def cell_averages(mesh: Mesh, function: Callable[[Floats], Floats], degree: int = 7) -> Floats:
    """(1/|K|)∫_K f dS of every cell K.

    Args:
        function: f(points (…, d)) → values (…).
        degree: of exactness in face coordinates.

    Returns:
        (cells,) averages.
    """
    averages = np.empty(mesh.cells)
    for cells, points, weights in batches(mesh, degree):
        averages[cells] = np.broadcast_to(function(points), points.shape[:-1]) @ weights
    return averages
