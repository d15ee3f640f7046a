"""How far a density is from the predicted limit: W_p(ρ, Π♯ρ0) with an error bar that includes the mesh's own floor.

Exact for dim E = 1 (two atoms) and dim E = 2 on S² (a law on a circle); where E is everything (γ = 0) Π is the identity
and the distance is that to ρ0 itself.  Source: Theorem 1 of the first document; theory §1.3(e).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.validation.distance import Distance, check_metric
from tokensphere.validation.projection import Projection
from tokensphere.validation.two_atoms import TwoAtoms

if TYPE_CHECKING:
    from tokensphere.validation.circle_limit import CircleLimit

Array = NDArray[np.float64]

CLUSTER_CELLS = 2.0
"""A cluster narrower than this many cells is shaped by numerical diffusion."""


class StartAsLimit:
    """γ = 0: Π is the identity, so the limit is ρ0 itself."""

    def __init__(self, mesh: Mesh, rho0: Array, metric: str, p: float) -> None:
        self.mesh, self.rho0, self.metric, self.p = mesh, rho0, metric, p

    def __call__(self, density: Array) -> Distance:
        """The general distance between two densities."""
        from tokensphere.validation.general import wasserstein

        return wasserstein(self.mesh, density, self.mesh, self.rho0, p=self.p, metric=self.metric)

    def nearest(self, density: Array) -> float:
        """Every point is its own projection: 0."""
        return 0.0

    def floor(self) -> float:
        """A density that equals ρ0 shows 0."""
        return 0.0


class DistanceToLimit:
    """W_p(·, Π♯ρ0) on one mesh, with all geometry computed once: call it with cell averages, often.

    rho0 (cells,) is the initial density per unit area; metric "chordal" or "geodesic"; p ≥ 1. The result is a Distance;
    .floor is what a perfectly concentrated density on this mesh would still show. For dim E = 2 a call gives the cost
    of a nearly optimal plan and `exact` the optimum; for dim E = 1 both are the optimum.
    Raises InputError for a density that is negative, not finite or of the wrong length, or a projection of another d.
    """

    def __init__(
        self, mesh: Mesh, rho0: Array, projection: Projection, metric: str = "chordal", p: float = 2.0
    ) -> None:
        check_metric(metric, p)
        if projection.dimension != mesh.dimension:
            raise InputError(
                f"the projection is for d = {projection.dimension}, but the mesh lies in d = {mesh.dimension}; "
                "use matrices of the mesh's dimension."
            )
        self.mesh, self.projection = mesh, projection
        rho0 = check_density(mesh, rho0)
        self._solver: TwoAtoms | CircleLimit | StartAsLimit
        if projection.multiplicity == mesh.dimension:
            self._solver = StartAsLimit(mesh, rho0, metric, p)
        elif projection.multiplicity == 1:
            self._solver = TwoAtoms(mesh, rho0, projection.basis[:, 0], metric, p)
        else:
            from tokensphere.validation.circle_limit import CircleLimit

            self._solver = CircleLimit(mesh, rho0, projection, metric, p)
        self.floor = self._solver.floor()
        self.cluster_width = cluster_width(mesh)

    def __call__(self, density: Array) -> Distance:
        """Distance with lower ≤ W_p ≤ upper for every law with these cell masses."""
        return self._solver(check_density(self.mesh, density))

    def value(self, density: Array) -> float:
        """The distance alone, without its bracket."""
        density = check_density(self.mesh, density)
        return self._solver.value(density) if isinstance(self._solver, TwoAtoms) else float(self._solver(density))

    def exact(self, density: Array) -> Distance:
        """The optimal plan also for dim E = 2, where it costs a few tenths of a second."""
        density = check_density(self.mesh, density)
        solver = self._solver
        return solver(density) if isinstance(solver, TwoAtoms | StartAsLimit) else solver.exact(density)

    def nearest(self, density: Array) -> float:
        """(∫d(x, Πx)^p dρ)^{1/p}, a lower bound of the distance to any law on E ∩ S^{d−1} (theory §1.3(e))."""
        return self._solver.nearest(check_density(self.mesh, density))


def wasserstein2_to_limit(
    mesh: Mesh, density: Array, rho0: Array, projection: Projection, metric: str = "chordal"
) -> Distance:
    """W2(ρ, Π♯ρ0) of cell averages per unit area: DistanceToLimit used once.  Units: chord length or radians."""
    return DistanceToLimit(mesh, rho0, projection, metric).exact(density)


def w2_floor(mesh: Mesh, projection: Projection, metric: str = "chordal", rho0: Array | None = None) -> float:
    """W2 that a perfectly concentrated density on this mesh still shows; ρ0 uniform unless given."""
    start = np.full(mesh.cells, 1.0 / mesh.total_area) if rho0 is None else rho0
    return DistanceToLimit(mesh, start, projection, metric).floor


def cluster_width(mesh: Mesh) -> float:
    """Width (same unit as W2) below which a cluster on this mesh is numerical diffusion and not physics: two cells."""
    return CLUSTER_CELLS * mesh.width


def check_density(mesh: Mesh, density: Array) -> Array:
    """The density as float64 (cells,); raises InputError unless it is finite, non-negative and not all zero."""
    values = np.ascontiguousarray(density, dtype=np.float64)
    if values.shape != (mesh.cells,):
        raise InputError(f"the density has shape {values.shape}, but the mesh has {mesh.cells} cells; give as many.")
    if not (values.min() >= 0 and 0 < values.max() < np.inf):
        raise InputError("the density has a NaN, infinite or negative entry, or is zero everywhere; correct it.")
    return values
