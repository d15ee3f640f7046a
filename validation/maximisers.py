"""Maximisers of E_h[μ] = ½∬h dμdμ among joint laws of given label law ρ: closed forms, and a search otherwise.

By conditional Diracization (theory §2.3, fact 3) it is enough to look among graph laws μ_ξ = δ_{x*(ξ)}, whenever ρ has
no atoms or h is positive semidefinite.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.profiles import Linear
from tokensphere.validation.order_parameters import Shape, recognise

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MaximalEnergy:
    """max E_h where a closed form is known: its value, the shape of the maximiser and why."""

    energy: float | None
    shape: str
    reason: str


def maximal_energy(labels: Labels, kernel: Kernel, dimension: int) -> MaximalEnergy:
    """The largest energy of a joint law, or None with the reason why it has no closed form here (facts 2, 8, 10)."""
    top = float(kernel.profile.value(np.asarray(1.0)))
    mixing = kernel.mixing(labels)
    total = float(labels.weights @ mixing @ labels.weights)
    if mixing.min() >= 0:
        shape = "orbit of one point under Q(ξ)⁻¹" if kernel.is_gauge else "Dirac"
        return MaximalEnergy(top * total / 2, shape, "b ≥ 0 and g is largest at 1: every pair may agree in u")
    if isinstance(kernel.profile, Linear) and not kernel.is_gauge:
        strengths = np.linalg.eigvalsh(mixing * np.sqrt(np.outer(labels.weights, labels.weights)))
        coefficients = fourier_coefficients(labels, mixing)
        if coefficients is not None:
            order = int(np.argmax(coefficients))
            shape = "Dirac" if order == 0 else "great circle"
            reason = f"the largest Fourier coefficient of κ is κ̂_{order} = {coefficients[order]:.6g}"
            return MaximalEnergy(float(strengths[-1]) / 2, shape, reason)
    return MaximalEnergy(None, "unknown", "b changes sign and the profile is not linear: search for the best graph law")


def fourier_coefficients(labels: Labels, mixing: Array) -> Array | None:
    """κ̂_k = ∫κ(s) cos(ks) dρ(s), k = 0…labels/2, of b(ξ,ζ) = κ(ξ−ζ) under the uniform law of a circle; else None."""
    if labels.kind != "circle" or np.ptp(labels.weights) > 1e-12 or not _circulant(mixing):
        return None
    return np.asarray(np.fft.rfft(mixing[0]).real / labels.count)


def _circulant(matrix: Array) -> bool:
    rolled = np.roll(np.roll(matrix, 1, axis=0), 1, axis=1)
    return bool(np.allclose(rolled, matrix, rtol=1e-10, atol=1e-12 * np.abs(matrix).max()))


@dataclass(frozen=True, eq=False)
class GraphLaw:
    """A graph law μ_ξ = δ_{x*(ξ)} found by ascent: points (labels, d), energy and what the restarts did.

    Attributes:
        points: x*(ξ) (labels, d).
        energy: the best found; a lower bound of the maximum.
        energies: (restarts,) final energies, descending.
        gradient: largest |P_x∇E|/weight at the best, 0 at a critical point.
        shape: what the points look like.
    """

    points: Array
    energy: float
    energies: Array
    gradient: float
    shape: Shape


def graph_energy(labels: Labels, kernel: Kernel, points: Array) -> float:
    """E of the graph law of x* (labels, d)."""
    return _Ascent(labels, kernel, points.shape[1]).energy_and_gradient(points)[0]


def search(labels: Labels, kernel: Kernel, dimension: int, random: Generator, restarts: int = 16) -> GraphLaw:
    """Best graph law found by gradient ascent (L-BFGS on x = z/|z|) from uniform random starts: "best found", no proof.

    Raises InputError for fewer than one restart.
    """
    if restarts < 1:
        raise InputError(f"the search was given {restarts} restarts, but it needs at least 1.")
    ascent = _Ascent(labels, kernel, dimension)
    # Matrices this small are multiplied thousands of times: more BLAS threads than one only wait for each other.
    with threadpool_limits(limits=1, user_api="blas"):
        found = [ascent.climb(random.normal(size=(labels.count, dimension))) for _ in range(restarts)]
    order = np.argsort([-energy for energy, _ in found])
    energy, points = found[order[0]]
    _, gradient = ascent.energy_and_gradient(points)
    tangent = gradient - np.sum(gradient * points, axis=1, keepdims=True) * points
    steepest = float((np.linalg.norm(tangent, axis=1) / labels.weights).max())
    energies = np.array([found[k][0] for k in order])
    return GraphLaw(points, energy, energies, steepest, recognise(points, labels.weights))


class _Ascent:
    def __init__(self, labels: Labels, kernel: Kernel, dimension: int) -> None:
        self._pairs = kernel.mixing(labels) * np.outer(labels.weights, labels.weights)
        self._rotations = kernel.gauge(labels, dimension)
        self._profile = kernel.profile

    def energy_and_gradient(self, points: Array) -> tuple[float, Array]:
        images = points if self._rotations is None else np.einsum("lij,lj->li", self._rotations, points)
        cosines = np.clip(images @ images.T, -1, 1)
        energy = 0.5 * float(np.sum(self._pairs * self._profile.value(cosines)))
        pulls = (self._pairs * self._profile.derivative(cosines)) @ images
        back = pulls if self._rotations is None else np.einsum("lij,li->lj", self._rotations, pulls)
        return energy, np.asarray(back)

    def climb(self, start: Array) -> tuple[float, Array]:
        scale = float(np.abs(self._pairs).sum() * self._profile.value(np.asarray(1.0)))

        def cost(flat: Array) -> tuple[float, Array]:
            z = flat.reshape(start.shape)
            size = np.linalg.norm(z, axis=1, keepdims=True)
            x = z / size
            energy, gradient = self.energy_and_gradient(x)
            tangent = (gradient - np.sum(gradient * x, axis=1, keepdims=True) * x) / size
            return -energy / scale, -tangent.ravel() / scale

        options = {"maxiter": 5000, "maxfun": 10000, "ftol": 1e-16, "gtol": 1e-11 / len(start), "maxcor": 20}
        run = minimize(cost, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        z = run.x.reshape(start.shape)
        points = z / np.linalg.norm(z, axis=1, keepdims=True)
        return self.energy_and_gradient(points)[0], points
