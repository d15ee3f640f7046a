"""The attention integral through spherical harmonics: fast, with an error that is absolute and reported.

    F(r u) = ∫ e^{⟨r u, y⟩} dρ(y) = Σ_lm 4π i_l(r) ρ_lm Y_lm(u),    ρ_lm = Σ_j m_j Y*_lm(y_j)

The analysis is exact for the discrete measure.  With G = e^{−r} F the mean is
∇ log F = (e^{−r} ∂_r F / G) u + ∇_S G / (r G).  Source: theory §1.1.
"""

import math

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from tokensphere.meshes.harmonics import degrees_and_orders
from tokensphere.pde.radial import STEPS, band_limit, factorise
from tokensphere.pde.sites import Coefficients, Sites

Array = NDArray[np.float64]

TRUNCATION = 1e-16
"""What the degrees left out may add to e^{−r}F, per unit of mass."""

LOW_RANK = 1e-14
"""Singular values of the radial weights below this fraction of the largest are dropped."""

NOISE = 1.5e-13
"""Error of one synthesis relative to Σ_l max_u |f_l(u)|, measured on smooth, rough and point-like measures."""

BINS = 64

EPSILON = 2.0**-52

SMALLEST = 1e-300
"""Stands for F where there is no mass at all."""

SCALES = tuple((-1.0) ** (7 - a) / (math.factorial(a) * math.factorial(7 - a)) for a in range(8))
"""1 / Π_{b≠a} (a − b): the constant factors of 8-point interpolation."""


