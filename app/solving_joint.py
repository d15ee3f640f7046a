"""``ts.solve_joint``: the joint law of tokens and frozen labels, from its start to the last save time."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from tokensphere.meshes.labels import Labels
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.joint import JointFlow, joint_flow
from tokensphere.pde.kernels import Kernel
from tokensphere.pde.march import State
from tokensphere.pde.solution import Solution
from tokensphere.pde.threads import set_threads
from tokensphere.recording import COORDINATES, Recorders, step_recorders
from tokensphere.solving import checked_density, gather
from tokensphere.validation.order_parameters import OrderParameters, order_parameters

__all__ = ["joint_flow", "joint_recorders", "solve_joint"]


def solve_joint(
    mesh: Mesh,
    labels: Labels,
    kernel: Kernel,
    mu0: ArrayLike,
    save_at: ArrayLike,
    *,
    frame: str = "fixed",
    method: str = "auto",
    velocity_tolerance: float | None = None,
    recorders: Recorders | None = None,
    threads: int | None = None,
    progress: Callable[[State], None] | None = None,
) -> Solution:
    """Solve ∂_t μ + div_x(μ P_x∇_x∫h(·,z')dμ(z')) = 0, h = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩), from time 0.

    Args:
        mesh: ``ts.healpix(nside)`` (d = 3) or ``ts.circle(cells)`` (d = 2).
        labels: ``ts.labels.circle(n)``, ``interval(n)`` or ``finite(weights)``.
        kernel: ``ts.kernels.usa``, ``rope``, ``generalised_rope``, ``prefix``, ``distance_bias`` or ``toeplitz``.
        mu0: (labels, cells) conditional densities, each slice of mass 1, in the frame asked for.
        save_at: increasing times; each is met exactly.  Their unit is set by the kernel's factor.
        frame: "fixed": slices, here and in the result, are laws of x, and ``labels.weights @ densities[i]`` is the
            content marginal.  "co-rotating": they are laws of u = Q(ξ)x; one velocity serves every slice where b ≡ 1,
            and ``pde.joint.content_marginal`` turns them back.  The two agree for kernels without a gauge.
        method: "spectral"; "log-safe" (exponential profile; co-rotating where there is a gauge), right relative to the
            velocity's own size; "auto" takes the spectral field up to β = 8 and where labels mix or turn.
        velocity_tolerance: error allowed in a velocity extrapolated in time, relative to the largest speed; h²/6 when
            left out.
        recorders: further functions of the state to record at every step, by name.
        threads: for every parallel part; all processors when left out.
        progress: called with every accepted state.

    Returns:
        A frozen ``Solution`` with ``model`` the kernel, ``labels``, ``frame``, densities (saves, labels, cells).

    Raises:
        InputError: for anything that does not fit together, in one sentence.
        NumericalError: a non-finite, negative or leaking step, with time, step and cell.
    """
    if threads is not None:
        set_threads(threads)
    density = checked_density(mesh, mu0, labels.count)
    flow = joint_flow(mesh, labels, kernel, frame, method)
    rotations = kernel.gauge(labels, mesh.dimension) if frame == "co-rotating" else None
    columns = {**joint_recorders(flow, labels, rotations), **(recorders or {})}
    run = gather(flow, kernel, State(0.0, density), save_at, columns, velocity_tolerance, progress, labels)
    return replace(run, frame=frame)


def joint_recorders(flow: JointFlow, labels: Labels, rotations: Floats | None) -> Recorders:
    """Every column of records.csv for a joint law; moments are those of the content x in either frame.

    mass: Σ_ξ weights·(mass of slice ξ) · mass_defect: largest |mass of slice − 1| · energy: E_h · dissipation:
    ∫|v|²dμ = dE/dt · mean_x…: content mean · mean_length · second_moment_1…d: ascending eigenvalues of ∫xxᵀ ·
    entropy · conditional_spread, largest_spread: mean and maximum over labels of 1 − |∫x dμ_ξ|.
    """
    mesh, weights = flow.mesh, labels.weights
    last: list[tuple[State, OrderParameters]] = []

    def order(state: State) -> OrderParameters:
        if not last or last[0][0] is not state:
            last[:] = [(state, order_parameters(mesh, labels, state.density, rotations))]
        return last[0][1]

    def mean(axis: int) -> Callable[[State], float]:
        return lambda state: float(order(state).mean[axis])

    def moment(index: int) -> Callable[[State], float]:
        return lambda state: float(order(state).second_moments[index])

    return {
        **step_recorders(),
        "mass": lambda state: float(weights @ (state.density @ mesh.areas)),
        "mass_defect": lambda state: float(np.abs(state.density @ mesh.areas - 1).max()),
        "density_min": lambda state: float(state.density.min()),
        "density_max": lambda state: float(state.density.max()),
        "energy": lambda state: flow.law.energy(state.density),
        "dissipation": lambda state: flow.dissipation(state.density, weights),
        **{COORDINATES[axis]: mean(axis) for axis in range(mesh.dimension)},
        "mean_length": lambda state: order(state).mean_length,
        **{f"second_moment_{index + 1}": moment(index) for index in range(mesh.dimension)},
        "entropy": lambda state: order(state).entropy,
        "conditional_spread": lambda state: order(state).conditional_spread,
        "largest_spread": lambda state: order(state).largest_spread,
    }
