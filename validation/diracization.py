"""Conditional Diracization measured: how far each slice is from a Dirac at a maximiser of the first variation.

Every maximiser of E_h with given label law has supp μ_ξ ⊂ argmax_x V[μ](x,ξ), V[μ](x,ξ) = ∫h((x,ξ),·)dμ
(second document §2.2; theory §2.3, fact 3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.joint_field import spectral_field
from tokensphere.pde.kernels import Kernel
from tokensphere.validation.maximisers import maximal_energy
from tokensphere.validation.order_parameters import Shape, order_parameters, recognise, slice_means

Array = NDArray[np.float64]

SPREAD = 0.05
ENERGY = 0.01
MEAN = 0.01
RESOLVED = 2.0
"""Points this many cell widths apart are one point: slices inside single cells are pinned there (``docs/joint.md``)."""


@dataclass(frozen=True, eq=False)
class Diracization:
    """What the slices of a joint law have become.

    Attributes:
        points: x*(ξ) (labels, d), the direction of each slice's mean, in the fixed frame.
        widths: (labels,) root mean square angle of each slice about x*(ξ), radians.
        gaps: (labels,) (max_x V − ∫V dμ_ξ)/(max_x V − min_x V): 0 where the slice sits on argmax V.
    """

    points: Array
    widths: Array
    gaps: Array


def diracization(
    mesh: Mesh, labels: Labels, kernel: Kernel, density: Array, rotations: Array | None = None
) -> Diracization:
    """Measure slices (labels, cells) of x, or of u = Q(ξ)x when the rotations Q (labels, d, d) are given."""
    own = slice_means(mesh, density)
    own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-300)
    angles = np.arccos(np.clip(own @ mesh.centers.T, -1, 1))
    masses = density * mesh.areas
    field = spectral_field(mesh, labels, kernel, fixed=rotations is None)
    potential = np.broadcast_to(field.potential(density, mesh.centers), density.shape)
    highest, lowest = potential.max(axis=1), potential.min(axis=1)
    inside = np.einsum("ln,ln->l", potential, masses)
    points = own if rotations is None else np.einsum("lij,li->lj", rotations, own)
    return Diracization(
        points=points,
        widths=np.sqrt(np.einsum("ln,ln->l", angles**2, masses)),
        gaps=(highest - inside) / np.maximum(highest - lowest, 1e-300),
    )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a joint law, in one sentence and the numbers behind it.

    Attributes:
        verdict: one sentence; "collapsed at maximal energy" names the mode collapse of the second document.
        collapsed: whether the content marginal is a Dirac.
        energy: E_h. maximal: the largest energy known in closed form, or None.
        mean_length: |∫x| of the content marginal.
        spread: largest 1 − |∫x dμ_ξ| over labels.
        shape: of the points x*(ξ).
    """

    verdict: str
    collapsed: bool
    energy: float
    maximal: float | None
    mean_length: float
    spread: float
    shape: Shape


def outcome(mesh: Mesh, labels: Labels, kernel: Kernel, density: Array, rotations: Array | None = None) -> Outcome:
    """Judge by energy and spread, never by slowness: separated clusters move only at e^{−β(1−cosφ)} (pitfall P27)."""
    field = spectral_field(mesh, labels, kernel, fixed=rotations is None)
    energy = field.energy(density)
    known = maximal_energy(labels, kernel, mesh.dimension).energy
    order = order_parameters(mesh, labels, density, rotations)
    means = slice_means(mesh, density, rotations)
    points = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-300)
    shape = recognise(points, labels.weights, max(0.05, RESOLVED * mesh.width))
    collapsed = order.mean_length > 1 - MEAN
    return Outcome(
        _sentence(collapsed, order.largest_spread, energy, known, shape),
        collapsed,
        energy,
        known,
        order.mean_length,
        order.largest_spread,
        shape,
    )


def _sentence(collapsed: bool, spread: float, energy: float, known: float | None, shape: Shape) -> str:
    if known is None:
        level = f"at energy {energy:.6g}; the largest is not known in closed form"
        best = False
    else:
        best = energy >= known - ENERGY * abs(known)
        level = "at maximal energy" if best else f"at {energy / known:.1%} of the maximal energy"
    if spread > SPREAD:
        return f"not converged: slices are still spread, {level}; separated clusters may be metastable"
    if collapsed:
        return f"collapsed {level}"
    if known is not None and not best:
        return f"not converged: every slice is narrow, but {level}; separated clusters may be metastable"
    return f"not collapsed: the labels hold a {shape.name} {level}"
