"""The spectral integral through a coarse grid, for maps |Bᵀx| that vary and many points.

x ↦ e^{−|z|} F(z) with z = βBᵀx is a smooth function on the sphere of tokens too, band-limited to about √cond(B) times
the band limit of F at β.  So it is computed by `SpectralPlan` on a grid just fine enough, analysed there, and
synthesised at the points, which for the face points of a mesh lie on circles of latitude: the rank of the radial
factors no longer multiplies the number of points.
"""

import ducc0
import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from tokensphere.meshes.harmonics import degrees_and_orders
from tokensphere.pde.attention import Attention
from tokensphere.pde.radial import band_limit
from tokensphere.pde.sites import Sites
from tokensphere.pde.spectral import NOISE, SMALLEST, TRUNCATION, SpectralPlan, scaled
from tokensphere.pde.threads import threads

Array = NDArray[np.float64]

TAIL = 1e-12
"""The detour is not taken where the degrees left out may add more than this to e^{−|z|}F, per unit of mass."""

WORTHWHILE = 2.5
"""Points per grid node from which the detour pays."""


def spectral_plan(sources: Array, attention: Attention, points: Array) -> "SpectralPlan | GriddedPlan":
    """The cheaper spectral plan for the tilts βBᵀx of points x (n, 3)."""
    rotation = attention.B.T / np.linalg.norm(attention.B, 2)
    if np.abs(rotation @ rotation.T - np.eye(3)).max() <= 1e-14:
        trivial = np.array_equal(np.abs(rotation), np.eye(3))
        return SpectralPlan(sources, attention.tilts(points), None if trivial else rotation)
    degree = grid_degree(attention)
    if len(points) > WORTHWHILE * grid_nodes(degree) and measured_tail(attention, degree) < TAIL:
        return GriddedPlan(sources, attention, points, degree)
    return SpectralPlan(sources, attention.tilts(points))


def grid_degree(attention: Attention) -> int:
    """A first guess of the degree that resolves x ↦ e^{−|z|} F(z); `measured_tail` says how good it is."""
    singular = np.linalg.svd(attention.B, compute_uv=False)
    condition = float(singular[0] / singular[-1])
    return int(np.sqrt(condition) * band_limit(attention.beta * float(singular[0]), TRUNCATION) + 12.0 * condition)


def grid_nodes(degree: int) -> int:
    """Nodes of the grid for a degree."""
    return 2 * (degree + 1) ** 2


def measured_tail(attention: Attention, degree: int) -> float:
    """What degrees above `degree` hold, at most, of e^{⟨z,y⟩−|z|} for y where the kernel is sharpest.

    Those y are the singular directions of B; the sum over degrees of the largest value that each can take.
    """
    wide = int(1.3 * degree) + 8
    tilts = attention.tilts(_grid(wide))
    lengths = np.linalg.norm(tilts, axis=1)
    maps = np.exp(np.linalg.svd(attention.B)[2] @ tilts.T - lengths)
    return max(float(_largest(row, wide)[degree + 1 :].sum()) for row in _analyse(maps, wide))


class GriddedPlan:
    """Same contract as `SpectralPlan`, for the tilts βBᵀx of points x (n, 3); floors are absolute everywhere."""

    def __init__(self, sources: Array, attention: Attention, points: Array, degree: int) -> None:
        self.lmax = degree
        nodes = attention.tilts(_grid(degree))
        self._inner = SpectralPlan(sources, nodes)
        self._node_radii = np.linalg.norm(nodes, axis=1)
        self._targets = Sites(points)
        self._radii = np.linalg.norm(attention.tilts(points), axis=1)
        self._tail = measured_tail(attention, degree)

    @property
    def rank(self) -> int:
        """Number of terms of the radial factorisation."""
        return self._inner.rank

    def __call__(self, masses: Array) -> tuple[Array, Array, Array]:
        masses, log_scale = scaled(masses)
        mean, log_normaliser, floor = self._inner(masses)
        values = np.exp(log_normaliser - self._node_radii)
        known = np.isfinite(floor)
        error = float((floor * values)[known].max()) / 3.0 if known.any() else np.inf
        coefficients = _analyse(np.concatenate([values[None], values * mean.T]), self.lmax)
        error += self._tail * float(np.abs(masses).sum()) + NOISE * float(_largest(coefficients[0], self.lmax).sum())
        moments = np.stack([self._targets.values(row, self.lmax) for row in coefficients])
        result, log_result, floors = np.empty((len(self._radii), 3)), *np.empty((2, len(self._radii)))
        _finish(self._targets.order, self._radii, moments, error, result, log_result, floors)
        return result, log_result + log_scale, floors


def _grid(degree: int) -> Array:
    """Unit vectors (nodes, 3) of the equidistant (Fejér) grid on which degree `degree` is analysed exactly."""
    colatitudes = (np.arange(degree + 1) + 0.5) * (np.pi / (degree + 1))
    longitudes = np.arange(2 * degree + 2) * (np.pi / (degree + 1))
    sine, cosine = np.sin(colatitudes), np.cos(colatitudes)
    grid = [np.outer(sine, np.cos(longitudes)), np.outer(sine, np.sin(longitudes)), np.outer(cosine, longitudes**0)]
    return np.stack(grid, axis=-1).reshape(-1, 3)


def _analyse(maps: Array, degree: int) -> NDArray[np.complex128]:
    """a_lm (maps, count) of values on the grid."""
    shape = (1, degree + 1, 2 * degree + 2)
    return np.stack([
        ducc0.sht.analysis_2d(map=row.reshape(shape), lmax=degree, spin=0, geometry="F1", nthreads=threads())[0]
        for row in maps
    ])


def _largest(coefficients: NDArray[np.complex128], degree: int) -> Array:
    """The largest value (degree+1,) that the part of each degree can take anywhere."""
    degrees, orders = degrees_and_orders(degree)
    power = np.bincount(degrees, np.abs(coefficients) ** 2 * np.where(orders > 0, 2.0, 1.0))
    return np.asarray(np.sqrt((2.0 * np.arange(degree + 1) + 1.0) / (4.0 * np.pi) * power))


@njit(cache=True, parallel=True)
def _finish(order, radii, moments, error, mean, log_normaliser, floor):  # type: ignore[no-untyped-def]
    """Mean, log F and floor from e^{−|z|}(F, ∇F)."""
    for column in prange(order.size):
        point = order[column]
        total = max(moments[0, column], error, SMALLEST)
        square = 0.0
        for k in range(3):
            mean[point, k] = moments[1 + k, column] / total
            square += mean[point, k] ** 2
        if square > 1.0:
            mean[point] /= np.sqrt(square)
        log_normaliser[point] = radii[point] + np.log(total)
        known = moments[0, column] > 10.0 * error
        floor[point] = 3.0 * error / total + 1e-15 * (1.0 + radii[point]) if known else np.inf
