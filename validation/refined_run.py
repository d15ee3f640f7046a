"""What a run reports about its density, with the discretisation error of every number: two nested meshes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.limiter import limited_gradient
from tokensphere.validation.cell_geometry import half_space_mass
from tokensphere.validation.projection import Projection
from tokensphere.validation.refinement import ORDER, Functional, Refined, density_error, two_level
from tokensphere.validation.wasserstein import DistanceToLimit

Array = NDArray[np.float64]


def limit_functionals(
    mesh: Mesh, rho0: Array, projection: Projection | None, metric: str = "chordal"
) -> dict[str, Functional]:
    """Functionals of densities (saves, cells) on this mesh, each giving (saves,).

    mean_x, mean_y(, mean_z), density_min, density_max; where there is a limit with a gap also w2_to_limit, w2_nearest
    (theory §1.3(e)) and, for dim E = 1, mass_on_side: the mass with ⟨x,e⟩ > 0.
    """
    found: dict[str, Functional] = {f"mean_{name}": _mean(axis) for axis, name in enumerate("xyz"[: mesh.dimension])}
    found["density_min"] = lambda m, rho: rho.min(axis=-1)
    found["density_max"] = lambda m, rho: rho.max(axis=-1)
    if projection is None or projection.gap == 0:
        return found
    distance = DistanceToLimit(mesh, rho0, projection, metric)
    found["w2_to_limit"] = lambda m, rho: np.array([float(distance(each)) for each in rho])
    found["w2_nearest"] = lambda m, rho: np.array([distance.nearest(each) for each in rho])
    if projection.multiplicity == 1:
        e = projection.basis[:, 0]
        found["mass_on_side"] = lambda m, rho: np.array(
            [half_space_mass(m, each, limited_gradient(m, each), e) for each in rho]
        )
    return found


def _mean(axis: int) -> Functional:
    return lambda mesh, density: density @ (mesh.areas * mesh.centers[:, axis])


def refined_run(
    mesh: Mesh,
    rho0: Array,
    solve: Callable[[Mesh, Array], Array],
    projection: Projection | None,
    metric: str = "chordal",
    fine: Array | None = None,
) -> dict[str, Refined]:
    """Every number of `limit_functionals` with its discretisation error, from this mesh and the next coarser one.

    solve(mesh, rho0) gives densities (saves, cells); `fine` are those on `mesh` if already known. The coarse run starts
    from the exact coarsening of ρ0. "density_l1" is ∫|ρ_h − ρ_2h|, which bounds the density's own error; its
    extrapolated value is what second order expects of that error.
    Raises InputError where the mesh has no coarser level.
    """
    below = coarser(mesh, 1)
    start = coarsen(mesh, rho0)
    coarse = solve(below, start)
    known = solve(mesh, rho0) if fine is None else fine
    here, there = (limit_functionals(m, rho, projection, metric) for m, rho in ((mesh, rho0), (below, start)))
    found = {name: two_level(there[name](below, coarse), here[name](mesh, known)) for name in here}
    gap = density_error(mesh, coarse, known)
    found["density_l1"] = Refined(gap, gap, gap / (2.0**ORDER - 1.0), gap, ORDER)
    return found


def as_document(times: Array, refined: dict[str, Refined]) -> dict[str, Any]:
    """Plain lists for summary.json: value, error and extrapolated value of every number at every save time."""
    return {
        "times": np.asarray(times).tolist(),
        **{
            name: {
                "value": each.value.tolist(),
                "error": each.error.tolist(),
                "extrapolated": each.extrapolated.tolist(),
            }
            for name, each in refined.items()
        },
    }
