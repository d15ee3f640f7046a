"""W_p between two densities, each on its own mesh."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import children, coarsen, coarser
from tokensphere.meshes.mesh import Mesh
from tokensphere.validation.cell_geometry import cell_radii
from tokensphere.validation.circular import circular_wasserstein
from tokensphere.validation.distance import Distance, check_metric, cost_of_points
from tokensphere.validation.entropic import entropic_bracket
from tokensphere.validation.transport import BYTES_PER_PAIR, check_masses, match_totals, optimal_plan

Array = NDArray[np.float64]

MEMORY = 5e8
"""Bytes a network simplex may take before the meshes are coarsened: nside 16 against nside 16."""


def wasserstein(
    mesh: Mesh,
    density: Array,
    other_mesh: Mesh,
    other: Array,
    *,
    p: float = 2.0,
    metric: str = "chordal",
    method: str = "auto",
    memory: float = MEMORY,
    epsilon: float = 0.01,
) -> Distance:
    """W_p of two densities, cell averages (cells,) per unit area, of equal total mass (distances are per unit mass).

    method: "circle" (exact for constant cells on S¹, geodesic metric), "exact" (network simplex between cell masses at
    cell centres; meshes whose pair of sizes exceeds `memory` are coarsened), "entropic" (no coarsening, a bracket), or
    "auto": circle where it applies, else exact. lower and upper hold for all laws with these cell masses: they contain
    the rigorous error of standing for a (coarse) cell by its centre, and the entropic bracket.
    Raises InputError for bad densities, p, metric or method; TransportError when a solver does not converge.
    """
    check_metric(metric, p)
    if mesh.dimension != other_mesh.dimension:
        raise InputError("the two densities live on spheres of different dimension; use two circles or two spheres.")
    a = check_masses(np.asarray(density) * mesh.areas, "the first density")
    b = match_totals(a, check_masses(np.asarray(other) * other_mesh.areas, "the second density"))
    a, b = a / a.sum(), b / b.sum()
    if method == "auto":
        method = "circle" if mesh.kind == "circle" and metric == "geodesic" else "exact"
    if method == "circle":
        if mesh.kind != "circle" or metric != "geodesic":
            raise InputError("method='circle' needs meshes of the circle and metric='geodesic'; use method='exact'.")
        value = circular_wasserstein(a, b, p)
        slack = mesh.width + other_mesh.width
        return Distance(value, slack, max(value - slack, 0.0), value + slack, metric, p)
    if method == "exact":
        return _exact(mesh, a, other_mesh, b, p, metric, memory)
    if method == "entropic":
        bracket = entropic_bracket(mesh.centers, a, other_mesh.centers, b, p=p, metric=metric, epsilon=epsilon)
        smear = smearing(mesh, a, 0, p, metric) + smearing(other_mesh, b, 0, p, metric)
        return _with_smear(bracket.value, bracket.lower, bracket.upper, smear, p, metric)
    raise InputError(f"method {method!r} is unknown; use 'auto', 'exact', 'entropic' or 'circle'.")


def smearing(mesh: Mesh, masses: Array, levels: int, p: float, metric: str) -> float:
    """Upper bound of W_p between any law with these cell masses and the masses at the centres of cells `levels` up."""
    ancestor = coarser(mesh, levels) if levels else mesh
    parent = np.arange(mesh.cells) // children(mesh) ** levels
    reach = np.linalg.norm(mesh.centers - ancestor.centers[parent], axis=-1) + cell_radii(mesh)
    if metric == "geodesic":
        reach = 2 * np.arcsin(np.minimum(0.5 * reach, 1.0))
    return float(np.sum(masses * reach**p) ** (1.0 / p))


def coarsening_levels(mesh: Mesh, other_mesh: Mesh, memory: float) -> tuple[int, int]:
    """Levels to go up on each mesh, the finer one first, until n·m pairs fit into `memory` bytes."""
    levels = [0, 0]
    sizes = [mesh.cells, other_mesh.cells]
    meshes = (mesh, other_mesh)
    while sizes[0] * sizes[1] * BYTES_PER_PAIR > memory:
        finest = int(np.argmax(sizes))
        factor = children(meshes[finest])
        smallest = 1 if meshes[finest].kind == "healpix" else 8
        if meshes[finest].resolution // 2 ** (levels[finest] + 1) < smallest:
            raise InputError(f"memory = {memory:g} bytes is too little even for the coarsest meshes; allow more.")
        levels[finest] += 1
        sizes[finest] //= factor
    return levels[0], levels[1]


def _exact(mesh: Mesh, a: Array, other_mesh: Mesh, b: Array, p: float, metric: str, memory: float) -> Distance:
    first, second = coarsening_levels(mesh, other_mesh, memory)
    x, coarse_a = _coarse(mesh, a, first)
    y, coarse_b = _coarse(other_mesh, b, second)
    # Cells without mass would only enlarge the problem.
    i, j = np.flatnonzero(coarse_a), np.flatnonzero(coarse_b)
    cost = cost_of_points(x[i, None], y[None, j], metric, p)
    plan = optimal_plan(coarse_a[i], coarse_b[j], cost, memory=2 * memory)
    smear = smearing(mesh, a, first, p, metric) + smearing(other_mesh, b, second, p, metric)
    return _with_smear(plan.cost, plan.cost - plan.gap, plan.cost, smear, p, metric)


def _coarse(mesh: Mesh, masses: Array, levels: int) -> tuple[Array, Array]:
    if levels == 0:
        return mesh.centers, masses
    return coarser(mesh, levels).centers, coarsen(mesh, masses, levels) * children(mesh) ** levels


def _with_smear(value: float, lower: float, upper: float, smear: float, p: float, metric: str) -> Distance:
    root, low, high = (max(power, 0.0) ** (1.0 / p) for power in (value, lower, upper))
    low, high = max(low - smear, 0.0), high + smear
    return Distance(root, max(high - root, root - low), low, high, metric, p)
