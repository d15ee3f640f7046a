"""The discretisation error of anything computed from a density, from the same run on two nested meshes (Richardson).

With error C h^q on both, fine − exact = (coarse − fine)/(2^q − 1): for every order q ≥ 1 the difference of the two
levels bounds the error of the finer one. That difference is what is reported; the extrapolated value assumes q = 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.mesh import Mesh

Array = NDArray[np.float64]
Functional = Callable[[Mesh, Array], ArrayLike]
"""A number (or an array of them) from a mesh and a density, (cells,) or (saves, cells)."""

ORDER = 2.0


@dataclass(frozen=True, eq=False)
class Refined:
    """A value on the finer mesh with its discretisation error.

    value, coarse, error = |value − coarse| and extrapolated = value + (value − coarse)/(2^q − 1) have one shape;
    order is the q used, observed from three levels or assumed.
    """

    value: Array
    error: Array
    extrapolated: Array
    coarse: Array
    order: float


def two_level(coarse: ArrayLike, fine: ArrayLike, order: float = ORDER) -> Refined:
    """Error and extrapolation from values on meshes whose cells differ by a factor 2 in width.

    Raises InputError for an order that is not positive.
    """
    if not order > 0:
        raise InputError(f"order = {order} cannot be a rate of convergence; use a positive number.")
    fine, coarse = np.asarray(fine, dtype=float), np.asarray(coarse, dtype=float)
    step = fine - coarse
    return Refined(fine, np.abs(step), fine + step / (2.0**order - 1.0), coarse, order)


def observed_order(coarsest: ArrayLike, coarse: ArrayLike, fine: ArrayLike) -> Array:
    """log2 |coarse − coarsest| / |fine − coarse|; inf where the two finest agree."""
    first = np.abs(np.asarray(coarse, dtype=float) - np.asarray(coarsest, dtype=float))
    second = np.abs(np.asarray(fine, dtype=float) - np.asarray(coarse, dtype=float))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(second > 0, np.log2(first / second), np.inf))


def refined_functionals(
    solve: Callable[[Mesh], Array],
    mesh: Mesh,
    functionals: Mapping[str, Functional],
    fine: Array | None = None,
    order: float = ORDER,
) -> dict[str, Refined]:
    """Every functional on `mesh` with its error, from a second run one level coarser.

    solve maps a mesh to its densities (whatever the functionals take); `fine` are those on `mesh` if already known.
    Raises InputError where the mesh has no coarser level.
    """
    below = coarser(mesh, 1)
    coarse = solve(below)
    known = solve(mesh) if fine is None else fine
    return {name: two_level(each(below, coarse), each(mesh, known), order) for name, each in functionals.items()}


def density_error(mesh: Mesh, coarse: Array, fine: Array) -> Array:
    """L1 distance ∫|ρ_h − ρ_2h| (…,) between densities `fine` on `mesh` and `coarse` one level up, on the coarser."""
    below = coarser(mesh, 1)
    return np.asarray(np.sum(np.abs(coarsen(mesh, fine) - coarse) * below.areas, axis=-1))
