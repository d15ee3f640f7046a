"""One strong-stability-preserving Runge–Kutta step of the transport."""

from collections.abc import Callable

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.flux import transport_rate


def forward_euler(mesh: Mesh, density: Floats, speeds: Floats, dt: float) -> Floats:
    """ρ + dt·(−div ρv); non-negative when dt ≤ ``flux.largest_step(mesh, speeds)``."""
    return density + dt * transport_rate(mesh, density, speeds, dt)


def heun(mesh: Mesh, density: Floats, first: Floats, second: Callable[[Floats], Floats], dt: float) -> Floats:
    """Heun's method, SSPRK(2,2): ρ¹ = ρ + dt L(ρ, u_0), ρ' = ½ρ + ½(ρ¹ + dt L(ρ¹, u_1)).

    Args:
        density: ρ (…, cells).
        first: normal speeds u_0 at the start.
        second: gives the normal speeds u_1 at the end of the step from the first stage ρ¹; whoever passes it has to
            refuse a u_1 whose outflow breaks dt ≤ ½·area/outflow.

    Source: Shu & Osher 1988, J. Comput. Phys. 77, 439.
    """
    stage = forward_euler(mesh, density, first, dt)
    return 0.5 * (density + forward_euler(mesh, stage, second(stage), dt))
