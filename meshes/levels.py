"""Transfer between nested levels: mass is kept exactly."""

import numpy as np

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.face_map import sphere_point
from tokensphere.meshes.healpix import healpix, healpix_cells
from tokensphere.meshes.mesh import Floats, Integers, Mesh
from tokensphere.meshes.nested import face_coordinates


def children(mesh: Mesh) -> int:
    """Children of a cell one level down: 4 on the sphere, 2 on the circle."""
    return 4 if mesh.kind == "healpix" else 2


def finer(mesh: Mesh, levels: int = 1) -> Mesh:
    """The nested mesh ``levels`` levels down (nside or cells times 2 each)."""
    resolution = mesh.resolution * 2**levels
    return healpix(resolution) if mesh.kind == "healpix" else circle(resolution)


def finer_cells(mesh: Mesh, levels: int = 1) -> Mesh:
    """The nested mesh ``levels`` levels down with centres and areas only: what an integral needs of it."""
    if levels == 0 or mesh.kind == "circle":
        return mesh if levels == 0 else circle(mesh.resolution * 2**levels)
    return healpix_cells(mesh.resolution * 2**levels)


def coarser(mesh: Mesh, levels: int = 1) -> Mesh:
    """The nested mesh ``levels`` levels up.

    Raises:
        InputError: if the mesh has no such level.
    """
    if mesh.resolution % 2**levels:
        allowed = f"only a resolution divisible by {2**levels} can"
        raise InputError(f"{mesh.kind}({mesh.resolution}) cannot be coarsened {levels} times; {allowed}.")
    resolution = mesh.resolution // 2**levels
    return healpix(resolution) if mesh.kind == "healpix" else circle(resolution)


def refine(mesh: Mesh, values: Floats, levels: int = 1) -> Floats:
    """Averages (…, cells) handed to the children unchanged: (…, cells·children^levels)."""
    return np.repeat(values, children(mesh) ** levels, axis=-1)


def coarsen(mesh: Mesh, values: Floats, levels: int = 1) -> Floats:
    """Averages over parents; ``mesh`` is the fine mesh. Sums go in pairs, so coarsen(refine(ρ)) = ρ bitwise."""
    for _ in range(levels if mesh.kind == "circle" else 2 * levels):
        values = (values[..., ::2] + values[..., 1::2]) / 2
    return values


def subcells(mesh: Mesh, cells: Integers, depth: int) -> Floats:
    """Centres in cell coordinates of the equal-area descendants of some cells.

    Args:
        cells: (n,) indices.
        depth: levels down; 4^depth (sphere) or 2^depth (circle) descendants.

    Returns:
        (n, descendants, d) unit vectors; each stands for an equal share of its cell.
    """
    parts = 2**depth
    middles = (np.arange(parts) + 0.5) / parts
    if mesh.kind == "circle":
        angle = (np.asarray(cells)[:, None] + middles) * (2 * np.pi / mesh.resolution)
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    ix, iy, face = (part[:, None] for part in face_coordinates(mesh.resolution, cells))
    x, y = (part.ravel() for part in np.meshgrid(middles, middles, indexing="ij"))
    return sphere_point(face, (ix + x) / mesh.resolution, (iy + y) / mesh.resolution)
