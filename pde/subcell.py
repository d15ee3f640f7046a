"""Kernels narrower than a cell: how far cells taken as points mislead the attention integral, and the remedy.

With z = βBᵀx the kernel e^{⟨z,y⟩} has the width |z|^{−1/2}.  A lattice of points of spacing s sees it as wide enough
unless |z| s² is above 3 or so: the error of the mean is (4π/(s|z|)) e^{−2π²/(s²|z|)} (Poisson summation of a Gaussian).
Integrating the limited reconstruction on a finer level divides s by 2 per level.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.sources import log_masses

Array = NDArray[np.float64]

STRETCH = {"circle": 1.0, "healpix": 1.6}
"""Square of the widest spacing of cell centres over h²: HEALPix cells are rhombi, up to this much longer than wide."""

FINEST = {"circle": 2**24, "healpix": 512}


def aliasing_error(mesh: Mesh, attention: Attention, levels: int = 0) -> float:
    """Error of the mean from a kernel that is narrow against the cells, `levels` levels below the mesh.

    (4π/(s r)) e^{−2π²/(s² r)} with r = β‖B‖ of the sharpest kernel and s the widest spacing of centres; s/2, the way to
    the nearest centre, once s² r > 2π².  An estimate for smooth densities; 0 at β = inf.
    """
    if attention.zero_temperature:
        return 0.0
    sharpest = attention.beta * float(np.linalg.norm(attention.B, 2))
    spacing = math.sqrt(STRETCH[mesh.kind]) * mesh.width / 2**levels
    blur = 2.0 * math.pi**2 / (spacing**2 * sharpest)
    return float(0.5 * spacing if blur < 1.0 else 2.0 / math.pi * blur * spacing * math.exp(-blur))


def kernel_levels(mesh: Mesh, attention: Attention, tolerance: float = 1e-3, finest: int | None = None) -> int:
    """Levels of `limiter.prolong` that bring `aliasing_error` to the tolerance, known before the run.

    Stops at the resolution `finest` (default nside 512); compare `aliasing_error(mesh, attention, levels)` with the
    tolerance to see whether that was enough.
    """
    limit = FINEST[mesh.kind] if finest is None else finest
    levels = 0
    while aliasing_error(mesh, attention, levels) > tolerance and mesh.resolution * 2 ** (levels + 1) <= limit:
        levels += 1
    return levels


class SubcellEstimate:
    """Error of the attention mean from integrating Σ_i ρ_i·area_i·δ(centers_i) in place of the density.

    The mean at some of the points (n, d) is compared with the mean of the density merged to the next coarser level: the
    error is of second order, so a third of the difference is left; where it falls faster, as that of a kernel about a
    cell wide does, the estimate is up to 5 times too large.  Besides the kernel's width it sees a cluster
    narrower than two cells, whose shape no prolongation restores: a number to warn with.
    Deterministic: a function of the density alone.  Zero at β = inf and on a mesh that has no coarser level.
    """

    def __init__(self, mesh: Mesh, attention: Attention, points: Array, probes: int = 64) -> None:
        self._mesh, self._coarse = mesh, None if mesh.resolution % 2 else coarser(mesh)
        if attention.zero_temperature:
            self._coarse = None
        else:
            self._tilts = np.ascontiguousarray(attention.tilts(points[:: max(1, len(points) // probes)]))

    def __call__(self, density: Array) -> float:
        """Largest estimated error of the mean (vectors no longer than 1) over the probes, for a density (cells,)."""
        if self._coarse is None:
            return 0.0
        fine = log_sum_exp(self._tilts, self._mesh.centers, log_masses(density * self._mesh.areas))[0]
        merged = coarsen(self._mesh, density) * self._coarse.areas
        coarse = log_sum_exp(self._tilts, self._coarse.centers, log_masses(merged))[0]
        return float(np.linalg.norm(fine - coarse, axis=1).max() / 3.0)
