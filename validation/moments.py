"""The moment M_p(ρ0) = ∫|P_E x|^{−p} dρ0 of hypothesis H2, by quadrature graded towards the singular set E^⊥."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh

Floats = NDArray[np.float64]
Density = Callable[[Floats], Floats]

PANELS = 40  # dyadic panels towards E^⊥; the last one begins at (π/2)·2^{−40} ≈ 1.4e−12
NODES = 12  # Gauss points per panel: exact to round-off for smooth integrands on panels of ratio 2


@dataclass(frozen=True)
class Moment:
    """M_p with the difference of two quadratures as its error; value is inf where p is not admissible."""

    p: float
    value: float
    error: float


@dataclass(frozen=True)
class Admissible:
    """Supremum of the p with M_p finite: k + q where the mean of ρ0 at distance r from E^⊥ behaves like r^q.

    `uncertainty` is the spread of the local exponents over the smallest scales looked at, `scale` the smallest of them.
    """

    supremum: float
    uncertainty: float
    scale: float


def complement(basis: Floats) -> Floats:
    """Orthonormal basis (d, d−k) of E^⊥ from an orthonormal basis (d, k) of E."""
    full, _ = np.linalg.qr(np.column_stack([basis, np.eye(basis.shape[0])]))
    return np.asarray(full[:, basis.shape[1] : basis.shape[0]])


def _unit_vectors(dimension: int, count: int) -> tuple[Floats, float]:
    """Equally spaced unit vectors of S^{dimension−1} and its total measure (dimension 1: the two signs)."""
    if dimension == 1:
        return np.array([[1.0], [-1.0]]), 2.0
    if dimension != 2:
        raise InputError("moments are integrated on S¹ and S² only; give a mesh of the circle or the sphere.")
    angles = 2 * np.pi * (np.arange(count) + 0.5) / count
    return np.column_stack([np.cos(angles), np.sin(angles)]), 2 * np.pi


def radial_profile(density: Density, basis: Floats, angles: Floats, directions: int = 128) -> Floats:
    """∮ρ over the points at angle α from E^⊥, for each α in (0, π/2): (angles,).

    With x = sin α·u + cos α·w, u in E and w in E^⊥, the surface element is sin^{k−1}α cos^{d−k−1}α dα du dw; the
    profile is the integral over u and w, by the trapezoidal rule with `directions` points on circles.
    """
    rest = complement(basis)
    inside, inside_measure = _unit_vectors(basis.shape[1], directions)
    outside, outside_measure = _unit_vectors(rest.shape[1], directions)
    u, w = inside @ basis.T, outside @ rest.T
    x = np.sin(angles)[:, None, None, None] * u[:, None, :] + np.cos(angles)[:, None, None, None] * w
    values = density(x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])
    return np.asarray(values.mean(axis=(1, 2)) * inside_measure * outside_measure)


def _graded_rule(nodes: int) -> tuple[Floats, Floats]:
    """Angles (PANELS·nodes,) and weights on ((π/2)2^{−PANELS}, π/2), smallest panel last."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    upper = np.pi / 2 * 0.5 ** np.arange(PANELS)[:, None]
    return (upper * (0.75 + 0.25 * x)).ravel(), (upper * 0.25 * w).ravel()


def _powers(angles: Floats, multiplicity: int, dimension: int, p: float) -> Floats:
    return np.asarray(np.sin(angles) ** (multiplicity - 1 - p) * np.cos(angles) ** (dimension - multiplicity - 1))


def _integral(density: Density, basis: Floats, p: float, exponent: float, nodes: int, directions: int) -> float:
    dimension, multiplicity = basis.shape
    angles, weights = _graded_rule(nodes)
    profile = radial_profile(density, basis, angles, directions)
    body = float(np.sum(weights * profile * _powers(angles, multiplicity, dimension, p)))
    # below the last panel the profile is C α^q: its integral is closed, and needed where p is near the supremum
    edge, q = np.pi / 2 * 0.5**PANELS, exponent if np.isfinite(exponent) else 0.0
    last = float(np.mean(profile[-nodes:] * (edge / angles[-nodes:]) ** q))
    return float(body + last * edge ** (multiplicity - p) / (multiplicity - p + q))


def admissible(density: Density, basis: Floats, scale: float = 1e-7, directions: int = 128) -> Admissible:
    """Supremum of p with M_p finite, from the exponent q of the profile on the dyadic scales above `scale`.

    density maps (n, d) unit vectors to (n,) values; basis (d, k) is orthonormal. E = everything gives inf. Where the
    density is exactly 0 within `scale` of E^⊥ every p is admissible. The exponent is read over the (at most eight)
    octaves above `scale`: a density whose power law begins at smaller scales cannot be told from outside.
    """
    dimension, multiplicity = basis.shape
    if multiplicity == dimension:
        return Admissible(np.inf, 0.0, 0.0)
    octaves = np.asarray(scale * 2.0 ** np.arange(8), dtype=np.float64)
    octaves = octaves[octaves < np.pi / 3]
    if len(octaves) < 3:
        return Admissible(float(multiplicity), np.inf, scale)  # too coarse to read any exponent
    profile = radial_profile(density, basis, octaves, directions)
    if np.any(profile <= 0):
        return Admissible(np.inf, 0.0, scale)
    slopes = np.diff(np.log2(profile))
    exponent = float(slopes[:2].mean())
    uncertainty = float(np.abs(slopes[:4] - exponent).max())
    if abs(exponent) <= 2 * uncertainty:
        exponent = 0.0  # no power law beyond what the octaves disagree about: positive and bounded at E^⊥
    return Admissible(multiplicity + exponent, uncertainty, scale)


def moment(
    density: Density, basis: Floats, p: float, known: Admissible | None = None, directions: int = 128
) -> Moment:
    """M_p = ∫|P_E x|^{−p} dρ0 / ∫dρ0 on S¹ or S²; inf where p reaches the supremum of admissible p within its
    uncertainty.

    density maps (n, d) unit vectors to (n,) values of any normalisation; basis (d, k) spans E. The error is the
    difference from a rule with fewer nodes and half the directions, which is what kinks and jumps of ρ0 cost.
    Raises InputError for p that is negative or not finite.
    """
    if not 0 <= p < np.inf:
        raise InputError(f"p is {p}, allowed are finite numbers p >= 0; choose the power of |P_E x| accordingly.")
    if basis.shape[0] == basis.shape[1]:
        return Moment(p, 1.0, 0.0)  # E is everything: |P_E x| = 1
    limit = known or admissible(density, basis, directions=directions)
    if p > 0 and p >= limit.supremum - min(limit.uncertainty, 0.1) - 1e-6:
        return Moment(p, np.inf, 0.0)
    exponent = limit.supremum - basis.shape[1]
    values = []
    for nodes, count in ((NODES, directions), (NODES - 4, directions // 2)):
        mass = _integral(density, basis, 0.0, exponent, nodes, count)
        values.append(_integral(density, basis, p, exponent, nodes, count) / mass)
    return Moment(p, values[0], abs(values[0] - values[1]))


def mesh_density(mesh: Mesh, averages: Floats) -> Density:
    """The limited piecewise linear reconstruction of cell averages as a function of points (n, d), for `moment`."""
    from tokensphere.meshes.locate import locate
    from tokensphere.pde.limiter import limited_gradient

    slopes = limited_gradient(mesh, averages)

    def density(points: Floats) -> Floats:
        cells = locate(mesh, points)
        inside = averages[cells] + np.einsum("nd,nd->n", slopes[cells], points - mesh.centers[cells])
        return np.asarray(np.maximum(inside, 0.0))

    return density
