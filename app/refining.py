"""The numbers of a run with their discretisation error: the same run on the configured mesh and one level coarser."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config import Config
from tokensphere.config.building import build_attention, build_initial, build_mesh
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh
from tokensphere.validation.projection import Projection
from tokensphere.validation.refined_run import as_document, refined_run

Array = NDArray[np.float64]


def refined_numbers(config: Config) -> dict[str, Any]:
    """Value, error and extrapolated value of every reported number at every save time, as plain lists.

    Solves twice. Raises InputError for a joint law, a singular B, or a mesh without a coarser level.
    """
    from tokensphere.pde.march import State, march
    from tokensphere.pde.problem import AttentionFlow

    if config.attention is None:
        raise InputError("--refine is about a density under [attention]; a joint law has no limit to measure against.")
    mesh = build_mesh(config.mesh)
    attention = build_attention(config.attention, config.dimension)
    try:
        projection: Projection | None = Projection(attention)
    except InputError:
        projection = None  # no limit: the other numbers still have an error
    times = np.array(config.save_times)

    def solve(on: Mesh, rho0: Array) -> Array:
        flow = AttentionFlow(on, attention, method=config.solver.method, rtol=config.solver.rtol)
        return np.array([state.density for state in march(flow, State(0.0, rho0), times) if state.saved is not None])

    start = build_initial(config.initial, mesh)
    return as_document(times, refined_run(mesh, start, solve, projection, config.solver.metric))


def lines(document: dict[str, Any]) -> list[str]:
    """One line per number at the last save time: value ± error."""
    when = f"at t = {document['times'][-1]:g}"
    numbers = [
        f"{name} = {found['value'][-1]:.6g} ± {found['error'][-1]:.2g} {when}"
        for name, found in document.items()
        if name not in ("times", "density_l1")
    ]
    return [*numbers, f"the density itself is off by at most {document['density_l1']['value'][-1]:.2g} in L1 {when}"]
