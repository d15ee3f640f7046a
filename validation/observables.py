"""Harmonic moments of laws on the circle and the sphere, for tokens and for densities alike."""

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import finer
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.limiter import prolong

Array = NDArray[np.float64]

LEVELS = 1
"""Levels by which a density is prolonged before its moments are taken."""


def harmonics(points: Array, degree: int) -> Array:
    """Real harmonics of degrees 1 … degree at unit vectors (n, d): (n, count), each of mean square 1 over S^{d−1}.

    d = 2: √2 cos kθ, √2 sin kθ; d = 3: Σ_m Y_lm(x)Y_lm(y) = (2l+1) P_l(⟨x,y⟩), by the stable three-term recursion of
    the associated Legendre functions.  Columns are ordered by degree.
    """
    if points.shape[-1] == 2:
        angle = np.arctan2(points[..., 1], points[..., 0])
        waves = [part(k * angle) for k in range(1, degree + 1) for part in (np.cos, np.sin)]
        return np.asarray(np.sqrt(2.0) * np.stack(waves, axis=-1))
    z = points[..., 2]
    rotation = points[..., 0] + 1j * points[..., 1]
    columns: dict[int, list[Array]] = {row: [] for row in range(1, degree + 1)}
    sectoral, power = np.ones_like(z), np.ones_like(rotation)
    for m in range(degree + 1):
        if m > 0:
            sectoral = sectoral * np.sqrt((2 * m + 1) / (2 * m))
            power = power * rotation
        before, current = np.zeros_like(z), sectoral
        for l in range(m, degree + 1):  # noqa: E741
            if l > m:
                a = np.sqrt((4 * l * l - 1) / (l * l - m * m))
                b = np.sqrt(((l - 1) ** 2 - m * m) / (4 * (l - 1) ** 2 - 1))
                before, current = current, a * (z * current - b * before)
            if l > 0:
                factor = np.sqrt(2.0) if m > 0 else 1.0
                columns[l].append(factor * current * power.real)
                if m > 0:
                    columns[l].append(factor * current * power.imag)
    return np.stack([column for row in columns.values() for column in row], axis=-1)


def degrees(dimension: int, degree: int) -> NDArray[np.int64]:
    """Degree of every column of `harmonics`."""
    counts = [2 if dimension == 2 else 2 * k + 1 for k in range(1, degree + 1)]
    return np.repeat(np.arange(1, degree + 1), counts)


def energy_weights(dimension: int, degree: int) -> Array:
    """w with 2E|X−Y| − E|X−X'| − E|Y−Y'| = Σ_k w_k (E h_k(X) − E h_k(Y))², h the columns of `harmonics`.

    From |x−y| = 4/3 − Σ_l 4 P_l(⟨x,y⟩)/((2l−1)(2l+3)) on S² and 4/π − Σ_k (8/π) cos kθ/(4k²−1) on S¹.
    """
    l = degrees(dimension, degree).astype(np.float64)  # noqa: E741
    if dimension == 2:
        return np.asarray(4.0 / np.pi / (4.0 * l**2 - 1.0))
    return np.asarray(4.0 / ((2.0 * l - 1.0) * (2.0 * l + 1.0) * (2.0 * l + 3.0)))


def token_moments(positions: Array, weights: Array, degree: int) -> Array:
    """Σ_i w_i h(x_i) (count,) of tokens (n, d)."""
    return np.asarray(weights @ harmonics(positions, degree))


def density_moments(mesh: Mesh, density: Array, degree: int) -> Array:
    """∫h dρ (…, count) of densities (…, cells): the limited reconstruction on nested children, at their centroids."""
    fine = finer(mesh, LEVELS)
    return np.asarray((prolong(mesh, density, LEVELS) * fine.areas) @ harmonics(fine.centers, degree))


def polynomial_maps(dimension: int) -> tuple[Array, Array]:
    """Maps from moments of degrees 1 and 2 to the mean (d, count) and the second moment less I/d (d, d, count)."""
    points = np.random.default_rng(0).normal(size=(40, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    basis = harmonics(points, 2)
    products = points[:, :, None] * points[:, None, :] - np.eye(dimension) / dimension
    mean = np.linalg.lstsq(basis, points, rcond=None)[0]
    second = np.linalg.lstsq(basis, products.reshape(len(points), -1), rcond=None)[0]
    return np.asarray(mean.T, dtype=np.float64), np.asarray(
        second.T.reshape(dimension, dimension, -1), dtype=np.float64
    )
