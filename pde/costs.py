"""What the methods of the attention integral cost, in microseconds of one core of the machine in docs/benchmarks.md.

Only ratios matter, and only roughly: they decide which method is tried, never what it returns.
"""

import numpy as np
from numpy.typing import NDArray

from tokensphere.pde.attention import Attention
from tokensphere.pde.gridded import WORTHWHILE, grid_degree, grid_nodes
from tokensphere.pde.radial import band_limit
from tokensphere.pde.spectral import TRUNCATION

Array = NDArray[np.float64]


def tree_cost(sources: int, targets: int, concentration: float) -> float:
    """Tree sum over the sphere at β‖B‖ = concentration: a kernel that holds fewer cells is cheaper."""
    return float(targets * (1.0 + 1.8 * (sources / 49152.0) ** 0.4 * (concentration / 100.0) ** -0.8))


def spectral_cost(attention: Attention, points: int) -> float:
    """Spectral sum by the cheaper of its two plans: terms of the radial factorisation times transforms."""
    singular = np.linalg.svd(attention.B, compute_uv=False)
    condition = float(singular[0] / singular[-1])
    lmax = band_limit(attention.beta * float(singular[0]), TRUNCATION)
    if condition < 1.0 + 1e-12:
        return 2.0 * _transforms(points, lmax)
    terms = 10.0 + 6.2 * float(np.log(condition))
    degree = grid_degree(attention)
    if points > WORTHWHILE * grid_nodes(degree):
        return terms * _transforms(grid_nodes(degree), lmax) + 2.0 * _transforms(points, degree)
    return terms * _transforms(points, lmax)


def _transforms(points: int, lmax: int) -> float:
    """A field and its gradient at so many points."""
    return 0.12 * points + 0.25 * lmax**2 * (1.0 + lmax / 300.0)
