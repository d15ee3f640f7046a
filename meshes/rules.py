"""Quadrature rules on the unit interval and on the unit square of a cell, from basix."""

from functools import lru_cache

import basix
import numpy as np

from tokensphere.meshes.mesh import Floats


def _rule(cell: basix.CellType, degree: int) -> tuple[Floats, Floats]:
    points, weights = basix.make_quadrature(cell, degree)
    return np.asarray(points, dtype=np.float64), np.asarray(weights, dtype=np.float64)


@lru_cache
def interval_rule(degree: int) -> tuple[Floats, Floats]:
    """Gauss points (q,) and weights (q,) on [0, 1], exact to ``degree``."""
    points, weights = _rule(basix.CellType.interval, degree)
    return points[:, 0], weights


@lru_cache
def square_rule(degree: int) -> tuple[Floats, Floats]:
    """Tensor Gauss points (q, 2) and weights (q,) on [0, 1]²."""
    return _rule(basix.CellType.quadrilateral, degree)


@lru_cache
def kinked_rule(degree: int) -> tuple[Floats, Floats]:
    """The square as the two triangles on either side of the diagonal x + y = 1, where the face map has its kink."""
    lower, weights = _rule(basix.CellType.triangle, degree)
    return np.concatenate([lower, 1 - lower]), np.concatenate([weights, weights])


@lru_cache
def polar_rule(degree: int) -> tuple[Floats, Floats]:
    """The square of a cell with the pole at (1, 1): a collapsed triangle there and a plain triangle beside it.

    Near the pole X is smooth in r = a + b and τ = b/(a + b) only, a = 1 − x, b = 1 − y; da db = r dr dτ.
    """
    nodes, node_weights = interval_rule(degree + 1)
    radius, share = np.meshgrid(nodes, nodes, indexing="ij")
    collapsed = 1 - np.stack([radius * (1 - share), radius * share], axis=-1).reshape(-1, 2)
    collapsed_weights = (node_weights[:, None] * node_weights[None, :] * radius).ravel()
    lower, weights = _rule(basix.CellType.triangle, degree)
    return np.concatenate([lower, collapsed]), np.concatenate([weights, collapsed_weights])
