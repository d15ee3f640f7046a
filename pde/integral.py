"""The attention integral of a density on a mesh, by the method asked for."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp

Array = NDArray[np.float64]
Integral = tuple[Array, Array]

METHODS = ("auto", "direct", "spectral", "tree")


class AttentionIntegral:
    """∇ log F and log F of F(z) = ∫ e^{⟨z,y⟩} dρ(y) at z = βBᵀx, planned once for fixed points x.

    Integrates the discrete measure Σ_i ρ_i·area_i·δ(centers_i) exactly, by every method; at β = inf it is the closed
    form of the limit.  Calling it with a density (cells,) returns the mean ∇ log F (n, d), never longer than 1, and
    log F (n,); at β = inf the mean is Bᵀx/|Bᵀx| and log F is +inf.  The result depends on the density alone, never on
    earlier calls.  `served` holds the fraction of points each method served in the last call, `floor` the relative
    error bound of the spectral method at each point, where it ran.

    Raises InputError for an unknown method, an rtol outside (0, 1), or points that do not fit the attention.
    """

    def __init__(
        self, mesh: Mesh, attention: Attention, points: Array, method: str = "auto", rtol: float = 1e-8
    ) -> None:
        points = np.asarray(points, dtype=np.float64)
        _check(mesh, attention, points, method, rtol)
        self.served: dict[str, float] = {}
        self.floor: Array | None = None
        self._areas = mesh.areas
        self._apply: Callable[[Array], Integral]
        if attention.zero_temperature:
            self._apply = self._plan_limit(attention, points)
        else:
            self._apply = self._plan_direct(mesh, attention, points)

    def __call__(self, density: Array) -> Integral:
        return self._apply(density)

    def _plan_limit(self, attention: Attention, points: Array) -> Callable[[Array], Integral]:
        directions, infinite = attention.directions(points), np.full(len(points), np.inf)
        self.served = {"limit": 1.0}
        return lambda density: (directions.copy(), infinite.copy())

    def _plan_direct(self, mesh: Mesh, attention: Attention, points: Array) -> Callable[[Array], Integral]:
        tilts, sources = attention.tilts(points), np.ascontiguousarray(mesh.centers)
        self.served = {"direct": 1.0}
        return lambda density: log_sum_exp(tilts, sources, log_masses(density * self._areas))


def attention_mean(
    mesh: Mesh, attention: Attention, density: Array, points: Array, method: str = "auto", rtol: float = 1e-8
) -> Integral:
    """Attention mean ∇ log F (n, d) and log F (n,) at the points (n, d): an `AttentionIntegral` used once.

    Raises InputError as `AttentionIntegral` does, and for a density that is not (cells,), finite, non-negative and
    somewhere positive.
    """
    density = np.asarray(density, dtype=np.float64)
    if density.shape != (mesh.cells,):
        raise InputError(f"the density has shape {density.shape}, but the mesh has {mesh.cells} cells; give one value "
                         "per cell.")
    if not np.isfinite(density).all() or density.min() < 0.0 or density.max() <= 0.0:
        raise InputError(f"the density has values from {density.min()} to {density.max()}, but they must be finite, "
                         "at least 0 and somewhere positive.")
    return AttentionIntegral(mesh, attention, points, method, rtol)(density)


def log_masses(masses: Array) -> Array:
    """log m with −inf for an empty source."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(masses))


def _check(mesh: Mesh, attention: Attention, points: Array, method: str, rtol: float) -> None:
    if method not in METHODS:
        raise InputError(f"method = {method!r} was given, but it must be one of {', '.join(METHODS)}.")
    if not 0.0 < rtol < 1.0:
        raise InputError(f"rtol = {rtol} was given, but the relative tolerance must lie between 0 and 1.")
    if mesh.dimension != attention.dimension:
        raise InputError(f"the attention acts on vectors of {attention.dimension} coordinates, but the mesh lies in "
                         f"{mesh.dimension} dimensions; use a circle with d = 2 and a sphere with d = 3.")
    if points.ndim != 2 or points.shape[1] != attention.dimension:
        raise InputError(f"points has shape {points.shape}, but it must be (n, {attention.dimension}).")
