"""Which cell a point lies in."""

import numpy as np

from tokensphere.meshes.mesh import Floats, Integers, Mesh
from tokensphere.meshes.nested import cell_of


def locate(mesh: Mesh, points: Floats) -> Integers:
    """Cell indices (n,) of unit vectors (n, d)."""
    if mesh.kind == "healpix":
        return cell_of(mesh.resolution, points)
    turn = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) % 1.0
    return np.minimum((turn * mesh.resolution).astype(np.int64), mesh.resolution - 1)
