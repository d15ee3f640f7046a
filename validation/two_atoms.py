"""W_p between a density and two atoms at ±e: the limit Π♯ρ0 for dim E = 1.

The cost difference d(x,e)^p − d(x,−e)^p falls with ⟨x,e⟩, so the optimal plan sends the part {⟨x,e⟩ > τ} to e, with τ
the quantile that gives e its mass p₊ = ρ0(⟨x,e⟩ > 0).  τ is 0 only where ρ still has that mass on e's side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import subcells
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.limiter import limited_gradient
from tokensphere.validation.cell_geometry import Pieces, cell_moments, cell_radii, half_space_mass, pieces
from tokensphere.validation.distance import Distance, cost_of_cosine, cost_of_points, distance_of

Array = NDArray[np.float64]

BAND_DEPTH = 3


@dataclass(frozen=True, eq=False)
class _Band:
    """Cells the threshold may cut, cut into pieces ordered by falling ⟨x, e⟩."""

    step: int
    first: int
    last: int
    parts: Pieces
    order: NDArray[np.int64]
    plus: Array
    minus: Array


class TwoAtoms:
    """Distance to p₊δ_e + p₋δ_{−e}, planned once for a mesh and a target; call it with cell averages.

    rho0 (cells,) gives the target masses by sub-cell quadrature of its limited reconstruction.
    """

    def __init__(self, mesh: Mesh, rho0: Array, e: Array, metric: str, p: float) -> None:
        self.mesh, self.e, self.metric, self.p = mesh, e, metric, p
        gradient = limited_gradient(mesh, rho0)
        total = float(np.sum(rho0 * mesh.areas))
        plus = half_space_mass(mesh, rho0, gradient, e)
        flat = half_space_mass(mesh, rho0, np.zeros_like(gradient), e)
        self.share = plus / total
        # What the reconstruction of the cut cells contributes at all is a safe bound of its error.
        self.share_error = abs(plus - flat) / total

        self._plus = cell_moments(mesh, lambda x: cost_of_points(x, e, metric, p))
        self._minus = cell_moments(mesh, lambda x: cost_of_points(x, -e, metric, p))
        height = mesh.centers @ e
        self._order = np.argsort(-height, kind="stable")
        self._height = height[self._order]
        radius = cell_radii(mesh)
        self._radius = float(radius.max())
        # Chordal radius r bounds the change of angle by 2 arcsin(r/2).
        angle = np.arccos(np.clip(height, -1.0, 1.0))
        swing = 2.0 * np.arcsin(0.5 * radius)
        top, bottom = np.cos(np.maximum(angle - swing, 0.0)), np.cos(np.minimum(angle + swing, np.pi))
        self._nearest_plus, self._farthest_plus = (cost_of_cosine(s, metric, p)[self._order] for s in (top, bottom))
        self._nearest_minus, self._farthest_minus = (cost_of_cosine(-s, metric, p)[self._order] for s in (bottom, top))
        self._band: _Band | None = None

    def __call__(self, density: Array) -> Distance:
        """The exact plan's cost for the limited reconstruction of `density`, with its bracket."""
        mesh, order = self.mesh, self._order
        gradient = limited_gradient(mesh, density)
        mass = (density * mesh.areas)[order]
        total = float(mass.sum())
        wanted = self.share * total
        above = np.cumsum(mass)
        band = self._band_at(int(np.searchsorted(above, wanted)))
        first, last = band.first, band.last
        plus = self._plus.integrate(density, gradient)[order]
        minus = self._minus.integrate(density, gradient)[order]
        rest = wanted - (above[first - 1] if first > 0 else 0.0)
        split, threshold = self._split(band, density, gradient, rest)
        power = (plus[:first].sum() + split + minus[last:].sum()) / total
        lower, upper = self._bracket(mass / total, first, last, rest / total, threshold)
        slack = 2.0**self.p if self.metric == "chordal" else np.pi**self.p
        slack *= self.share_error
        return distance_of(float(power), lower - slack, upper + slack, self.metric, self.p)

    def nearest(self, density: Array) -> float:
        """W_p(ρ, Π♯ρ) = (∫d(x, Πx)^p dρ)^{1/p}: the distance were the masses on both sides those of ρ itself."""
        gradient = limited_gradient(self.mesh, density)
        plus = self._plus.integrate(density, gradient)[self._order]
        minus = self._minus.integrate(density, gradient)[self._order]
        band = self._band_at(int(np.searchsorted(-self._height, 0.0)))
        masses = band.parts.masses(self.mesh, density, gradient).ravel()[band.order]
        cut = float(np.sum(masses * np.minimum(band.plus, band.minus)))
        power = (plus[: band.first].sum() + cut + minus[band.last :].sum()) / float(np.sum(density * self.mesh.areas))
        return float(max(power, 0.0) ** (1.0 / self.p))

    def floor(self) -> float:
        """W_p of all mass spread evenly over the cells that hold e and −e."""
        cells = locate(self.mesh, np.stack([self.e, -self.e]))
        shares = (self.share, 1.0 - self.share)
        power = 0.0
        for cell, atom, share in zip(cells, (self.e, -self.e), shares, strict=True):
            points = subcells(self.mesh, np.array([cell]), 5)[0]
            power += share * float(np.mean(cost_of_points(points, atom, self.metric, self.p)))
        return float(power ** (1.0 / self.p))

    def _band_at(self, index: int) -> _Band:
        """Cells around the height at `index`, two radii and more: all others lie wholly on one side of the quantile.

        Bands stand at whole multiples of a radius, so that a quantile that wanders seldom needs a new one and what is
        integrated depends on the density alone.
        """
        level = self._height[min(index, len(self._height) - 1)]
        step = round(float(level) / self._radius)
        if self._band is None or self._band.step != step:
            height, reach = step * self._radius, 2.5 * self._radius
            first = int(np.searchsorted(-self._height, -(height + reach)))
            last = int(np.searchsorted(-self._height, -(height - reach), side="right"))
            parts = pieces(self.mesh, self._order[first:last], BAND_DEPTH)
            points = parts.points.reshape(-1, self.mesh.dimension)
            order = np.argsort(-(points @ self.e), kind="stable")
            points = points[order]
            plus, minus = (cost_of_points(points, atom, self.metric, self.p) for atom in (self.e, -self.e))
            self._band = _Band(step, first, last, parts, order, plus, minus)
        return self._band

    def _split(self, band: _Band, density: Array, gradient: Array, rest: float) -> tuple[float, float]:
        """Cost of the band when its upper `rest` of mass goes to e, and the price λ = c₊ − c₋ at the threshold."""
        masses = band.parts.masses(self.mesh, density, gradient).ravel()[band.order]
        before = np.cumsum(masses) - masses
        to_plus = np.minimum(np.maximum(rest - before, 0.0), masses)
        cost = float(np.sum(to_plus * band.plus + (masses - to_plus) * band.minus))
        at = min(int(np.searchsorted(before, rest)), len(masses) - 1)
        return cost, float(band.plus[at] - band.minus[at])

    def _bracket(self, mass: Array, first: int, last: int, rest: float, threshold: float) -> tuple[float, float]:
        """p-th powers no law with these cell masses can leave: a dual value from below, a plan from above."""
        dual = np.minimum(self._nearest_plus - threshold, self._nearest_minus)
        lower = float(np.sum(mass * dual)) + threshold * self.share
        remaining = float(mass[first:last].sum()) - rest
        upper = float(np.sum(mass[:first] * self._farthest_plus[:first]))
        upper += float(np.sum(mass[last:] * self._farthest_minus[last:]))
        if last > first:
            upper += rest * float(self._farthest_plus[first:last].max())
            upper += remaining * float(self._farthest_minus[first:last].max())
        return lower, upper
