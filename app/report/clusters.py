"""Clusters of a density: the basins of its peaks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Mesh

Array = NDArray[np.float64]

PEAK = 10.0  # a cluster's peak is at least this many times the uniform density
SHARE = 0.02  # and its basin holds at least this share of the mass


@dataclass(frozen=True)
class Cluster:
    """A basin of steepest ascent: its mean direction, share of the mass, and the angle in radians with half of it."""

    direction: tuple[float, ...]
    mass: float
    width: float


def find_clusters(mesh: Mesh, density: Array, peak: float = PEAK, share: float = SHARE) -> list[Cluster]:
    """Clusters of a density (cells,), heaviest first: basins whose peak exceeds ``peak`` times the uniform density.

    Every cell belongs to the local maximum reached by stepping to the highest neighbour. The width cannot be
    less than a cell's centre lies from the mean.
    """
    cells = np.arange(mesh.cells)
    around = np.column_stack([cells, mesh.neighbours])
    # Ranks instead of values: symmetric data have equal cells side by side, and a tie would split a cluster.
    rank = np.empty(mesh.cells, dtype=np.int64)
    rank[np.argsort(density, kind="stable")] = cells
    uphill = around[cells, np.argmax(rank[around], axis=1)]
    while True:
        further = uphill[uphill]
        if np.array_equal(further, uphill):
            break
        uphill = further
    masses = density * mesh.areas
    total = float(masses.sum())
    weight = np.bincount(uphill, masses, mesh.cells)
    tops = np.flatnonzero((weight >= share * total) & (density * mesh.total_area >= peak * total))
    found = []
    for top in tops[np.argsort(-weight[tops], kind="stable")]:
        basin = uphill == top
        mean = masses[basin] @ mesh.centers[basin]
        direction = mean / np.linalg.norm(mean)
        width = _half_mass_angle(mesh.centers[basin] @ direction, masses[basin])
        found.append(Cluster(tuple(float(c) for c in direction), float(weight[top]) / total, width))
    return found


def _half_mass_angle(cosines: Array, masses: Array) -> float:
    """The least angle within which half of the mass lies; unlike a mean square it does not feel a thin tail."""
    order = np.argsort(-cosines, kind="stable")
    reached = np.cumsum(masses[order])
    nearest = int(np.searchsorted(reached, 0.5 * reached[-1]))
    return float(np.arccos(np.clip(cosines[order[nearest]], -1.0, 1.0)))
