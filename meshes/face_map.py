"""The equal-area map from the unit square of a HEALPix base face to the sphere, and its derivatives.

Source: Górski et al. 2005, ApJ 622, 759, §5; the sine of the colatitude and the derivatives are written without the
cancellation at the poles.
"""

import math

import numpy as np

from tokensphere.meshes.mesh import Floats, Integers

# Row and longitude of the southern corner of each of the 12 base faces, in units of a face and of π/4.
ROW = np.array([2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4], dtype=np.float64)
LONGITUDE = np.array([1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7], dtype=np.float64)


def sphere_point(face: Integers, u: Floats, v: Floats) -> Floats:
    """X(u, v): the unit vectors of face coordinates in [0, 1]².

    With ν = min(row, 1, 4 − row), row = R_f − u − v: z = 1 − ν²/3 in the caps (|z| > 2/3), z = (2/3)(2 − row) between
    them, and longitude (π/4)(L_f + (u − v)/ν). The Jacobian is π/3 everywhere.

    Args:
        face: base face 0…11, any shape that broadcasts with u and v.
        u: coordinate towards the north-east.
        v: coordinate towards the north-west.

    Returns:
        Array (…, 3).
    """
    ring, sine, z, longitude = _cylindrical(face, u, v)[:4]
    del ring
    return np.stack([sine * np.cos(longitude), sine * np.sin(longitude), z], axis=-1)


def sphere_tangents(face: Integers, u: Floats, v: Floats) -> tuple[Floats, Floats]:
    """∂X/∂u and ∂X/∂v, each (…, 3), away from the poles themselves."""
    ring, sine, z, longitude, sine_over_ring, cap = _cylindrical(face, u, v)
    slant = np.where(cap == 0, 0.0, (u - v) / ring)
    # In a cap ring = ν falls (north) or grows (south) with u + v; in between it is constant 1.
    d_ring = -cap
    d_z = np.where(cap == 0, 2 / 3, np.abs(cap) * 2 * ring / 3)
    d_sine = np.where(
        cap == 0, -z * d_z / sine, (sine_over_ring - ring**2 / (9 * sine_over_ring)) * d_ring
    )
    cosine, sinus = np.cos(longitude), np.sin(longitude)

    def tangent(direction: float) -> Floats:
        arc = (math.pi / 4) * sine_over_ring * (direction - slant * d_ring)
        return np.stack([d_sine * cosine - arc * sinus, d_sine * sinus + arc * cosine, d_z], axis=-1)

    return tangent(1.0), tangent(-1.0)


def _cylindrical(
    face: Integers, u: Floats, v: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """ν, sin θ, z, longitude, sin θ/ν, and +1, −1 or 0 in the north cap, the south cap and between."""
    row = ROW[face] - u - v
    cap = np.where(row < 1, 1.0, np.where(row > 3, -1.0, 0.0))
    ring = np.minimum(np.minimum(row, 4 - row), 1.0)
    z = np.where(cap == 0, (2 - row) * (2 / 3), cap * (1 - ring**2 / 3))
    sine_over_ring = np.where(cap == 0, np.sqrt((1 - z) * (1 + z)), np.sqrt((2 - ring**2 / 3) / 3))
    slant = np.divide(u - v, ring, out=np.zeros(np.shape(row)), where=ring > 0)
    longitude = (math.pi / 4) * (LONGITUDE[face] + slant)
    return ring, sine_over_ring * ring, z, longitude, sine_over_ring, cap
