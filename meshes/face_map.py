"""The equal-area map from the unit square of a HEALPix base face to the sphere, and its derivatives.

Source: Górski et al. 2005, ApJ 622, 759, §5; the sine of the colatitude and the derivatives are written without the
cancellation at the poles.
"""

import math
from typing import Any

import numpy as np
from numba import njit, prange
from numpy.typing import ArrayLike

from tokensphere.meshes.mesh import Floats, Integers

# Row and longitude of the southern corner of each of the 12 base faces, in units of a face and of π/4.
ROW = np.array([2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4], dtype=np.float64)
LONGITUDE = np.array([1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7], dtype=np.float64)


def sphere_point(face: Integers, u: ArrayLike, v: ArrayLike) -> Floats:
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
    shape, columns = _columns(face, u, v)
    result = np.empty((*shape, 3))
    _points(columns, result.reshape(-1, 3))
    return result


def sphere_tangents(face: Integers, u: ArrayLike, v: ArrayLike) -> tuple[Floats, Floats]:
    """∂X/∂u and ∂X/∂v, each (…, 3), away from the poles themselves."""
    shape, columns = _columns(face, u, v)
    result = np.empty((2, *shape, 3))
    _tangents(columns, result.reshape(2, -1, 3))
    return result[0], result[1]


def turned(vectors: Floats, quarters: int) -> Floats:
    """Vectors (…, 3) turned about the poles by right angles: one takes base face f to f + 1 in its row of four."""
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    result = np.empty_like(vectors)
    result[..., 0], result[..., 1] = ((x, y), (-y, x), (-x, -y), (y, -x))[quarters]
    result[..., 2] = z
    return result


def _columns(face: Integers, u: ArrayLike, v: ArrayLike) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The common shape, and all three arrays flat in it."""
    arrays = (np.asarray(face, dtype=np.int64), np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64))
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    return shape, tuple(np.ascontiguousarray(np.broadcast_to(array, shape)).reshape(-1) for array in arrays)


@njit(cache=True, parallel=True)
def _points(columns: Any, result: Any) -> None:
    face, u, v = columns
    for i in prange(len(face)):
        result[i] = point(face[i], u[i], v[i])


@njit(cache=True, parallel=True)
def _tangents(columns: Any, result: Any) -> None:
    face, u, v = columns
    for i in prange(len(face)):
        result[0, i], result[1, i] = tangents(face[i], u[i], v[i])


@njit(cache=True)
def point(face: int, u: float, v: float) -> tuple[float, float, float]:
    """X(u, v) for compiled loops; see ``sphere_point``."""
    ring, z, longitude, sine_over_ring = cylindrical(face, u, v)[:4]
    sine = sine_over_ring * ring
    return sine * math.cos(longitude), sine * math.sin(longitude), z


@njit(cache=True)
def tangents(face: int, u: float, v: float) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """∂X/∂u and ∂X/∂v for compiled loops; see ``sphere_tangents``."""
    ring, z, longitude, sine_over_ring, slant, cap = cylindrical(face, u, v)
    # In a cap ring = ν falls (north) or grows (south) with u + v; in between it is constant 1.
    if cap == 0.0:
        d_z = 2 / 3
        d_sine = -z * d_z / (sine_over_ring * ring)
    else:
        d_z = abs(cap) * 2 * ring / 3
        d_sine = -cap * (sine_over_ring - ring**2 / (9 * sine_over_ring))
    arc_u = (math.pi / 4) * sine_over_ring * (1.0 + slant * cap)
    arc_v = (math.pi / 4) * sine_over_ring * (-1.0 + slant * cap)
    cosine, sine = math.cos(longitude), math.sin(longitude)
    along_u = (d_sine * cosine - arc_u * sine, d_sine * sine + arc_u * cosine, d_z)
    return along_u, (d_sine * cosine - arc_v * sine, d_sine * sine + arc_v * cosine, d_z)


@njit(cache=True)
def cylindrical(face: int, u: float, v: float) -> tuple[float, float, float, float, float, float]:
    """ν, z, longitude, sin θ/ν, (u − v)/ν, and +1, −1 or 0 in the north cap, the south cap and between."""
    row = ROW[face] - u - v
    ring = min(row, 4 - row, 1.0)
    slant = (u - v) / ring if ring > 0.0 else 0.0
    longitude = (math.pi / 4) * (LONGITUDE[face] + slant)
    if row < 1.0:
        return ring, 1 - ring**2 / 3, longitude, math.sqrt((2 - ring**2 / 3) / 3), slant, 1.0
    if row > 3.0:
        return ring, -(1 - ring**2 / 3), longitude, math.sqrt((2 - ring**2 / 3) / 3), slant, -1.0
    z = (2 - row) * (2 / 3)
    return ring, z, longitude, math.sqrt((1 - z) * (1 + z)), slant, 0.0
