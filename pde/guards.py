"""What a march refuses: every failure says when, at which step and in which cell."""

from typing import Any

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.errors import MassDefectError, NegativeDensityError, NonFiniteError
from tokensphere.pde.flux import outflow
from tokensphere.pde.state import State

MASS_TOLERANCE = 1e-10


def masses(mesh: Mesh, density: Floats) -> Floats:
    """Mass of every label, (labels,), or (1,) of a single density."""
    # Not `@`: BLAS would wake its own threads, which costs milliseconds on a busy machine.
    return np.atleast_1d(np.einsum("...c,c->...", density, mesh.areas))


def check_density(mesh: Mesh, density: Floats, state: State, time: float) -> None:
    """Refuse a density that is not finite, not non-negative or not of the initial mass."""
    check_finite(mesh, density, state, "the density")
    if (lowest := float(density.min())) < 0:
        cell = int(density.argmin()) % mesh.cells
        raise NegativeDensityError(
            f"the density is {lowest:.3g}", time=time, step=state.step + 1, **place(mesh, state, cell)
        )
    defect = float(np.abs(masses(mesh, density) - state.masses).max())
    if defect > MASS_TOLERANCE * max(1.0, float(np.abs(state.masses).max())):
        raise MassDefectError(f"the mass has left its initial value by {defect:.3g}", time=time, step=state.step + 1)


def check_finite(mesh: Mesh, values: Floats, state: State, name: str) -> None:
    """Refuse values (…, cells) or (…, points) that are not finite, naming the first cell at fault."""
    if np.isfinite(values).all():
        return
    bad = int(np.flatnonzero(~np.isfinite(values).ravel())[0]) % values.shape[-1]
    if values.shape[-1] != mesh.cells:
        bad = int(mesh.face_cells[np.searchsorted(mesh.face_offsets, bad, side="right") - 1, 0])
    raise NonFiniteError(f"{name} is not finite", time=state.time, step=state.step + 1, **place(mesh, state, bad))


def fastest_cell(mesh: Mesh, state: State) -> dict[str, Any]:
    """Where the outflow is fastest against the cell's area, as the keywords of a NumericalError."""
    rates = outflow(mesh, state.history_speeds[0])
    return place(mesh, state, int(rates.argmax()) % mesh.cells)


def place(mesh: Mesh, state: State, cell: int) -> dict[str, Any]:
    """A cell, its centre and the Courant number of the last step there, as the keywords of a NumericalError."""
    courant = None
    if len(state.history_times):
        out = outflow(mesh, state.history_speeds[0]).reshape(-1, mesh.cells)[:, cell].max()
        courant = float(state.dt * out / mesh.areas[cell])
    return {"cell": cell, "center": mesh.centers[cell], "courant": courant}
