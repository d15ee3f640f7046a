"""Points of the sphere prepared for spherical-harmonic transforms: once for the geometry, often for the values."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ducc0
import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.harmonics import colatitude_longitude
from tokensphere.pde.threads import threads

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Coefficients = NDArray[np.complex128]

EPSILON = 2.5e-13
"""Accuracy asked of ducc0's nonuniform transforms, close to the best it offers in double precision."""

RING = 1e-12
"""Points lie on a ring when colatitude and spacing fit to this (radians)."""

SMALLEST_RING = 16


class Sites:
    """Unit vectors (n, 3) at which fields f = Σ_lm a_lm Y_lm are synthesised, or masses analysed.

    Points on evenly spaced circles of latitude (two thirds of a HEALPix mesh) go through ring transforms, which are
    several times faster and exact to round-off; the others through nonuniform ones.  Columns of every result and the
    masses are in the order of `order`: column i belongs to point order[i].  Coefficients are in healpy's order.
    Analysis adds fixed parts in a fixed order, so that it repeats bitwise on any number of threads.
    """

    def __init__(self, points: Array, look_for_rings: bool = True) -> None:
        place = colatitude_longitude(points)
        rings = _find_rings(place) if look_for_rings else []
        on_ring = np.concatenate(rings) if rings else np.empty(0, dtype=np.int64)
        if 4 * len(on_ring) < len(points):
            rings, on_ring = [], on_ring[:0]
        alone = np.ones(len(points), dtype=bool)
        alone[on_ring] = False
        free = np.flatnonzero(alone)
        self.order: Indices = np.concatenate([on_ring, free])
        self._on_ring = len(on_ring)
        self._rings = _ring_geometry(rings, place)
        self._free = place[free]

    def values(self, coefficients: Coefficients, lmax: int) -> Array:
        """f (n,)."""
        return np.asarray(self._synthesis(coefficients, lmax, spin=0, mode="STANDARD")[0])

    def gradient(self, coefficients: Coefficients, lmax: int) -> Array:
        """(∂_θ f, ∂_φ f / sin θ) (2, n)."""
        return self._synthesis(coefficients, lmax, spin=1, mode="DERIV1")

    def _synthesis(self, coefficients: Coefficients, lmax: int, spin: int, mode: str) -> Array:
        result = np.empty((1 + spin, len(self.order)))
        common = {"alm": coefficients[None], "lmax": lmax, "spin": spin, "mode": mode, "nthreads": threads()}
        if self._on_ring:
            result[:, : self._on_ring] = ducc0.sht.synthesis(**common, **self._rings)
        if len(self._free):
            result[:, self._on_ring :] = ducc0.sht.synthesis_general(**common, loc=self._free, epsilon=EPSILON)
        return result

    def analyse(self, masses: Array, lmax: int) -> Coefficients:
        """a_lm = Σ_j m_j Y*_lm(y_j), exact for the discrete measure; masses (n,) in the order of `order`."""
        total = np.zeros((lmax + 1) * (lmax + 2) // 2, dtype=np.complex128)
        common = {"lmax": lmax, "spin": 0}
        if self._on_ring:
            ring_masses = masses[None, : self._on_ring]
            total += ducc0.sht.adjoint_synthesis(map=ring_masses, **common, nthreads=threads(), **self._rings)[0]
        halves = np.array_split(np.arange(len(self._free)), 2)
        with ThreadPoolExecutor(min(2, threads())) as pool:
            parts = [
                pool.submit(
                    ducc0.sht.adjoint_synthesis_general,
                    map=np.ascontiguousarray(masses[self._on_ring + half])[None],
                    loc=self._free[half],
                    epsilon=EPSILON,
                    nthreads=1,
                    **common,
                )
                for half in halves
                if len(half)
            ]
        for part in parts:
            total += part.result()[0]
        return total


def _find_rings(place: Array) -> list[Indices]:
    """Evenly spaced sets of points on one circle of latitude each, of SMALLEST_RING points and more."""
    by_colatitude = np.argsort(place[:, 0])
    breaks = np.flatnonzero(np.diff(place[by_colatitude, 0]) > RING) + 1
    if 8 * (len(breaks) + 1) > len(place):
        return []
    groups = np.split(by_colatitude, breaks)
    longitudes = np.where(place[:, 1] > 2.0 * np.pi - RING, 0.0, place[:, 1])
    rings: list[Indices] = []
    for group in groups:
        if len(group) >= SMALLEST_RING:
            rings += _even_parts(group[np.argsort(longitudes[group], kind="stable")], longitudes)
    return rings


def _even_parts(around: Indices, longitudes: Array) -> list[Indices]:
    """The points of one circle of latitude as one or two evenly spaced rings, or nothing."""
    for parts in (1, 2):
        if len(around) % parts == 0:
            size = len(around) // parts
            steps = longitudes[around].reshape(size, parts) - np.arange(size)[:, None] * (2.0 * np.pi / size)
            if np.abs(steps - steps[0]).max() <= RING:
                return [around[part::parts] for part in range(parts)]
    return []


def _ring_geometry(rings: list[Indices], place: Array) -> dict[str, Any]:
    """Arguments by which ducc0 describes the rings."""
    first = np.array([ring[0] for ring in rings], dtype=np.int64)
    sizes = np.array([len(ring) for ring in rings], dtype=np.int64)
    return {
        "theta": place[first, 0],
        "phi0": place[first, 1],
        "nphi": sizes.astype(np.uint64),
        "ringstart": (np.cumsum(sizes) - sizes).astype(np.uint64),
    }
