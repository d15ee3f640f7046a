"""Radial weights of the spectral attention integral, and their low-rank factorisation where |Bᵀx| varies.

F(r u) = Σ_lm 4π i_l(r) ρ_lm Y_lm(u) with i_l the modified spherical Bessel function of the first kind.  Everything here
is scaled by e^{−r}, so that nothing overflows; e^{−r} i_l(r) dies like e^{−l(l+1)/2r}.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from tokensphere.pde.bessel import scaled_spherical

Array = NDArray[np.float64]

CONSTANT = 4e-15
"""Radii that differ by less than this, relative, count as one."""

STEPS = 4096
"""Steps of the table of radial factors in the Chebyshev angle; 8-point interpolation in it is exact to round-off."""


def radial_weights(radii: Array, lmax: int) -> tuple[Array, Array]:
    """4π e^{−r} i_l(r) and 4π e^{−r} i_l'(r), each (radii, lmax+1), for r > 0; i_l' = i_{l+1} + (l/r) i_l."""
    degrees = np.arange(lmax + 2)
    scaled = 4.0 * np.pi * scaled_spherical(radii, lmax + 1)
    values = scaled[:, :-1]
    return values, scaled[:, 1:] + degrees[:-1] / radii[:, None] * values


def band_limit(radius: float, tolerance: float) -> int:
    """Smallest L with Σ_{l>L} (2l+1) e^{−r} i_l(r) ≤ tolerance: what degrees above L add to F, per unit of mass."""
    trial = int(np.sqrt(2.0 * radius * np.log(1.0 / tolerance)) + 4.0 * np.log(1.0 / tolerance) ** 0.75) + 8
    values, _ = radial_weights(np.array([radius]), trial)
    tail = np.cumsum(((2.0 * np.arange(trial + 1) + 1.0) * values[0] / (4.0 * np.pi))[::-1])[::-1]
    return int(np.argmax(tail <= tolerance)) if (tail <= tolerance).any() else trial


@dataclass(frozen=True, eq=False)
class RadialFactors:
    """4π e^{−r} i_l(r) ≈ Σ_k factor_k(r) degrees_k(l), and i_l' with the same degrees_k and factors slope_k.

    degrees (rank, lmax+1); table (rank, STEPS+9, 2) holds factor and slope on a uniform grid in the Chebyshev angle of
    log r between smallest and largest radius, padded for 8-point interpolation, or one row (rank, 1, 2)
    where the radius is constant; residual (lmax+1,) is the largest error of the factorisation over the radii.
    """

    smallest: float
    largest: float
    degrees: Array
    residual: Array
    table: Array

    @property
    def rank(self) -> int:
        """Number of terms."""
        return len(self.degrees)

    def position(self, radii: Array) -> Array:
        """Place of each radius in the table, from 0 (largest radius) to STEPS (smallest)."""
        if self.smallest == self.largest:
            return np.zeros(len(radii))
        argument = np.log(radii**2 / (self.smallest * self.largest)) / np.log(self.largest / self.smallest)
        return np.asarray(np.arccos(np.clip(argument, -1.0, 1.0)) * (STEPS / np.pi))

    def radius(self, position: Array) -> Array:
        """The radius at a place in the table: the inverse of `position`."""
        exponent = 0.5 * np.cos(position * (np.pi / STEPS))
        return np.asarray(np.sqrt(self.smallest * self.largest) * (self.largest / self.smallest) ** exponent)


@lru_cache(maxsize=8)
def factorise(smallest: float, largest: float, lmax: int, tolerance: float) -> RadialFactors:
    """Radial weights on smallest ≤ r ≤ largest: exact where r is constant, else an SVD at Chebyshev nodes in log r.

    Terms below `tolerance` of the largest singular value are dropped.  A constant radius has one term for i_l, whose
    slope is 0, and one for i_l', whose factor is 0.
    """
    if largest - smallest <= CONSTANT * largest:
        values, slopes = radial_weights(np.array([largest]), lmax)
        table = np.eye(2)[:, None, :]
        return RadialFactors(largest, largest, np.concatenate([values, slopes]), np.zeros(lmax + 1), table)
    span = np.log(largest / smallest)
    count = int(40 + 14 * span)
    angles = np.asarray((np.arange(count) + 0.5) * (np.pi / count), dtype=np.float64)
    values, slopes = radial_weights(np.sqrt(smallest * largest) * np.exp(0.5 * span * np.cos(angles)), lmax)
    both, scale = np.concatenate([values, slopes]), np.sqrt(2.0 * np.arange(lmax + 1) + 1.0)
    left, singular, right = np.linalg.svd(both * scale, full_matrices=False)
    rank = int(np.count_nonzero(singular > tolerance * singular[0]))
    degrees, factors = right[:rank] / scale, left[:, :rank] * singular[:rank]
    residual = np.abs(both - factors @ degrees).max(axis=0)
    table = _table(np.stack([factors[:count], factors[count:]], axis=-1), angles)
    return RadialFactors(smallest, largest, degrees, residual, table)


def _table(values: Array, angles: Array) -> Array:
    """Values at Chebyshev nodes (nodes, rank, 2) → (rank, STEPS+9, 2) at the angles k·π/STEPS, k = −4 … STEPS+4."""
    count = len(angles)
    cosines = np.cos(np.outer(np.arange(count), angles)) * (2.0 / count)
    cosines[0] *= 0.5
    coefficients = np.tensordot(cosines, values, axes=(1, 0))
    grid = np.cos(np.arange(-4, STEPS + 5) * (np.pi / STEPS))  # even in the angle: the padding is exact
    return np.ascontiguousarray(np.moveaxis(chebyshev.chebval(grid, coefficients), -1, 1))
