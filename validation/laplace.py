"""The quantitative Laplace principle: how fast attention at inverse temperature β becomes its argmax."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.gradients import gradient
from tokensphere.meshes.levels import finer
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import attention_mean
from tokensphere.pde.limiter import prolong

Floats = NDArray[np.float64]

NARROW = 0.3  # kernels with κh² above this are integrated on a finer level (error about 2e−4 at 1.6 without)


@dataclass(frozen=True)
class LaplaceRow:
    """One β: the suprema over the points of |v^β − v^∞| and W2(η_x, δ_{y*}), and of their leading expansions.

    η_x ∝ e^{β⟨Bᵀx,y⟩}ρ, y* = Bᵀx/|Bᵀx|, κ = β|Bᵀx|:
    E_η y = y*(1−(d−1)/2κ) + ∇log ρ(y*)/κ + O(κ^{−2}), so W2 = √(2−2⟨E_η y, y*⟩) ≈ √((d−1)/κ), and the velocities
    differ by P_x V(∇log ρ(y*) − (d−1)/2 y*)/κ. `velocity_remainder` is the supremum of what the expansion leaves.
    """

    beta: float
    velocity_error: float
    velocity_expansion: float
    velocity_remainder: float
    distance: float
    distance_expansion: float
    levels: int


def attention_limit_errors(
    attention: Attention, points: Floats, mean: Floats, log_slopes: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """|v^β−v^∞| vectors, their expansion, W2(η_x, δ_{y*}) and its expansion at points (n, d).

    mean (n, d) is the attention mean E_η y, log_slopes (n, d) the tangent gradient ∇log ρ at y* = Bᵀx/|Bᵀx|.
    Returns velocity differences (n, d), expansions (n, d), distances (n,), expansions (n,). Softmax attention.
    """
    images = points @ attention.B
    stretch = np.linalg.norm(images, axis=1)
    targets = images / stretch[:, None]
    kappa = attention.beta * stretch
    order = attention.dimension - 1

    def tangent(vectors: Floats) -> Floats:
        pulled = vectors @ attention.value.T
        return np.asarray(pulled - np.sum(pulled * points, axis=1, keepdims=True) * points)

    difference = tangent(mean - targets)
    expansion = tangent((log_slopes - order / 2 * targets) / kappa[:, None])
    distance = np.sqrt(np.maximum(2 - 2 * np.sum(mean * targets, axis=1), 0.0))
    return difference, expansion, distance, np.sqrt(order / kappa)


def laplace_principle(
    mesh: Mesh, attention: Attention, density: Floats, betas: Sequence[float], points: Floats | None = None
) -> list[LaplaceRow]:
    """Velocity error sup|v^β[ρ]−v^∞| and W2(η_x, δ_{y*}) against β for cell averages (cells,), softmax attention.

    points (n, d): where the suprema are taken, the cell centres if left out. Kernels narrower than a cell are
    integrated on a finer level of the limited reconstruction (at most two levels). The velocity error is O(1/β) for
    smooth densities. Source: low-temperature document (quantitative Laplace principle), theory §1.4.
    """
    places = mesh.centers if points is None else points
    images = places @ attention.B
    targets = images / np.linalg.norm(images, axis=1, keepdims=True)
    slopes = gradient(mesh, density)[locate(mesh, targets)] / density[locate(mesh, targets)][:, None]
    slopes = slopes - np.sum(slopes * targets, axis=1, keepdims=True) * targets
    rows = []
    for beta in betas:
        warm = replace(attention, beta=float(beta))
        levels = _levels(mesh, warm)
        fine = finer(mesh, levels) if levels else mesh
        mean, _ = attention_mean(fine, warm, prolong(mesh, density, levels) if levels else density, places)
        difference, expansion, distance, leading = attention_limit_errors(warm, places, mean, slopes)
        rows.append(
            LaplaceRow(
                float(beta),
                _largest(difference),
                _largest(expansion),
                _largest(difference - expansion),
                float(distance.max()),
                float(leading.max()),
                levels,
            )
        )
    return rows


def _largest(vectors: Floats) -> float:
    return float(np.linalg.norm(vectors, axis=1).max())


def _levels(mesh: Mesh, attention: Attention) -> int:
    kappa = attention.beta * float(np.linalg.svd(attention.B, compute_uv=False)[0])
    levels = 0
    while levels < 2 and kappa * (mesh.width / 2**levels) ** 2 > NARROW:
        levels += 1
    return levels
