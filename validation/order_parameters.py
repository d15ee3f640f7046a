"""Numbers that tell a collapsed joint law from one that labels keep apart (theory §2.3)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OrderParameters:
    """Order parameters of a joint law μ.

    Attributes:
        mean: ∫x of the content marginal (d,).
        mean_length: |mean|; 1 for a Dirac, 0 for a great circle.
        second_moments: eigenvalues of ∫xxᵀ, ascending (d,); they sum to 1.
        entropy: −∫log(dμ_ξ/dx) dμ, the entropy per unit area of the slices averaged over labels.
        conditional_spread: mean over labels of 1 − |∫x dμ_ξ|; 0 when every slice is a Dirac.
        largest_spread: its largest value over labels.
    """

    mean: Array
    mean_length: float
    second_moments: Array
    entropy: float
    conditional_spread: float
    largest_spread: float


def slice_means(mesh: Mesh, density: Array, rotations: Array | None = None) -> Array:
    """∫x dμ_ξ (labels, d); with rotations Q (labels, d, d) the density is that of u = Q(ξ)x and x = Qᵀu."""
    means = (density * mesh.areas) @ mesh.centers
    return means if rotations is None else np.einsum("lij,li->lj", rotations, means)


def content_second_moment(mesh: Mesh, labels: Labels, density: Array, rotations: Array | None = None) -> Array:
    """∫xxᵀ of the content marginal (d, d)."""
    products = mesh.centers[:, :, None] * mesh.centers[:, None, :]
    slices = np.tensordot(density * mesh.areas, products, axes=1)
    if rotations is not None:
        slices = rotations.transpose(0, 2, 1) @ slices @ rotations
    return np.asarray(np.tensordot(labels.weights, slices, axes=1))


def order_parameters(mesh: Mesh, labels: Labels, density: Array, rotations: Array | None = None) -> OrderParameters:
    """Order parameters of slices (labels, cells); moments are those of the discrete measure, exact under rotations."""
    means = slice_means(mesh, density, rotations)
    mean = labels.weights @ means
    spread = 1 - np.linalg.norm(means, axis=1)
    logs = np.log(np.where(density > 0, density, 1.0))
    return OrderParameters(
        mean=mean,
        mean_length=float(np.linalg.norm(mean)),
        second_moments=np.asarray(
            np.linalg.eigvalsh(content_second_moment(mesh, labels, density, rotations)), np.float64
        ),
        entropy=-float(labels.weights @ (density * logs) @ mesh.areas),
        conditional_spread=float(labels.weights @ spread),
        largest_spread=float(spread.max()),
    )


@dataclass(frozen=True)
class Shape:
    """What a set of weighted points looks like: a name, the plane's normal and its height, and the worst misfit."""

    name: str
    normal: Array
    height: float
    misfit: float


def recognise(points: Array, weights: Array, tolerance: float = 0.05) -> Shape:
    """Name the support of a graph law x*: A → S^{d−1}: "Dirac", "great circle", "latitude circle" or "curve".

    Circles whose points do not balance about the centre are called "non-uniform …", arcs among them.  A plane section
    {⟨x, n⟩ = c} is fitted by the smallest principal direction n of the points about their mean (on S¹ only "Dirac" and
    "curve" are possible).  ``misfit`` is the largest distance to the shape; angles within ``tolerance`` radians count
    as none.
    """
    mean = weights @ points
    length = float(np.linalg.norm(mean))
    pole = mean / length if length > 0 else np.eye(points.shape[1])[0]
    spread = float(np.arccos(np.clip(points @ pole, -1, 1)).max())
    if length > 0 and spread <= tolerance:
        return Shape("Dirac", pole, 1.0, spread)
    if points.shape[1] == 2:
        return Shape("curve", pole, length, spread)
    centred = points - mean
    _, vectors = np.linalg.eigh((weights[:, None] * centred).T @ centred)
    normal = vectors[:, 0]
    heights = points @ normal
    height = float(weights @ heights)
    misfit = float(np.abs(heights - height).max() / math.sqrt(max(1 - height**2, tolerance**2)))
    if misfit > tolerance:
        return Shape("curve", normal, height, misfit)
    name = "great circle" if abs(height) <= tolerance else "latitude circle"
    balance = float(np.linalg.norm(mean - height * normal)) / math.sqrt(1 - height**2)
    name = name if balance <= tolerance else f"non-uniform {name}"
    return Shape(name, normal if height >= 0 else -normal, abs(height), misfit)
