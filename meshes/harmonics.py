"""Spherical harmonics of discrete measures and at free points, through ducc0."""

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Floats

Coefficients = NDArray[np.complex128]
EPSILON = 1e-13


def colatitude_longitude(points: Floats) -> Floats:
    """(n, 2) colatitudes in [0, π] and longitudes in [0, 2π) of unit vectors (n, 3)."""
    colatitude = np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2])
    longitude = np.arctan2(points[:, 1], points[:, 0])
    return np.stack([colatitude, np.where(longitude < 0, longitude + 2 * np.pi, longitude)], axis=1)


def analyse(points: Floats, masses: Floats, degree: int, threads: int = 1) -> Coefficients:
    """a_lm = Σ_j m_j Y*_lm(y_j), m ≥ 0, l ≤ degree, in healpy's order; exact for the discrete measure.

    Args:
        points: (n, 3) unit vectors.
        masses: (n,) or (maps, n).
        threads: with more than one the last digits (5e−16) vary between repeats.

    Returns:
        (coefficients,) or (maps, coefficients).
    """
    import ducc0

    maps = np.atleast_2d(masses)
    place = colatitude_longitude(points)
    rows = [
        ducc0.sht.adjoint_synthesis_general(
            map=row[None], spin=0, lmax=degree, loc=place, epsilon=EPSILON, nthreads=threads
        )[0]
        for row in maps
    ]
    return np.array(rows).reshape(*np.shape(masses)[:-1], -1)


def synthesise(coefficients: Coefficients, points: Floats, degree: int, threads: int = 1) -> Floats:
    """f(x) = Σ_lm a_lm Y_lm(x) of a real field at unit vectors (n, 3); coefficients (…, count), values (…, n)."""
    import ducc0

    place = colatitude_longitude(points)
    rows = [
        ducc0.sht.synthesis_general(alm=row[None], spin=0, lmax=degree, loc=place, epsilon=EPSILON, nthreads=threads)[0]
        for row in np.atleast_2d(coefficients)
    ]
    return np.array(rows).reshape(*np.shape(coefficients)[:-1], len(points))


def degrees_and_orders(degree: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """l and m of every coefficient in healpy's order (m = 0 first, each m with l = m…degree)."""
    l = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])  # noqa: E741
    m = np.concatenate([np.full(degree + 1 - m, m) for m in range(degree + 1)])
    return l, m
