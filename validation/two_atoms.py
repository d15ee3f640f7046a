"""W_p between a density and two atoms at ±e: the limit Π♯ρ0 for dim E = 1.

The cost difference d(x,e)^p − d(x,−e)^p falls with ⟨x,e⟩, so the optimal plan sends the part {⟨x,e⟩ > τ} to e, with τ
the quantile that gives e its mass p₊ = ρ0(⟨x,e⟩ > 0).  τ is 0 only where ρ still has that mass on e's side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.levels import subcells
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.quadrature import batches
from tokensphere.pde.limiter import limited_gradient, vectors
from tokensphere.validation.atom_kernels import add_moments, add_pieces, cut_cells, threshold, whole_cells
from tokensphere.validation.cell_geometry import cell_radii, half_space
from tokensphere.validation.distance import Distance, cost_of_cosine, cost_of_points, distance_of

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

DEPTH = 3
"""Levels down of the pieces into which cells at the threshold are cut."""

WINDOW = 1 / 20
"""Half the first guess of an interval that holds the threshold, over the largest radius of a cell."""

ROUNDING = 1e-13
"""Share of the mass by which sums may differ."""

KEPT = 2048
"""Cells whose pieces are kept, or more where the threshold needs more at once."""


@dataclass(frozen=True, eq=False)
class _Plan:
    """The optimal plan: its cost, the whole mass, the cells cut by the threshold and the price λ = c₊ − c₋ there."""

    power: float
    total: float
    cut: Integers
    level: float
    price: float


class TwoAtoms:
    """Distance to p₊δ_e + p₋δ_{−e}, planned once for a mesh and a target; call it with cell averages.

    rho0 (cells,) gives the target masses by sub-cell quadrature of its limited reconstruction.
    """

    def __init__(self, mesh: Mesh, rho0: Array, e: Array, metric: str, p: float) -> None:
        self.mesh, self.e, self.metric, self.p = mesh, np.ascontiguousarray(e), metric, p
        self._costs = (self.e, metric == "geodesic", float(p))
        gradient = limited_gradient(mesh, rho0)
        total = float(np.sum(rho0 * mesh.areas))
        plus, flat = half_space(mesh, rho0, (gradient, np.zeros_like(gradient)), e)
        self.share = plus / total
        # What the reconstruction of the cut cells contributes at all is a safe bound of its error.
        self.share_error = abs(plus - flat) / total

        self._moments = np.zeros((2, mesh.cells, 4))
        for cells, points, weights in batches(mesh, 5):
            add_moments(cells, points, weights, mesh.centers, *self._costs, self._moments)
        slopes, centers, face_points = vectors(mesh)
        faces = (mesh.cell_faces, mesh.face_offsets, face_points)
        self._geometry = (mesh.neighbours, slopes, centers, cell_radii(mesh), *faces)
        # In single precision: they weigh differences, and what is read decides the time.
        self._shares = np.matmul(slopes, self._moments[..., 1:, None])[..., 0].astype(np.float32)
        self._steep = cell_radii(mesh) * np.sqrt(np.einsum("ckx,ckx->ck", slopes, slopes).max(axis=-1))
        self._height = mesh.centers @ self.e
        self._order = np.argsort(-self._height)
        # Chordal radius r bounds the change of angle by 2 arcsin(r/2).
        angle = np.arccos(np.clip(self._height, -1.0, 1.0))
        swing = 2.0 * np.arcsin(0.5 * cell_radii(mesh))
        self._top, self._bottom = np.cos(np.maximum(angle - swing, 0.0)), np.cos(np.minimum(angle + swing, np.pi))
        self._reach = float(cell_radii(mesh).max())
        self._sorted = (self._height[self._order], 0.5 * (self._top - self._bottom)[self._order])
        self._falling = -self._sorted[0]
        self._marks = np.zeros(mesh.cells, dtype=np.bool_)
        self._slots = np.full(mesh.cells, -1, dtype=np.int64)
        self._kept = 0
        self._table = np.empty((KEPT, 6, subcells(mesh, np.array([0]), DEPTH).shape[1]))
        self._window = np.empty((4, 0))
        self._levels = np.empty((2, KEPT))

    def __call__(self, density: Array) -> Distance:
        """The exact plan's cost for the limited reconstruction of `density`, with its bracket."""
        plan = self._plan(density)
        lower, upper = self._bracket(density * self.mesh.areas / plan.total, plan)
        slack = 2.0**self.p if self.metric == "chordal" else np.pi**self.p
        slack *= self.share_error
        return distance_of(plan.power, lower - slack, upper + slack, self.metric, self.p)

    def value(self, density: Array) -> float:
        """The distance without its bracket."""
        return float(max(self._plan(density).power, 0.0) ** (1.0 / self.p))

    def nearest(self, density: Array) -> float:
        """W_p(ρ, Π♯ρ) = (∫d(x, Πx)^p dρ)^{1/p}: the distance were the masses on both sides those of ρ itself."""
        cut = self._cut(0.0, 0.0)
        cost = self._whole(density, 0.0, cut)[1] + self._split(density, cut, 0.0, 0.0)[1]
        power = cost / float(np.sum(density * self.mesh.areas))
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

    def _plan(self, density: Array) -> _Plan:
        """Whole cells by their moments, cells at the threshold piece by piece: a function of the density alone."""
        total, level = threshold(density, self.mesh.areas, self._order, *self._sorted, self._reach, self.share)
        width = WINDOW * self._reach
        while True:
            low, high = level - width, level + width
            cut = self._cut(low, high)
            above, cost = self._whole(density, level, cut)
            upper, split, window = self._split(density, cut, low, high)
            rest = self.share * total - above - upper
            inside = -ROUNDING * total <= rest <= window[1].sum() + ROUNDING * total
            if inside or width > 4.0 * self._reach:
                break
            width *= 4.0
        falling, masses, plus, minus = window[:, np.argsort(window[0], kind="stable")]
        before = np.cumsum(masses) - masses
        to_plus = np.minimum(np.maximum(rest - before, 0.0), masses)
        cost += split + float(np.sum(to_plus * plus + (masses - to_plus) * minus))
        if len(masses):
            at = min(int(np.searchsorted(before, rest)), len(masses) - 1)
            level, price = -float(falling[at]), float(plus[at] - minus[at])
        else:
            cosine = np.array([level, -level])
            price = float(np.subtract(*cost_of_cosine(cosine, self.metric, self.p)))
        return _Plan(cost / total, total, cut, level, price)

    def _whole(self, density: Array, level: float, cut: Integers) -> tuple[float, float]:
        """Mass above the level and cost of the cells that are not cut."""
        marks = self._marks
        marks[cut] = True
        found: tuple[float, float] = whole_cells(
            density,
            self._geometry,
            self.mesh.areas,
            self._height,
            level,
            marks,
            self._moments,
            self._shares,
            self._steep,
        )
        marks[cut] = False
        return found

    def _split(self, density: Array, cut: Integers, low: float, high: float) -> tuple[float, float, Array]:
        """Mass above `high` and cost outside (low, high) of the cut cells, and their pieces (4, n) between."""
        if self._window.shape[1] < len(cut) * self._table.shape[2]:
            self._window = np.empty((4, len(cut) * self._table.shape[2]))
        pieces = (cut, self._slots[cut], self._table)
        above, cost, count = cut_cells(*pieces, density, self._geometry, self.mesh.areas, low, high, self._window)
        return above, cost, self._window[:, :count]

    def _cut(self, low: float, high: float) -> Integers:
        """Cells with pieces on both sides of a level in the interval, in the mesh's order; their pieces are kept."""
        around = np.searchsorted(self._falling, [-high - self._reach, self._reach - low])
        near = np.sort(self._order[slice(*around)])
        near = near[(self._top[near] >= low) & (self._bottom[near] <= high)]
        if (self._slots[near] < 0).any():
            self._keep(near)
        lowest, highest = self._levels[:, self._slots[near]]
        cut: Integers = near[(highest > low) & (lowest < high)]
        return cut

    def _keep(self, cells: Integers) -> None:
        """Put the pieces of cells in the table, without the others where it is full."""
        missing = cells[self._slots[cells] < 0]
        if self._kept + len(missing) > len(self._table):
            self._slots[:], self._kept, missing = -1, 0, cells
            if len(cells) > len(self._table):
                self._table = np.empty((len(cells), *self._table.shape[1:]))
                self._levels = np.empty((2, len(cells)))
        cells, last = missing, self._kept + len(missing)
        points = subcells(self.mesh, cells, DEPTH)
        added = self._table[self._kept : last]
        add_pieces(points, self.mesh.centers[cells], *self._costs, added)
        self._levels[:, self._kept : last] = added[:, 0].min(axis=1), added[:, 0].max(axis=1)
        self._slots[cells] = np.arange(self._kept, last)
        self._kept = last

    @cached_property
    def _extremes(self) -> tuple[Array, Array, Array, Array]:
        """Bounds of the costs to e (least, largest) and to −e over every cell."""
        plus = [cost_of_cosine(s, self.metric, self.p) for s in (self._top, self._bottom)]
        minus = [cost_of_cosine(-s, self.metric, self.p) for s in (self._bottom, self._top)]
        return plus[0], plus[1], minus[0], minus[1]

    def _bracket(self, mass: Array, plan: _Plan) -> tuple[float, float]:
        """p-th powers no law with these cell masses can leave: a dual value from below, a plan from above."""
        nearest_plus, farthest_plus, nearest_minus, farthest_minus = self._extremes
        dual = np.minimum(nearest_plus - plan.price, nearest_minus)
        lower = float(np.sum(mass * dual)) + plan.price * self.share
        whole = np.ones(self.mesh.cells, dtype=np.bool_)
        whole[plan.cut] = False
        above, below = whole & (self._height > plan.level), whole & (self._height <= plan.level)
        upper = float(mass[above] @ farthest_plus[above]) + float(mass[below] @ farthest_minus[below])
        if len(plan.cut):
            cut = float(mass[plan.cut].sum())
            rest = min(max(self.share - float(mass[above].sum()), 0.0), cut)
            upper += rest * float(farthest_plus[plan.cut].max())
            upper += (cut - rest) * float(farthest_minus[plan.cut].max())
        return lower, upper
