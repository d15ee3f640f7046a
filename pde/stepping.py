"""One strong-stability-preserving Runge–Kutta step of the transport."""

from collections.abc import Callable

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.flux import transport_rate


def forward_euler(
    mesh: Mesh, density: Floats, speeds: Floats, dt: float, leaving: Floats | None = None
) -> Floats:
    """ρ + dt·(−div ρv); non-negative when dt ≤ ``flux.largest_step(mesh, speeds)``; leaving: their outflow if known."""
    return density + dt * transport_rate(mesh, density, speeds, dt, leaving)


def heun(
    mesh: Mesh,
    density: Floats,
    first: Floats,
    second: Callable[[Floats], Floats],
    dt: float,
    leaving: tuple[Floats | None, Floats | None] = (None, None),
) -> Floats:
    """Heun's method, SSPRK(2,2): ρ¹ = ρ + dt L(ρ, u_0), ρ' = ½ρ + ½(ρ¹ + dt L(ρ¹, u_1)).

    Args:
        density: ρ (…, cells).
        first: normal speeds u_0 at the start.
        second: gives the normal speeds u_1 at the end of the step from the first stage ρ¹; whoever passes it has to
            refuse a u_1 whose outflow breaks dt ≤ ½·area/outflow.
        leaving: the outflow of u_0 and u_1, where it is known.

    Source: Shu & Osher 1988, J. Comput. Phys. 77, 439.
    """
    stage = forward_euler(mesh, density, first, dt, leaving[0])
    return 0.5 * (density + forward_euler(mesh, stage, second(stage), dt, leaving[1]))
