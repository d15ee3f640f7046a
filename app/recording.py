"""What is recorded at every step: a mapping of names to functions of the march's state."""

from collections.abc import Callable, Mapping

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.energy import InteractionEnergy, has_energy
from tokensphere.pde.march import State

Recorders = Mapping[str, Callable[[State], float]]
COORDINATES = ("mean_x", "mean_y", "mean_z")


def step_recorders() -> Recorders:
    """Time, step and the march's own counters."""
    return {
        "time": lambda state: state.time,
        "step": lambda state: float(state.step),
        "dt": lambda state: state.dt,
        "evaluations": lambda state: float(state.evaluations),
        "substeps": lambda state: float(state.substeps),
        "rejected": lambda state: float(state.rejected),
    }


def density_recorders(mesh: Mesh) -> Recorders:
    """Mass, extremes and the mean vector of a density (cells,)."""
    moments = np.ascontiguousarray((mesh.areas[:, None] * mesh.centers).T)

    # Not `@`: BLAS would wake its own threads for every sum, which costs milliseconds on a busy machine.
    def integral(weights: Floats) -> Callable[[State], float]:
        return lambda state: float(np.einsum("c,c->", state.density, weights))

    return {
        "mass": integral(mesh.areas),
        "density_min": lambda state: float(state.density.min()),
        "density_max": lambda state: float(state.density.max()),
        **{COORDINATES[axis]: integral(moments[axis]) for axis in range(mesh.dimension)},
    }


def method_recorders() -> Recorders:
    """The share of face points that each integral method served, and the levels a narrow kernel was prolonged by."""

    def share(name: str) -> Callable[[State], float]:
        return lambda state: float(state.notes.get(name, 0.0))

    names = ("spectral_fraction", "tree_fraction", "direct_fraction", "levels")
    return {name: share(name) for name in names}


def limit_recorders(mesh: Mesh, attention: Attention, rho0: Floats, metric: str = "chordal") -> Recorders:
    """W2(ρ_t, Π♯ρ0), the mesh's floor of it and the width below which a cluster is numerical diffusion.

    Where VBᵀ is not symmetric or γ = 0 there is no limit, and the columns hold NaN.
    """
    from tokensphere.meshes.errors import InputError
    from tokensphere.validation.projection import Projection
    from tokensphere.validation.wasserstein import DistanceToLimit

    try:
        limit = Projection(attention)
    except InputError:
        limit = None
    if limit is None or limit.gap == 0:
        names = ("w2_to_limit", "w2_floor", "cluster_width")
        return {name: lambda state: float("nan") for name in names}
    distance = DistanceToLimit(mesh, rho0, limit, metric)
    floor, width = distance.floor, distance.cluster_width
    return {
        "w2_to_limit": lambda state: distance.value(state.density),
        "w2_floor": lambda state: floor,
        "cluster_width": lambda state: width,
    }


def energy_recorder(mesh: Mesh, attention: Attention) -> Recorders:
    """The interaction energy where the equation is its gradient flow, else NaN."""
    if not has_energy(attention):
        return {"energy": lambda state: float("nan")}
    energy = InteractionEnergy(mesh, attention)
    return {"energy": lambda state: energy(state.density)}


def attention_recorders(mesh: Mesh, attention: Attention, rho0: Floats, metric: str = "chordal") -> Recorders:
    """Every column of records.csv for a density under an attention head; metric: of the distance to the limit."""
    return {
        **step_recorders(),
        **density_recorders(mesh),
        **energy_recorder(mesh, attention),
        **limit_recorders(mesh, attention, rho0, metric),
        **method_recorders(),
    }


def row(recorders: Recorders, state: State) -> dict[str, float]:
    """One row of records."""
    return {name: float(function(state)) for name, function in recorders.items()}


def table(rows: list[dict[str, float]]) -> dict[str, Floats]:
    """Rows as one array per column."""
    return {name: np.array([entry[name] for entry in rows]) for name in (rows[0] if rows else ())}
