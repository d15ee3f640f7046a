"""Upwind finite volumes: speeds at face points in, dρ/dt of the cells out."""

import threading

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.label_kernels import shared_divergence, shared_fluxes, slopes_and_bendings
from tokensphere.pde.limiter import indices, skews, vectors
from tokensphere.pde.transport_kernels import SAFE, divergence, outflows, reconstruct, upwind_fluxes

BEND = 1 / 6
"""Share of the second difference across a face in its value: van Leer's κ = 1/3, third order on a regular mesh."""

CAPS = (2.0, 3.0)
"""Face values may reach 3 averages, or 2 where a step at the outflow bound can afford no more."""

MANY_LABELS = 16
"""From here on labels that share one flow are worth transposing for."""


class _Kept(threading.local):
    """Every thread's memory for the reconstruction: asking for it anew is a fifth of a stage on a large mesh."""

    def __init__(self) -> None:
        self._arrays = np.empty((2, 0, 0, 4))

    def arrays(self, shape: tuple[int, ...]) -> Floats:
        """Lines and traits (2, labels, cells, 4) to write to."""
        if self._arrays.shape[1:3] != shape:
            self._arrays = np.empty((2, *shape, 4))
        return self._arrays


_kept = _Kept()


def normal_speeds(mesh: Mesh, vectors: Floats) -> Floats:
    """u_q = ⟨N_q, v(x_q)⟩ at the face points: volume per unit time through the share of the face that q stands for.

    N_q is tangent, so vectors (…, points, d) need no projection; the result is (…, points).
    """
    result: Floats = np.einsum("pd,...pd->...p", mesh.face_normals, vectors)
    return result


def face_fluxes(
    mesh: Mesh, density: Floats, speeds: Floats, dt: float = np.inf, leaving: Floats | None = None
) -> Floats:
    """Mass per unit time through each face, first cell to second, upwind at every face point: (…, faces).

    The value at x_q of the cell i upwind of j is ρ_i + ⟨g_i, x_q − c_i⟩ + ⅙r_i(ρ_j − ρ_i − ⟨g_i, c_j − c_i⟩), cut to
    [0, C_i ρ_i]. r_i is 1 − O(h²) where the density is smooth and 0 in the flanks of what is a cell or two wide; C_i is
    what the cell can afford in a step of dt, area/(dt·outflow), between 2 and 3.

    A peak within two cells is released: where the middle of its cell flows towards a face faster than the face itself,
    its mass leaves at the speed of the middle, so that its first moment moves as the flow does. Without it, a cluster
    stops where the flow points inwards on every face of its cell.

    Args:
        density: (…, cells) non-negative averages per unit area.
        speeds: (points,), or (…, points) with one row per label.
        dt: the step that the fluxes are for; C_i = 2 where it is left out.
        leaving: (…, cells) the ``outflow`` of the speeds, where it is known.
    """
    rows = np.ascontiguousarray(density).reshape(-1, mesh.cells)
    flows = np.ascontiguousarray(speeds).reshape(-1, len(mesh.face_points))
    weights, centers, points = vectors(mesh)
    neighbours, face_cells, cell_faces, offsets = indices(mesh)
    lines, traits = _kept.arrays(rows.shape)
    affordable = _affordable(mesh, flows, dt, leaving)
    reconstruct(rows, neighbours, weights, skews(mesh), centers, affordable, CAPS, BEND, lines, traits)
    fluxes = np.empty((len(rows), len(mesh.face_cells)))
    faces = (face_cells, cell_faces, mesh.cell_signs, offsets, points)
    upwind_fluxes(lines, traits, flows, centers, *faces, fluxes)
    return fluxes.reshape(*density.shape[:-1], -1)


def _affordable(mesh: Mesh, flows: Floats, dt: float, leaving: Floats | None) -> Floats:
    """area/(dt·outflow) (rows, cells): the largest face value, in units of the average, for which ρ stays ≥ 0."""
    if dt == np.inf:
        return np.zeros((len(flows), mesh.cells))
    leaving = outflow(mesh, flows) if leaving is None else leaving.reshape(len(flows), -1)
    with np.errstate(divide="ignore"):
        result: Floats = mesh.areas / (dt * leaving)
    return result


def transport_rate(
    mesh: Mesh, density: Floats, speeds: Floats, dt: float = np.inf, leaving: Floats | None = None
) -> Floats:
    """dρ/dt = −div(ρ v) of the cell averages (…, cells); see ``face_fluxes``."""
    if density.ndim == 2 and len(density) >= MANY_LABELS and speeds.ndim == 1:
        return _shared_rate(mesh, density, np.ascontiguousarray(speeds), dt, leaving)
    fluxes = face_fluxes(mesh, density, speeds, dt, leaving)
    rates = np.empty_like(density, order="C")
    divergence(
        fluxes.reshape(-1, fluxes.shape[-1]),
        indices(mesh)[2],
        mesh.cell_signs,
        mesh.areas,
        rates.reshape(-1, mesh.cells),
    )
    return rates


def _shared_rate(mesh: Mesh, density: Floats, speeds: Floats, dt: float, leaving: Floats | None) -> Floats:
    """``transport_rate`` of many labels that one flow moves, labels innermost: the same sums in another order."""
    turned = np.ascontiguousarray(density.T)
    neighbours, face_cells, cell_faces, offsets = indices(mesh)
    slopes = np.empty((mesh.cells, mesh.dimension, len(density)))
    bendings, rates = np.empty((mesh.cells, 2, len(density))), np.empty(density.shape)
    fluxes = np.empty((len(mesh.face_cells), len(density)))
    slopes_and_bendings(
        turned,
        neighbours,
        mesh.gradient_weights,
        skews(mesh),
        slopes,
        bendings,
    )
    shared_fluxes(
        turned,
        slopes,
        bendings,
        np.clip(_affordable(mesh, speeds[None], dt, leaving)[0], *CAPS) * SAFE,
        BEND,
        speeds[None],
        mesh.centers,
        face_cells,
        cell_faces,
        mesh.cell_signs,
        offsets,
        mesh.face_points,
        fluxes,
    )
    shared_divergence(fluxes, cell_faces, mesh.cell_signs, mesh.areas, rates)
    return rates


def outflow(mesh: Mesh, speeds: Floats) -> Floats:
    """The most that can leave a cell, Σ_q max(u_q, 0) over the points of its faces and what peaks release: (…, cells).

    Args:
        speeds: (…, points).
    """
    rows = np.ascontiguousarray(speeds).reshape(-1, len(mesh.face_points))
    result = np.empty((len(rows), mesh.cells))
    forward, backward = np.empty((2, len(rows), len(mesh.face_cells)))
    _, _, cell_faces, offsets = indices(mesh)
    outflows(rows, cell_faces, mesh.cell_signs, offsets, forward, backward, result)
    return result.reshape(*speeds.shape[:-1], -1)


def largest_step(mesh: Mesh, speeds: Floats) -> float:
    """The largest dt with dt·outflow ≤ area/2 in every cell (inf at rest): a forward Euler step stays ≥ 0."""
    return step_within(mesh, outflow(mesh, speeds))


def step_within(mesh: Mesh, leaving: Floats) -> float:
    """``largest_step`` of speeds whose outflow (…, cells) is known."""
    fastest = float((leaving / mesh.areas).max())
    return 0.5 / fastest if fastest > 0 else np.inf
