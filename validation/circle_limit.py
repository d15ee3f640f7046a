"""W_p between a density on S² and the limit Π♯ρ0 on the circle E ∩ S², for dim E = 2.

The cost depends on P_E x only. With φ the angle of P_E x and r its length, c(x, θ) = d(s)^p with s = r cos(φ − θ).
From above: any plan, here x ↦ T(φ) with T the monotone transport of the angles on the circle.
From below: Kantorovich's dual, ∫ min_θ[c(x,θ) − ψ(θ)] dρ + ∫ψ dν for any ψ; the ψ that belongs to T is nearly the best,
and is improved by ascent where the two differ. When Π♯ρ = ν, T is the identity and the plan is exact (theory §1.3(e)).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.limiter import limited_gradient
from tokensphere.validation.cell_geometry import cell_moments, cell_radii, pieces
from tokensphere.validation.circular import cumulative, distribution, optimal_shift, quantile
from tokensphere.validation.distance import Distance, cost_of_cosine, distance_of
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]

DEPTH = 1
RADII = 48
LOOSE = 5e-3
"""Relative gap between plan and dual above which the dual is improved by ascent."""


class CircleLimit:
    """Distance to Π♯ρ0 on the circle E ∩ S², planned once; call it for the plan, `exact` for the dual beside it."""

    def __init__(self, mesh: Mesh, rho0: Array, projection: Projection, metric: str, p: float) -> None:
        self.mesh, self.projection, self.metric, self.p = mesh, projection, metric, p
        self._parts = pieces(mesh, np.arange(mesh.cells), DEPTH)
        flat = projection.coordinates(self._parts.points.reshape(-1, 3))
        self._flat = np.ascontiguousarray(flat)
        self._r = np.minimum(np.linalg.norm(flat, axis=-1), 1.0)
        self._phi = np.mod(np.arctan2(flat[:, 1], flat[:, 0]), 2 * np.pi)
        # About one and a half cells: finer bins would show the lattice of the pieces.
        self.bins = max(32, 4 * mesh.resolution)
        self._bin = np.minimum((self._phi * (self.bins / (2 * np.pi))).astype(np.int64), self.bins - 1)
        self._radii = cell_radii(mesh)
        self._nearest = cell_moments(mesh, lambda x: projection.nearest_distance(x, metric) ** p)
        self._to_circle = projection.nearest_distance(mesh.centers, metric)
        self._resting = cost_of_cosine(self._r, metric, p)
        self.target = self._angles(self._masses(rho0, limited_gradient(mesh, rho0)))
        self._G = distribution(self.target)

    def __call__(self, density: Array) -> Distance:
        """The plan x ↦ T(φ), between the nearest-point bound from below and the in-cell bound from above."""
        power, _, _ = self._plan(density)
        return self._wrapped(density, power, 0.0)

    def exact(self, density: Array) -> Distance:
        """The optimum between its dual value and the plan; the dual is improved where they differ noticeably."""
        upper, shift, masses = self._plan(density)
        theta = 2 * np.pi * (np.arange(2 * self.bins)) / (2 * self.bins)
        nu = np.diff(cumulative(self._G, np.append(theta, 2 * np.pi) - np.pi / (2 * self.bins)))
        psi = self._potential(masses, shift, theta)
        lower = self._dual(masses, psi, theta, nu)
        if upper - lower > LOOSE * upper:
            psi = self._ascend(masses, psi, theta, nu)
            lower = max(lower, self._dual(masses, psi, theta, nu))
        lower = min(lower, upper)
        return self._wrapped(density, lower, upper - lower)

    def nearest(self, density: Array) -> float:
        """W_p(ρ, Π♯ρ) = (∫d(x, Πx)^p dρ)^{1/p}, a lower bound of the distance to any law on E ∩ S²."""
        power = np.sum(self._nearest.integrate(density, limited_gradient(self.mesh, density)))
        return float(max(power / np.sum(density * self.mesh.areas), 0.0) ** (1.0 / self.p))

    def floor(self) -> float:
        """W_p of Π♯ρ0 smeared over the cells the circle runs through."""
        count = 16 * self.bins
        theta = 2 * np.pi * (np.arange(count) + 0.5) / count
        points = np.stack([np.cos(theta), np.sin(theta)], axis=-1) @ self.projection.basis.T
        cells = locate(self.mesh, points)
        share = np.diff(cumulative(self._G, np.linspace(0.0, 2 * np.pi, count + 1)))
        average = self._nearest.constant / self.mesh.areas
        return float(np.sum(share * average[cells]) ** (1.0 / self.p))

    def _masses(self, density: Array, gradient: Array) -> Array:
        masses = self._parts.masses(self.mesh, density, gradient).ravel()
        return np.asarray(masses / masses.sum())

    def _angles(self, masses: Array) -> Array:
        return np.asarray(np.bincount(self._bin, weights=masses, minlength=self.bins), dtype=np.float64)

    def _plan(self, density: Array) -> tuple[float, Array, Array]:
        """p-th power of the plan's cost, T(φ) − φ of the pieces, and their masses."""
        gradient = limited_gradient(self.mesh, density)
        masses = self._masses(density, gradient)
        F = distribution(self._angles(masses))
        alpha = optimal_shift(F, self._G, iterations=30)
        grid = np.linspace(0.0, 2 * np.pi, 2 * self.bins + 1)
        # Away from jumps T is read off at bin edges and middles; inside a bin it is linear.
        moved = quantile(self._G, cumulative(F, grid) + alpha) - grid
        shift = np.interp(self._phi, grid, moved)
        excess = cost_of_cosine(self._r * np.cos(shift), self.metric, self.p) - self._resting
        # The nearest-point part by cell moments, which are exact where the pieces are coarse: near the circle.
        nearest = float(np.sum(self._nearest.integrate(density, gradient)) / np.sum(density * self.mesh.areas))
        return nearest + float(np.sum(masses * excess)), np.asarray(shift), masses

    def _potential(self, masses: Array, shift: Array, theta: Array) -> Array:
        """ψ with ψ'(T) = mean of ∂_θ c over the mass sent to T, closed up over the circle."""
        step = 1e-5
        slope = (
            cost_of_cosine(self._r * np.cos(shift + step), self.metric, self.p)
            - cost_of_cosine(self._r * np.cos(shift - step), self.metric, self.p)
        ) / (2 * step)
        count = len(theta)
        arrival = (np.mod(self._phi + shift, 2 * np.pi) * (count / (2 * np.pi))).astype(np.int64) % count
        weight = np.bincount(arrival, weights=masses, minlength=count)
        total = np.bincount(arrival, weights=masses * slope, minlength=count)
        filled = weight > 0
        middle = theta + np.pi / count
        mean = np.interp(middle, middle[filled], total[filled] / weight[filled], period=2 * np.pi)
        mean -= mean.mean()
        # ψ at theta[j] is the integral over the arrival bins before it.
        return np.concatenate([[0.0], np.cumsum(mean)[:-1]]) * (2 * np.pi / count)

    def _dual(self, masses: Array, psi: Array, theta: Array, nu: Array) -> float:
        targets = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
        best, _ = _transform(self._flat, targets, psi, self.p, self.metric == "geodesic")
        return float(masses @ best + nu @ psi)

    def _ascend(self, masses: Array, psi: Array, theta: Array, nu: Array) -> Array:
        """Ascent of the concave dual on mass gathered by (r, φ) cells."""
        from scipy.optimize import minimize

        count = len(theta)
        ring = np.minimum((self._r * RADII).astype(np.int64), RADII - 1)
        key = ring * self.bins + self._bin
        weight = np.bincount(key, weights=masses, minlength=RADII * self.bins)
        used = weight > 0
        weight = weight[used]
        gathered = np.stack(
            [np.bincount(key, weights=masses * column, minlength=len(used))[used] / weight for column in self._flat.T],
            axis=-1,
        )
        targets = np.stack([np.cos(theta), np.sin(theta)], axis=-1)

        def negative(values: Array) -> tuple[float, Array]:
            best, index = _transform(gathered, targets, values, self.p, self.metric == "geodesic")
            gradient = nu - np.bincount(index, weights=weight, minlength=count)
            return -float(weight @ best + nu @ values), -gradient

        result = minimize(negative, psi, jac=True, method="L-BFGS-B", options={"maxiter": 80})
        return np.asarray(result.x)

    def _wrapped(self, density: Array, power: float, gap: float) -> Distance:
        """Add what moving mass inside its cells can change: down to the nearest-point bound, up by the cells' size."""
        share = density * self.mesh.areas / np.sum(density * self.mesh.areas)
        reach = 2 * np.arcsin(0.5 * self._radii) if self.metric == "geodesic" else self._radii
        low = float(np.sum(share * np.maximum(self._to_circle - reach, 0.0) ** self.p))
        smear = float(np.sum(share * (2 * reach) ** self.p) ** (1 / self.p))
        high = (max(power + gap, 0.0) ** (1 / self.p) + smear) ** self.p
        return distance_of(power, low, high, self.metric, self.p)


@njit(cache=True)
def _transform(flat, targets, psi, p, geodesic):  # type: ignore[no-untyped-def]
    """min_j [c(x, θ_j) − ψ_j] and the j that attains it, c = d(⟨P_E x, θ_j⟩)^p; flat (n, 2), targets (m, 2)."""
    best = np.empty(len(flat))
    index = np.empty(len(flat), dtype=np.int64)
    for i in range(len(flat)):
        x, y = flat[i, 0], flat[i, 1]
        lowest, at = np.inf, 0
        for j in range(len(targets)):
            s = min(1.0, max(-1.0, x * targets[j, 0] + y * targets[j, 1]))
            if geodesic:
                cost = np.arccos(s) ** p
            elif p == 2.0:
                cost = 2.0 - 2.0 * s
            else:
                cost = (2.0 - 2.0 * s) ** (0.5 * p)
            if cost - psi[j] < lowest:
                lowest, at = cost - psi[j], j
        best[i], index[i] = lowest, at
    return best, index
