"""Which cell a point lies in."""

import numpy as np

from tokensphere.meshes.mesh import Floats, Integers, Mesh


def locate(mesh: Mesh, points: Floats) -> Integers:
    """Cell indices (n,) of unit vectors (n, d)."""
    if mesh.kind == "healpix":
        import healpy

        return np.asarray(healpy.vec2pix(mesh.resolution, *points.T, nest=True), dtype=np.int64)
    turn = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) % 1.0
    return np.minimum((turn * mesh.resolution).astype(np.int64), mesh.resolution - 1)