class SpectralPlan:
    """Geometry and radial factors of one integral, planned once: sources (m, 3), tilts (n, 3), on S² only.

    Calling it with masses (m,) returns the mean (n, 3), log F (n,) and the floor (n,): a bound on the error of log F
    and on the length of the error of the mean, so inf where nothing is known.  `frame` (3, 3) is an orthogonal matrix
    whose transpose brings the directions of the tilts onto circles of latitude, where synthesis is fastest.  `spread`
    are bounds on the lengths of the tilts: with the same bounds, plans for moving points share their radial factors.
    """

    def __init__(
        self,
        sources: Array,
        tilts: Array,
        frame: Array | None = None,
        spread: tuple[float, float] | None = None,
    ) -> None:
        self._frame = frame
        if frame is not None:
            sources, tilts = sources @ frame, tilts @ frame
        radii = np.linalg.norm(tilts, axis=1)
        directions = tilts / radii[:, None]
        self._sources = Sites(sources)
        self._targets = Sites(directions)
        self._order = self._targets.order
        self._directions = directions
        self._radii = radii
        smallest, largest = spread or (float(radii.min()), float(radii.max()))
        self.lmax = band_limit(largest, TRUNCATION)
        self._degrees, self._orders = degrees_and_orders(self.lmax)
        self._factors = factorise(smallest, largest, self.lmax, LOW_RANK)
        self._position = self._factors.position(radii)

    @property
    def rank(self) -> int:
        """Number of terms of the radial factorisation: 1 or 2 where |Bᵀx| is constant."""
        return self._factors.rank

    def __call__(self, masses: Array) -> tuple[Array, Array, Array]:
        masses, log_scale = scaled(masses)
        coefficients = self._sources.analyse(masses[self._sources.order], self.lmax)
        floors = self._floors(coefficients, float(np.abs(masses).sum()))
        moments = np.zeros((len(self._radii), 4))
        for degrees, table in zip(self._factors.degrees, self._factors.table, strict=True):
            term = coefficients * degrees[self._degrees]
            field = self._targets.values(term, self.lmax)
            gradient = self._targets.gradient(term, self.lmax) if table[:, 0].any() else np.empty((2, 0))
            _accumulate(self._position, self._order, table, field, gradient, moments)
        mean, log_normaliser, floor = np.empty_like(self._directions), *np.empty((2, len(self._radii)))
        _finish(self._directions, self._radii, self._position, moments, floors, mean, log_normaliser, floor)
        return (mean if self._frame is None else mean @ self._frame.T), log_normaliser + log_scale, floor

    def _floors(self, coefficients: Coefficients, mass: float) -> Array:
        """Bound (BINS+1,) on the absolute error of G, of e^{−r}∂_r F and of ∇_S G/r, at edges of the radial table."""
        degree = np.arange(self.lmax + 1.0)
        power = np.abs(coefficients) ** 2 * np.where(self._orders > 0, 2.0, 1.0)
        # No field of degree l exceeds √((2l+1)/4π) times the norm of its coefficients anywhere.
        largest = np.sqrt((2.0 * degree + 1.0) / (4.0 * np.pi) * np.bincount(self._degrees, power))
        edges = np.arange(BINS + 1) * (STEPS // BINS)
        rows = edges + 4 if self._factors.table.shape[1] > 1 else 0 * edges
        factors, slopes = np.moveaxis(np.abs(self._factors.table[:, rows]), -1, 0)
        values = np.abs(self._factors.degrees) @ largest
        gradients = np.abs(self._factors.degrees) @ (largest * np.sqrt(degree * (degree + 1.0)))
        noise = np.maximum(factors.T @ values, slopes.T @ values)
        noise = np.maximum(noise, factors.T @ gradients / self._factors.radius(edges.astype(np.float64)))
        return np.asarray(NOISE * noise + self._factors.residual @ largest + TRUNCATION * mass)


def scaled(masses: Array) -> tuple[Array, float]:
    """Masses over their largest, and its logarithm: squares of coefficients neither over- nor underflow then."""
    largest = float(np.max(masses))
    return (masses / largest, math.log(largest)) if largest > 0.0 else (masses, 0.0)


@njit(cache=True)
def _lagrange(place, weights):  # type: ignore[no-untyped-def]
    """Weights of 8-point interpolation at `place`, and the first table row they apply to."""
    start = min(int(place), STEPS - 1)
    t = place - start + 3.0
    product = 1.0
    for a in range(8):
        weights[a] = product * SCALES[a]
        product *= t - a
    product = 1.0
    for a in range(7, -1, -1):
        weights[a] *= product
        product *= t - a
    return start + 1


@njit(cache=True, parallel=True)
def _accumulate(position, order, table, field, gradient, moments):  # type: ignore[no-untyped-def]
    """moments[point] += (factor·f, slope·f, factor·∂_θ f, factor·∂_φ f/sin θ); `gradient` may have no columns."""
    for task in prange((order.size + 1023) // 1024):
        weights = np.empty(8)
        for column in range(task * 1024, min(order.size, (task + 1) * 1024)):
            point = order[column]
            factor, slope = table[0, 0], table[0, 1]
            if table.shape[0] > 1:
                row = _lagrange(position[point], weights)
                factor, slope = 0.0, 0.0
                for a in range(8):
                    factor += weights[a] * table[row + a, 0]
                    slope += weights[a] * table[row + a, 1]
            moments[point, 0] += factor * field[column]
            moments[point, 1] += slope * field[column]
            if gradient.shape[1] > 0:
                moments[point, 2] += factor * gradient[0, column]
                moments[point, 3] += factor * gradient[1, column]


@njit(cache=True, parallel=True)
def _finish(directions, radii, position, moments, floors, mean, log_normaliser, floor):  # type: ignore[no-untyped-def]
    """Mean, log F and floor from the moments (G, e^{−r}∂_r F, ∂_θ G, ∂_φ G/sin θ)."""
    for i in prange(radii.size):
        x, y, z = directions[i]
        across = np.hypot(x, y)
        cosine, sine = (x / across, y / across) if across > 0.0 else (1.0, 0.0)
        bin_index = min(int(position[i]) // (STEPS // BINS), BINS - 1)
        error = max(floors[bin_index], floors[bin_index + 1])
        total = max(moments[i, 0], error, SMALLEST)
        radial, south, east = moments[i, 1], moments[i, 2] / radii[i], moments[i, 3] / radii[i]
        mean[i, 0] = (radial * x + south * z * cosine - east * sine) / total
        mean[i, 1] = (radial * y + south * z * sine + east * cosine) / total
        mean[i, 2] = (radial * z - south * across) / total
        length = np.sqrt(mean[i, 0] ** 2 + mean[i, 1] ** 2 + mean[i, 2] ** 2)
        if length > 1.0:
            mean[i] /= length
        log_normaliser[i] = radii[i] + np.log(total)
        known = moments[i, 0] > 10.0 * error
        floor[i] = 3.0 * error / total + 4.0 * EPSILON * (1.0 + radii[i]) if known else np.inf

