"""Universality as constructions: labels and a kernel with a maximiser whose content marginal is a given law.

Orbit-wise (second document, Theorem 2): any law on the orbit of a point under rotations about e3, by a quantile angle
map.  Gauge (Theorem 4): any law T♯ρ on the sphere, by Householder reflections O(p) with O(p)T(p) = e3.
Both are *a* maximising marginal, reached from starts that gather about e3 in u; random starts pick another u0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels, finite, interval
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.gauge import axis_rotations, householder
from tokensphere.pde.kernels import Kernel, generalised_rope, prefix
from tokensphere.pde.profiles import Profile

Array = NDArray[np.float64]

POLE = np.array([0.0, 0.0, 1.0])
GRID = 8192


@dataclass(frozen=True, eq=False)
class Realisation:
    """Labels and a kernel with a maximiser of the wanted content law.

    Attributes:
        labels: the label space.
        kernel: a gauge kernel; in u = Q(ξ)x the maximiser sits at e3.
        points: x*(ξ) = Q(ξ)⁻¹e3 (labels, 3), with law ``labels.weights``.
        resolution: W1 (geodesic) from the law of the points to the target is at most this.
    """

    labels: Labels
    kernel: Kernel
    points: Array
    resolution: float


def quantile(law: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The quantile function [0, 1] → [0, 2π] of an angle density, up to a factor.

    Raises InputError for a density that is negative, not finite or without mass.
    """
    angles: Array = (np.arange(GRID, dtype=np.float64) + 0.5) * (2 * math.pi / GRID)
    values = np.asarray(law(angles), dtype=np.float64)
    if values.shape != angles.shape or not np.isfinite(values).all() or values.min() < 0 or values.sum() <= 0:
        raise InputError(
            "the target law of the angle must be a finite, non-negative density that is somewhere positive."
        )
    cumulative = np.concatenate([[0.0], np.cumsum(values) / values.sum()])
    edges = np.linspace(0, 2 * math.pi, GRID + 1)
    # Flat stretches carry no mass: keep their right ends out, so that the inverse is single-valued.
    rising = np.concatenate([[True], np.diff(cumulative) > 0])
    return lambda share: np.interp(share, cumulative[rising], edges[rising])


def orbit_universality(law: Callable[[Array], Array], count: int, colatitude: float, profile: Profile) -> Realisation:
    """RoPE with a quantile angle map: x* runs through the latitude circle with the given density of the longitude.

    Q(ξ) = A R_{−φ(ξ)}, φ the quantile function, ξ uniform on [0, 1], A the rotation that takes the point at
    ``colatitude`` and longitude 0 to e3: A is a change of u alone, h is RoPE with the angles −φ(ξ).

    Args:
        law: density of the longitude, up to a factor.
        count: labels.
        colatitude: of the circle, strictly between 0 and π.
        profile: g.
    """
    if not 0 < colatitude < math.pi:
        raise InputError(f"the colatitude {colatitude} was given, but a circle needs one strictly between 0 and π.")
    inverse = quantile(law)
    tilt = axis_rotations(np.array([-colatitude]), (0.0, 1.0, 0.0))[0]
    labels = interval(count)
    kernel = generalised_rope(profile, rotation=lambda xi: tilt @ axis_rotations(-inverse(xi)))
    longitude = inverse(labels.points)
    points = np.stack(
        [
            math.sin(colatitude) * np.cos(longitude),
            math.sin(colatitude) * np.sin(longitude),
            np.full(count, math.cos(colatitude)),
        ],
        axis=1,
    )
    shares = (np.arange(GRID) + 0.5) / GRID
    nearest = np.minimum((shares * count).astype(int), count - 1)
    resolution = math.sin(colatitude) * float(np.abs(inverse(shares) - longitude[nearest]).mean())
    return Realisation(labels, kernel, points, resolution)


def gauge_universality(mesh: Mesh, target: Array, count: int, profile: Profile) -> Realisation:
    """Prefix tokens O(p) with O(p)T(p) = e3: the content law T♯ρ is the target, cut into ``count`` compact parts.

    The target's cells are bisected along their longest direction into parts of nearly equal mass; T(p) is a part's
    mean direction and ρ(p) its mass.

    Args:
        target: (cells,) density on ``mesh`` (d = 3), of mass 1.
        count: prefixes.
        profile: g.
    """
    density = np.asarray(target, dtype=np.float64)
    if density.shape != (mesh.cells,) or not np.isfinite(density).all() or density.min() < 0 or density.max() <= 0:
        raise InputError(f"the target must be a finite, non-negative density of shape ({mesh.cells},).")
    masses = density * mesh.areas
    parts = _bisect(np.flatnonzero(masses), mesh.centers, masses, count)
    weights = np.array([masses[part].sum() for part in parts])
    means = np.array([masses[part] @ mesh.centers[part] for part in parts])
    points = means / np.linalg.norm(means, axis=1, keepdims=True)
    reach = [
        float(masses[part] @ np.arccos(np.clip(mesh.centers[part] @ point, -1, 1)))
        for part, point in zip(parts, points, strict=True)
    ]
    labels = finite(weights)
    kernel = prefix(householder(points, POLE), profile)
    return Realisation(labels, kernel, points, sum(reach) / float(weights.sum()))


def _bisect(cells: NDArray[np.int64], centers: Array, masses: Array, count: int) -> list[NDArray[np.int64]]:
    if count < 1 or len(cells) < count:
        raise InputError(
            f"{count} prefixes were asked for, but the target has {len(cells)} cells with mass; use fewer."
        )
    if count == 1:
        return [cells]
    own = masses[cells]
    centred = centers[cells] - own @ centers[cells] / own.sum()
    _, vectors = np.linalg.eigh((own[:, None] * centred).T @ centred)
    order = np.argsort(centred @ vectors[:, -1], kind="stable")
    first = count // 2
    cumulative = np.cumsum(own[order])
    cut = int(np.searchsorted(cumulative, cumulative[-1] * first / count))
    cut = min(max(cut + 1, first), len(cells) - (count - first))
    left, right = cells[order[:cut]], cells[order[cut:]]
    return _bisect(left, centers, masses, first) + _bisect(right, centers, masses, count - first)


def distance_to_target(mesh: Mesh, realisation: Realisation, density: Array, rotations: Array) -> float:
    """An upper bound of W1 (geodesic) between the content law of u-slices (labels, cells) and the target.

    Couples label by label: every slice goes to x*(ξ), and x*(ξ) to its part of the target.
    """
    angles = [
        np.arccos(np.clip((mesh.centers @ turn) @ point, -1, 1))
        for turn, point in zip(rotations, realisation.points, strict=True)
    ]
    slices = np.einsum("ln,ln->l", density * mesh.areas, np.array(angles))
    return float(realisation.labels.weights @ slices) + realisation.resolution
