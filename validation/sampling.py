"""Tokens drawn from a density: independent, stratified or of low discrepancy.

Every sampler turns the same three uniform numbers into a token: one picks the cell along the nested order, which is a
space-filling curve, the others the place inside the cell.  Inside a cell the density is the solver's own limited linear
reconstruction, inverted in closed form in the equal-area coordinates of the cell, so nothing is rejected.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.face_map import sphere_point
from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Mesh
from tokensphere.meshes.nested import face_coordinates
from tokensphere.pde.limiter import limited_gradient

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Uniforms = Callable[[int, Generator], Array]

FLATTEST = 1e-9
"""Below this slope a density is flat and its inverse the identity."""


def independent_uniforms(count: int, generator: Generator) -> Array:
    """(count, 3) independent uniform numbers."""
    return generator.random((count, 3))


def stratified_uniforms(count: int, generator: Generator) -> Array:
    """The first coordinate in the k-th of `count` equal intervals: one token per n-th of the mass along the curve."""
    uniforms = generator.random((count, 3))
    uniforms[:, 0] = (np.arange(count) + uniforms[:, 0]) / count
    return uniforms


def low_discrepancy_uniforms(count: int, generator: Generator) -> Array:
    """A lattice along the curve, Kronecker's sequence of the plastic number inside the cells, and a random shift."""
    plastic = 1.32471795724474602596
    steps = np.array([1.0 / count, 1.0 / plastic, 1.0 / plastic**2])
    shift = generator.random(3) * np.array([1.0 / count, 1.0, 1.0])
    return np.asarray((shift + np.arange(count)[:, None] * steps) % 1.0)


SAMPLERS: dict[str, Uniforms] = {
    "iid": independent_uniforms,
    "stratified": stratified_uniforms,
    "low_discrepancy": low_discrepancy_uniforms,
}


def sample_density(
    mesh: Mesh, density: Array, count: int, generator: Generator, uniforms: Uniforms = independent_uniforms
) -> Array:
    """`count` tokens (count, d) from a density (cells,), each with exactly that law.

    `uniforms` maps a count and the generator to (count, 3) numbers, each row uniform on the cube.  With the stratified
    and the low-discrepancy ones averages over the tokens err less than n^{−1/2}.
    Raises InputError for a count below 1 or a density that is negative, not finite or without mass.
    """
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise InputError(f"{count!r} tokens were asked for; give a whole number of at least 1.")
    density = np.asarray(density, dtype=np.float64)
    masses = density * mesh.areas
    if density.shape != (mesh.cells,) or not np.isfinite(masses).all() or masses.min() < 0 or masses.max() <= 0:
        raise InputError(
            f"a density of shape {density.shape} cannot be sampled on {mesh.cells} cells; give finite "
            "values of at least 0 with some mass."
        )
    numbers = uniforms(int(count), generator)
    heights = np.cumsum(masses)
    # side="right" never lands in an empty cell; the last cell with mass catches round-off.
    last = int(np.flatnonzero(masses)[-1])
    cells = np.minimum(np.searchsorted(heights, numbers[:, 0] * heights[-1], side="right"), last)
    return _place(mesh, density, cells, numbers[:, 1], numbers[:, 2])


def sample_joint(
    mesh: Mesh,
    labels: Labels,
    densities: Array,
    count: int,
    generator: Generator,
    uniforms: Uniforms = independent_uniforms,
) -> tuple[Array, Indices]:
    """Tokens (count, d) and their label indices (count,) from conditional densities (labels, cells).

    The labels have the law of `labels.weights`: drawn independently with independent uniforms, otherwise as evenly as
    whole numbers allow.
    """
    if uniforms is independent_uniforms:
        indices = np.sort(generator.choice(labels.count, size=count, p=labels.weights))
    else:
        ticks = (np.arange(count) + generator.random()) / count
        indices = np.minimum(np.searchsorted(np.cumsum(labels.weights), ticks, side="right"), labels.count - 1)
    tokens = np.empty((count, mesh.dimension))
    for label in np.unique(indices):
        chosen = np.flatnonzero(indices == label)
        tokens[chosen] = sample_density(mesh, densities[label], len(chosen), generator, uniforms)
    return tokens, indices.astype(np.int64)


def _place(mesh: Mesh, density: Array, cells: Indices, first: Array, second: Array) -> Array:
    """Points inside cells: the linear density 1 + a(s−½) + b(t−½) inverted, s by its marginal, then t given s."""
    corners = _corners(mesh)
    rises = np.einsum("nd,nkd->nk", limited_gradient(mesh, density)[cells], corners[cells])
    slopes = rises / density[cells][:, None]
    # The reconstruction is positive at face points; in the corners beyond them it may need to be flattened a little.
    slopes /= np.maximum(1.0, np.abs(slopes).sum(axis=1) / 2.0)[:, None]
    s = _inverse(slopes[:, 0], first)
    if mesh.kind == "circle":
        angle = (cells + s) * (2 * np.pi / mesh.resolution)
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    t = _inverse(slopes[:, 1] / (1.0 + slopes[:, 0] * (s - 0.5)), second)
    ix, iy, face = face_coordinates(mesh.resolution, cells)
    return np.asarray(sphere_point(face, (ix + s) / mesh.resolution, (iy + t) / mesh.resolution))


def _inverse(slope: Array, uniform: Array) -> Array:
    """s with ∫_0^s 1 + slope·(r − ½) dr = uniform, for |slope| ≤ 2."""
    base = 1.0 - slope / 2.0
    # The root of slope/2·s² + base·s − u, written without cancellation.
    root = 2.0 * uniform / (base + np.sqrt(np.maximum(base**2 + 2.0 * slope * uniform, 0.0)) + 1e-300)
    return np.asarray(np.clip(np.where(np.abs(slope) < FLATTEST, uniform, root), 0.0, 1.0))


def _corners(mesh: Mesh) -> Array:
    """Vectors across each cell along its coordinates s (and t), through the middle (cells, 1 or 2, d)."""
    if mesh.kind == "circle":
        angles = np.arange(mesh.cells + 1) * (2 * np.pi / mesh.cells)
        ends = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return np.asarray(ends[1:] - ends[:-1])[:, None]
    ix, iy, face = face_coordinates(mesh.resolution, np.arange(mesh.cells))
    n = mesh.resolution

    def at(s: float, t: float) -> Array:
        return sphere_point(face, (ix + s) / n, (iy + t) / n)

    return np.stack([at(1.0, 0.5) - at(0.0, 0.5), at(0.5, 1.0) - at(0.5, 0.0)], axis=1)
