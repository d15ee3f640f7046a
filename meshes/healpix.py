"""The HEALPix sphere as a finite-volume mesh: exact curved cells and faces in nested order."""

from functools import lru_cache

import numpy as np

from tokensphere.meshes.edges import edge_quadrature
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.face_map import turned
from tokensphere.meshes.gradients import least_squares_weights
from tokensphere.meshes.mesh import Floats, Indices, Integers, Mesh, Signs
from tokensphere.meshes.nested import cells_around, face_coordinates
from tokensphere.meshes.quadrature import first_faces, healpix_batches

LARGEST_NSIDE = 512
EDGE_NEIGHBOUR = np.array([6, 4, 2, 0])  # columns of ``cells_around`` across the edges of ``EDGE_STARTS``
VERTEX_NEIGHBOUR = np.array([7, 5, 3, 1])


@lru_cache(maxsize=8)
def healpix(nside: int) -> Mesh:
    """The sphere S² with 12·nside² cells of equal area π/(3 nside²).

    Args:
        nside: a power of two from 1 to 512.

    Raises:
        InputError: for any other nside.
    """
    if isinstance(nside, bool) or not isinstance(nside, int | np.integer) or nside < 1 or nside & (nside - 1):
        raise InputError(f"nside is {nside!r}; it must be a power of two from 1 to {LARGEST_NSIDE}.")
    if nside > LARGEST_NSIDE:
        raise InputError(f"nside is {nside}; the largest allowed is {LARGEST_NSIDE}, so choose a smaller power of two.")
    nside = int(nside)
    cells = 12 * nside**2
    ix, iy, base = face_coordinates(nside, np.arange(cells))
    around = cells_around(nside).T
    first, edge = np.nonzero(np.arange(cells)[:, None] < around[EDGE_NEIGHBOUR].T)
    second = around[EDGE_NEIGHBOUR[edge], first]
    face_cells = np.stack([first, second], axis=1)
    polar = ((base < 4) & (ix == nside - 1) & (iy == nside - 1)) | ((base >= 8) & (ix == 0) & (iy == 0))
    beside_pole = polar[face_cells].any(axis=1)
    points, normals, offsets = edge_quadrature(nside, base[first], ix[first], iy[first], edge, beside_pole)
    cell_faces, cell_signs = _faces_by_edge(face_cells, edge, around[EDGE_NEIGHBOUR])
    around = around[np.concatenate([EDGE_NEIGHBOUR, VERTEX_NEIGHBOUR])].T
    neighbours = np.where(around >= 0, around, np.arange(cells)[:, None]).astype(np.int32)
    centers = centroids(nside)
    return Mesh(
        kind="healpix",
        resolution=nside,
        centers=centers,
        areas=np.full(cells, np.pi / (3 * nside**2)),
        face_cells=face_cells.astype(np.int32),
        face_offsets=offsets.astype(np.int32),
        face_points=points,
        face_normals=normals,
        cell_faces=cell_faces,
        cell_signs=cell_signs,
        neighbours=neighbours,
        gradient_weights=_on_all_faces(least_squares_weights(centers, neighbours, first_faces(nside))),
    )


def _faces_by_edge(face_cells: Integers, edge: Integers, across: Integers) -> tuple[Indices, Signs]:
    """Faces (cells, 4) and signs in the order of the edges; edge: that of the first cell; across: (4, cells)."""
    first, second = face_cells.T
    back = np.argmax(across[:, second] == first, axis=0)
    cell_faces, cell_signs = (np.empty(across.T.shape, dtype=kind) for kind in (np.int32, np.int8))
    for cells, edges, sign in ((first, edge, 1), (second, back, -1)):
        cell_faces[cells, edges] = np.arange(len(first))
        cell_signs[cells, edges] = sign
    return cell_faces, cell_signs


@lru_cache(maxsize=4)
def healpix_cells(nside: int) -> Mesh:
    """The cells of ``healpix(nside)`` without faces, neighbours and gradients, for integrals on a finer level."""
    centers = centroids(nside)
    none, indices = np.empty((0, 3)), np.empty((0, 2), dtype=np.int32)
    return Mesh(
        kind="healpix",
        resolution=nside,
        centers=centers,
        areas=np.full(len(centers), np.pi / (3 * nside**2)),
        face_cells=indices,
        face_offsets=np.zeros(1, dtype=np.int32),
        face_points=none,
        face_normals=none,
        cell_faces=indices,
        cell_signs=np.empty((0, 4), dtype=np.int8),
        neighbours=indices,
        gradient_weights=np.empty((0, 8, 3)),
    )


def centroids(nside: int) -> Floats:
    """Normalised area centroids (cells, 3); HEALPix's nominal centres are .09 h away on the kinked cells."""
    moments = np.empty((12 * nside**2, 3))
    first = first_faces(nside)
    for cells, points, weights in healpix_batches(nside, 7, first):
        moments[cells] = np.einsum("nqd,q->nd", points, weights)
    chosen = moments[first]
    return _on_all_faces(chosen / np.linalg.norm(chosen, axis=1, keepdims=True))


def _on_all_faces(first: Floats) -> Floats:
    """Vectors (cells, …, 3) from those of base faces 0, 4 and 8, turned by right angles."""
    faces = first.reshape(3, -1, *first.shape[1:])
    result = np.empty((3, 4, *faces.shape[1:]))
    for quarter in range(4):
        result[:, quarter] = turned(faces, quarter)
    return result.reshape(-1, *first.shape[1:])
