"""The spectral dichotomy: does a kernel's maximiser collapse to one point, whatever the labels? (second document §3.4)

For linear Toeplitz kernels and labels uniform on the circle the largest Fourier coefficient of κ decides: κ̂_0 gives a
Dirac, any other a great circle, E = κ̂_{k*}/2.  A kernel that changes sign may still collapse (.6 + cos s does).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.labels import Labels
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.profiles import Linear
from tokensphere.validation.maximisers import fourier_coefficients, maximal_energy

Array = NDArray[np.float64]

COLLAPSE, SPREAD, CHOICE, OPEN = "collapse", "no collapse", "depends on u0", "open"
FIXED = 1e-9


@dataclass(frozen=True, eq=False)
class Dichotomy:
    """Verdict on a kernel.

    Attributes:
        verdict: "collapse" (every maximiser has a Dirac as content marginal), "no collapse" (none has), "depends on
            u0" (gauge kernels whose gauge fixes some u0), or "open" (search for it: ``maximisers.search``).
        reason: one sentence.
        changes_sign: whether b takes both signs.
        coefficients: κ̂_k of a Toeplitz kernel on a uniform circle of labels, else None.
        energy: the largest energy where known.
        fixed: (k, d) orthonormal basis of the u0 whose orbit under a gauge is one point, else None.
    """

    verdict: str
    reason: str
    changes_sign: bool
    coefficients: Array | None
    energy: float | None
    fixed: Array | None = None


def dichotomy(labels: Labels, kernel: Kernel, dimension: int) -> Dichotomy:
    """Decide by theorem where one applies, and say "open" where none does (facts 2, 8, 9 and 10 of theory §2.3)."""
    mixing = kernel.mixing(labels)
    signs = bool(mixing.min() < 0 < mixing.max())
    coefficients = None if kernel.is_gauge or not kernel.is_mixing else fourier_coefficients(labels, mixing)
    energy = maximal_energy(labels, kernel, dimension).energy
    if mixing.min() >= 0 and kernel.is_gauge:
        return _gauge(labels, kernel, dimension, energy)
    if mixing.min() >= 0:
        reason = "b ≥ 0, so that agreeing tokens maximise every pair: labels do not prevent the collapse"
        return Dichotomy(COLLAPSE, reason, signs, coefficients, energy)
    if coefficients is not None and isinstance(kernel.profile, Linear):
        return _toeplitz(coefficients, signs, energy)
    reason = "b changes sign and no theorem covers this profile or label law; search for the best graph law"
    return Dichotomy(OPEN, reason, signs, coefficients, energy)


def _toeplitz(coefficients: Array, signs: bool, energy: float | None) -> Dichotomy:
    order = int(np.argmax(coefficients))
    value = f"κ̂_{order} = {coefficients[order]:.6g} is the largest Fourier coefficient"
    if order == 0:
        reason = f"{value}: a Dirac; the change of sign alone is not enough"
        return Dichotomy(COLLAPSE, reason, signs, coefficients, energy)
    return Dichotomy(SPREAD, f"{value}: the maximiser is a great circle", signs, coefficients, energy)


def _gauge(labels: Labels, kernel: Kernel, dimension: int, energy: float | None) -> Dichotomy:
    fixed = fixed_points(labels, kernel, dimension)
    if len(fixed) == dimension:
        return Dichotomy(COLLAPSE, "the gauge is the same for every label", False, None, energy, fixed)
    if len(fixed) == 0:
        reason = "the gauge moves every u0, so that each maximiser x*(ξ) = Q(ξ)⁻¹u0 is spread out"
        return Dichotomy(SPREAD, reason, False, None, energy, fixed)
    reason = (
        f"x*(ξ) = Q(ξ)⁻¹u0 is one point only for u0 in a subspace of dimension {len(fixed)} (u0 = ±e3 for RoPE on S²); "
        "the start decides u0"
    )
    return Dichotomy(CHOICE, reason, False, None, energy, fixed)


def fixed_points(labels: Labels, kernel: Kernel, dimension: int) -> Array:
    """Orthonormal basis (k, d) of the u0 with Q(ξ)⁻¹u0 the same for all labels."""
    rotations = kernel.gauge(labels, dimension)
    if rotations is None:
        return np.eye(dimension)
    differences = (rotations - rotations[0]).transpose(0, 2, 1).reshape(-1, dimension)
    _, singular, vectors = np.linalg.svd(differences, full_matrices=True)
    return np.asarray(vectors[np.concatenate([singular, np.zeros(dimension)])[:dimension] < FIXED])
