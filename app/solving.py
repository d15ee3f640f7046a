"""``ts.solve``: a density under an attention head, from its start to the last save time."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.march import Flow, State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.pde.solution import Solution
from tokensphere.pde.threads import set_threads
from tokensphere.recording import Recorders, attention_recorders, row, table

MASS_TOLERANCE = 1e-9


def solve(
    mesh: Mesh,
    attention: Attention,
    rho0: ArrayLike,
    save_at: ArrayLike,
    *,
    method: str = "auto",
    rtol: float = 1e-8,
    velocity_tolerance: float | None = None,
    recorders: Recorders | None = None,
    threads: int | None = None,
    progress: Callable[[State], None] | None = None,
) -> Solution:
    """Solve ``∂_t ρ + div(ρ v[ρ]) = 0, v[ρ](x) = P_x V ∇log F(βBᵀx), F(z) = ∫e^{⟨z,y⟩}dρ(y)`` from time 0.

    Args:
        mesh: ``ts.healpix(nside)`` (d = 3) or ``ts.circle(cells)`` (d = 2).
        attention: Q, K, V, β; β = inf is the zero-temperature limit.
        rho0: (cells,) cell averages per unit area with mass 1, as ``ts.densities`` makes them.
        save_at: increasing times; each is met exactly.
        method: of the attention integral: "auto", "direct", "spectral" or "tree".
        rtol: relative tolerance of the attention integral.
        velocity_tolerance: error allowed in a velocity extrapolated in time, relative to the largest speed; h²/6
            when left out.
        recorders: further functions of the state to record at every step, by name.
        threads: for every parallel part; all processors when left out.
        progress: called with every accepted state.

    Returns:
        A frozen ``Solution``.

    Raises:
        InputError: for anything that does not fit together, in one sentence.
        NumericalError: a non-finite, negative or leaking step, with time, step and cell.

    Source: first document, equation (2); scheme: ``docs/numerics.md``.
    """
    if threads is not None:
        set_threads(threads)
    density = checked_density(mesh, rho0)
    flow = AttentionFlow(mesh, attention, method=method, rtol=rtol)
    columns = {**attention_recorders(mesh, attention, density), **(recorders or {})}
    return gather(flow, attention, State(0.0, density), save_at, columns, velocity_tolerance, progress)


def gather(
    flow: Flow,
    model: object,
    state: State,
    save_at: ArrayLike,
    recorders: Recorders,
    velocity_tolerance: float | None = None,
    progress: Callable[[State], None] | None = None,
    labels: object = None,
) -> Solution:
    """March through the save times and keep the densities there and a row of records for every step."""
    began = perf_counter()
    rows, times, densities = [], [], []
    for state in march(flow, state, save_at, tolerance=velocity_tolerance):  # noqa: B020
        rows.append(row(recorders, state))
        if state.saved is not None:
            times.append(state.time)
            densities.append(state.density)
        if progress is not None:
            progress(state)
    statistics = {
        "steps": float(state.step),
        "substeps": float(state.substeps),
        "evaluations": float(state.evaluations),
        "rejected": float(state.rejected),
        "seconds": perf_counter() - began,
    }
    return Solution(flow.mesh, model, np.array(times), np.array(densities), table(rows), statistics, labels)


def checked_density(mesh: Mesh, rho0: ArrayLike, labels: int | None = None) -> Floats:
    """The initial averages as an array of their own, or an InputError that names the first cell at fault."""
    density = np.array(rho0, dtype=np.float64)
    shape = (mesh.cells,) if labels is None else (labels, mesh.cells)
    if density.shape != shape:
        raise InputError(f"the initial density has shape {density.shape}; on this mesh it must be {shape}.")
    bad = ~(np.isfinite(density) & (density >= 0))
    if bad.any():
        cell = int(np.flatnonzero(bad.ravel())[0]) % mesh.cells
        value = density.ravel()[np.flatnonzero(bad.ravel())[0]]
        raise InputError(f"the initial density is {value} in cell {cell}; it must be finite and not negative.")
    masses = np.atleast_1d(density @ mesh.areas)
    if (np.abs(masses - 1) > MASS_TOLERANCE).any():
        worst = float(masses[np.abs(masses - 1).argmax()])
        raise InputError(f"the initial density has mass {worst:.12g}; scale it to 1 (ts.densities.normalised does).")
    return density
