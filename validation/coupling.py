"""The stability estimate behind Theorem 1, measured: the flow at inverse temperature β coupled to the one at β = ∞.

Let X_t follow v^β[ρ^β_t] and Y_t follow v^∞ from one start. Along geodesics
d/dt dist(X, Y) ≤ |v^β−v^∞|(X) + L dist(X, Y) with L the one-sided Lipschitz constant of v^∞, so in L²

    W2(ρ^β_t, ρ_t) ≤ ∫_0^t e^{L(t−s)} ε(s) ds,   ε(s) = ‖v^β[ρ^β_s] − v^∞‖_{L²(ρ^β_s)}   (geodesic distance).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral

Floats = NDArray[np.float64]


def covariant_gradient(matrix: Floats, interaction: Floats, points: Floats) -> Floats:
    """∇v^∞ (n, d, d) on the tangent spaces at points (n, d), v^∞(x) = P_x M x/|Bᵀx|: entry [i, j] = ∂_j v_i.

    P_x (M/g − Mx (BBᵀx)ᵀ/g³) P_x − ⟨x, Mx⟩/g P_x with g = |Bᵀx|. Its trace is div v^∞ of theory §1.3 (c).
    """
    g = np.linalg.norm(points @ interaction, axis=1)
    Mx = points @ matrix.T
    BBx = points @ interaction @ interaction.T
    tangent = np.eye(points.shape[1]) - points[:, :, None] * points[:, None, :]
    inner = matrix[None] / g[:, None, None] - Mx[:, :, None] * BBx[:, None, :] / g[:, None, None] ** 3
    radial = np.sum(points * Mx, axis=1) / g
    return np.asarray(tangent @ inner @ tangent - radial[:, None, None] * tangent)


def one_sided_constant(matrix: Floats, interaction: Floats, points: Floats) -> float:
    """Largest eigenvalue of the symmetric part of ∇v^∞ on the tangent spaces at points (n, d): L of the estimate."""
    gradients = covariant_gradient(matrix, interaction, points)
    symmetric = (gradients + gradients.transpose(0, 2, 1)) / 2
    # x itself is an eigenvector with eigenvalue 0: push it out of the way
    normal = points[:, :, None] * points[:, None, :]
    floor = np.abs(symmetric).sum(axis=(1, 2))[:, None, None]
    return float(np.linalg.eigvalsh(symmetric - floor * normal)[:, -1].max())


def velocity_errors(mesh: Mesh, attention: Attention, densities: Floats) -> tuple[Floats, Floats]:
    """‖v^β[ρ]−v^∞‖ in L²(ρ) and in the supremum over the cell centres, for each of densities (saves, cells)."""
    points, value = mesh.centers, attention.value
    images = points @ attention.B
    targets = images / np.linalg.norm(images, axis=1, keepdims=True)
    integral = AttentionIntegral(mesh, attention, points)
    mean_square, largest = [], []
    for density in np.atleast_2d(densities):
        mean, log_normaliser = integral(density)
        pulled = mean @ value.T
        if not attention.normalised:
            pulled = pulled * np.exp(log_normaliser)[:, None]
        difference = pulled - targets @ value.T
        difference -= np.sum(difference * points, axis=1, keepdims=True) * points
        squares = np.sum(difference**2, axis=1)
        mean_square.append(float(np.sqrt(squares @ (density * mesh.areas))))
        largest.append(float(np.sqrt(squares.max())))
    return np.array(mean_square), np.array(largest)


def gronwall(times: Floats, errors: Floats, constant: float) -> Floats:
    """∫_0^t e^{L(t−s)} ε(s) ds at every save (saves,), ε linear between saves and the exponential exact."""
    right = np.zeros(len(times))
    for index, dt in enumerate(np.diff(times)):
        a, b = errors[index], errors[index + 1]
        x = constant * dt
        if abs(x) < 1e-3:
            # the series of the moments below, which cancel for small x
            held, rising = dt * (1 + x / 2 + x**2 / 6), dt * (0.5 + x / 6 + x**2 / 24)
        else:
            held = dt * np.expm1(x) / x
            rising = dt * (np.expm1(x) - x) / x**2
        right[index + 1] = np.exp(x) * right[index] + a * held + (b - a) * rising
    return right


@dataclass(frozen=True)
class Coupling:
    """Both sides of the stability estimate along a run, arrays (saves,).

    left: W2(ρ^β_t, ρ_t), geodesic; right: the Grönwall integral; constant: L; mean_square, largest: the velocity error
    ε in L²(ρ) and its supremum; holds: left ≤ right within `tolerance` at every save.
    """

    times: Floats
    left: Floats
    right: Floats
    constant: float
    mean_square: Floats
    largest: Floats
    tolerance: float
    holds: bool


def coupling_estimate(
    mesh: Mesh,
    attention: Attention,
    times: Floats,
    densities: Floats,
    cold: Floats,
    distance: Callable[[Floats, Floats], float],
    tolerance: float | None = None,
) -> Coupling:
    """Measured left and right sides of the estimate.

    densities (saves, cells) of ρ^β and cold (saves, cells) of the zero-temperature run from the same start, at `times`;
    distance(ρ, ρ') is a geodesic W2 between cell averages, or a lower bound of it (then `holds` can only err on the
    side of the estimate). tolerance: of the comparison, the cell width if left out. A zero-temperature density that
    has collapsed below the cell width no longer measures the left side.
    """
    constant = one_sided_constant(attention.M, attention.B, mesh.centers)
    mean_square, largest = velocity_errors(mesh, attention, densities)
    left = np.array([distance(warm, other) for warm, other in zip(densities, cold, strict=True)])
    right = gronwall(times, mean_square, constant)
    slack = mesh.width if tolerance is None else tolerance
    return Coupling(times, left, right, constant, mean_square, largest, slack, bool(np.all(left <= right + slack)))
