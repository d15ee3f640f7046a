"""Quadratic simplices on the sphere: pieces of it given by their corners and the middles of their edges.

On S¹ a piece has 3 nodes (2 corners, 1 middle), on S² 6 (3 corners, 3 middles).  Every value inside is the quadratic
polynomial through the nodes in barycentric coordinates λ: corners λ_i(2λ_i − 1), middles 4λ_iλ_j.
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.face_map import sphere_point
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.nested import face_coordinates

Array = NDArray[np.float64]


def edges(corners: int) -> list[tuple[int, int]]:
    """Pairs of corners, in the order of their middles."""
    return list(combinations(range(corners), 2))


def corners_of(nodes: int) -> int:
    """Corners of a piece with that many nodes: 3 → 2, 6 → 3."""
    return {3: 2, 6: 3}[nodes]


def shape_values(barycentric: Array) -> Array:
    """Weights (…, nodes) of the nodes at barycentric coordinates (…, corners)."""
    squares = barycentric * (2.0 * barycentric - 1.0)
    pairs = [4.0 * barycentric[..., i] * barycentric[..., j] for i, j in edges(barycentric.shape[-1])]
    return np.concatenate([squares, np.stack(pairs, axis=-1)], axis=-1)


def node_places(corners: int) -> Array:
    """Barycentric coordinates (nodes, corners) of the nodes themselves."""
    unit = np.eye(corners)
    return np.concatenate([unit, [(unit[i] + unit[j]) / 2 for i, j in edges(corners)]])


def halving(corners: int, edge: int) -> tuple[Array, Array]:
    """Matrices (nodes, nodes) from the nodes of a piece to those of its two halves, cut across one edge."""
    i, j = edges(corners)[edge]
    halves = []
    for replaced in (j, i):
        vertices = np.eye(corners)
        vertices[replaced] = (np.eye(corners)[i] + np.eye(corners)[j]) / 2
        halves.append(shape_values(node_places(corners) @ vertices))
    return halves[0], halves[1]


def equal_parts(corners: int, parts: int) -> Array:
    """Barycentric middles (parts^{corners−1}, corners) of equal pieces of a simplex."""
    if corners == 2:
        s = (np.arange(parts) + 0.5) / parts
        return np.stack([1 - s, s], axis=1)
    first, second = np.meshgrid(np.arange(parts), np.arange(parts), indexing="ij")
    upright = np.stack([first + 1 / 3, second + 1 / 3], axis=-1)[first + second < parts]
    upended = np.stack([first + 2 / 3, second + 2 / 3], axis=-1)[first + second < parts - 1]
    inner = np.concatenate([upright, upended]) / parts
    return np.column_stack([1 - inner.sum(axis=1), inner])


def mesh_simplices(mesh: Mesh) -> Array:
    """The cells of the circle as arcs, of HEALPix as two triangles of equal area: (cells·k, nodes, d), k = 1 or 2.

    Triangles meet along the diagonal where the map of the sphere has its kink; those of a cell are neighbours.
    """
    if mesh.kind == "circle":
        places = np.arange(mesh.cells)[:, None] + np.array([0.0, 1.0, 0.5])
        angles = places * (2 * np.pi / mesh.cells)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    ix, iy, face = (part[:, None] for part in face_coordinates(mesh.resolution, np.arange(mesh.cells)))
    nodes = []
    for tip in ((0.0, 0.0), (1.0, 1.0)):
        s, t = (node_places(3) @ np.array([tip, (1.0, 0.0), (0.0, 1.0)])).T
        nodes.append(sphere_point(face, (ix + s) / mesh.resolution, (iy + t) / mesh.resolution))
    return np.stack(nodes, axis=1).reshape(2 * mesh.cells, 6, 3)
