"""The attention integral of a density on a mesh, by the method asked for."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.auto import AutoPlan
from tokensphere.pde.costs import spectral_cost, tree_cost
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.gridded import GriddedPlan, spectral_plan
from tokensphere.pde.sources import log_masses
from tokensphere.pde.spectral import SpectralPlan

if TYPE_CHECKING:
    from tokensphere.pde.tree import TreePlan

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Integral = tuple[Array, Array]

METHODS = ("auto", "direct", "spectral", "tree")

DIRECT_PAIRS = 1_000_000
"""Up to so many pairs of point and cell a direct sum is the fastest method."""


class AttentionIntegral:
    """∇ log F and log F of F(z) = ∫ e^{⟨z,y⟩} dρ(y) at z = βBᵀx, planned once for fixed points x.

    Integrates the discrete measure Σ_i ρ_i·area_i·δ(centers_i) exactly, by every method; at β = inf it is the closed
    form of the limit.  Calling it with a density (cells,) returns the mean ∇ log F (n, d), never longer than 1, and
    log F (n,); at β = inf the mean is Bᵀx/|Bᵀx| and log F is +inf.  A density with a value that is not finite gives
    NaN everywhere.  The result depends on the density alone, never on earlier calls.

    `served` holds the fraction of the points that each method served in the last call, `floor` (n,) the bound on the
    spectral method's error at each point, or None where it did not run.  "auto" meets `rtol` in the mean and in log F.

    Raises InputError for an unknown method, an rtol outside (0, 1), points that do not fit the attention, or the
    spectral method off the sphere.
    """

    def __init__(
        self, mesh: Mesh, attention: Attention, points: Array, method: str = "auto", rtol: float = 1e-8
    ) -> None:
        points = np.ascontiguousarray(points, dtype=np.float64)
        _check(mesh, attention, points, method, rtol)
        self.served: dict[str, float] = {}
        self.floor: Array | None = None
        self._shape = (len(points), attention.dimension)
        self._areas = mesh.areas
        if attention.zero_temperature:
            self._apply = self._limit(attention.directions(points))
            return
        self._tilts = attention.tilts(points)
        self._sources = np.ascontiguousarray(mesh.centers)
        self._apply = self._plan(mesh, attention, points, method, rtol)

    def __call__(self, density: Array) -> Integral:
        return self._apply(density)

    def _plan(
        self, mesh: Mesh, attention: Attention, points: Array, method: str, rtol: float
    ) -> Callable[[Array], Integral]:
        pairs = len(self._tilts) * len(self._sources)
        if method == "direct" or (method == "auto" and pairs <= DIRECT_PAIRS):
            return self._safe("direct", lambda logs, rows: log_sum_exp(self._tilts[_rows(rows)], self._sources, logs))
        if method == "spectral":
            return self._spectral(spectral_plan(self._sources, attention, points))
        tree = _planned_when_needed(self._sources, self._tilts, rtol)
        if method == "tree" or mesh.kind == "circle":
            return self._safe("tree", tree)
        concentration = attention.beta * float(np.linalg.norm(attention.B, 2))
        cost = spectral_cost(attention, len(points)) / tree_cost(mesh.cells, len(points), concentration)
        if cost > 1.0:
            return self._safe("tree", tree)
        spectral = spectral_plan(self._sources, attention, points)
        return self._auto(AutoPlan(self._sources, self._tilts, spectral, tree, rtol, worthwhile=cost))

    def _limit(self, directions: Array) -> Callable[[Array], Integral]:
        self.served = {"limit": 1.0}
        return lambda density: (directions.copy(), np.full(len(directions), np.inf))

    def _safe(self, name: str, plan: Callable[[Array, Indices | None], Integral]) -> Callable[[Array], Integral]:
        self.served = {name: 1.0}
        return lambda density: self._guard(density, lambda masses: plan(log_masses(masses), None))

    def _spectral(self, plan: SpectralPlan | GriddedPlan) -> Callable[[Array], Integral]:
        self.served = {"spectral": 1.0}

        def apply(masses: Array) -> Integral:
            mean, log_normaliser, self.floor = plan(masses)
            return mean, log_normaliser

        return lambda density: self._guard(density, apply)

    def _auto(self, plan: AutoPlan) -> Callable[[Array], Integral]:
        def apply(masses: Array) -> Integral:
            integral = plan(masses, log_masses(masses))
            self.floor = plan.floor
            self.served = {"spectral": plan.spectral_share, "tree": 1.0 - plan.spectral_share}
            return integral

        return lambda density: self._guard(density, apply)

    def _guard(self, density: Array, apply: Callable[[Array], Integral]) -> Integral:
        masses = density * self._areas
        if not np.isfinite(masses).all():
            return np.full(self._shape, np.nan), np.full(self._shape[0], np.nan)
        return apply(masses)


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


def _planned_when_needed(sources: Array, tilts: Array, rtol: float) -> Callable[[Array, Indices | None], Integral]:
    """A `TreePlan` made at its first call: many runs begin where the spectral method serves every point."""

    @cache
    def plan() -> "TreePlan":
        from tokensphere.pde.tree import TreePlan

        return TreePlan(sources, tilts, rtol)

    return lambda logs, rows: plan()(logs, rows)


def _rows(rows: Indices | None) -> Indices | slice:
    return slice(None) if rows is None else rows


def _check(mesh: Mesh, attention: Attention, points: Array, method: str, rtol: float) -> None:
    if method not in METHODS:
        raise InputError(f"method = {method!r} was given, but it must be one of {', '.join(METHODS)}.")
    if method == "spectral" and mesh.kind != "healpix":
        raise InputError("method = 'spectral' needs a sphere, but the mesh is a circle; use auto, direct or tree.")
    if not 0.0 < rtol < 1.0:
        raise InputError(f"rtol = {rtol} was given, but the relative tolerance must lie between 0 and 1.")
    if mesh.dimension != attention.dimension:
        raise InputError(f"the attention acts on vectors of {attention.dimension} coordinates, but the mesh lies in "
                         f"{mesh.dimension} dimensions; use a circle with d = 2 and a sphere with d = 3.")
    if points.ndim != 2 or points.shape[1] != attention.dimension or not np.isfinite(points).all():
        raise InputError(f"points has shape {points.shape}, but it must be (n, {attention.dimension}) unit vectors.")
