"""A transport stage against the time that moving its necessary bytes takes at the measured bandwidth.

    python benchmarks/transport.py [--nside 64 128 256] [--pairs 7]

A stage is one ρ → dρ/dt: the most that can leave every cell, gradients and bendings, upwind fluxes at every face point,
divergence. Its necessary bytes: every input array read once and every output written once per loop, gathers
counted once per element. The bandwidth is that of a triad a = b + s·c over arrays far larger than the caches, measured
in turn with the stage.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit, prange

from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.flux import largest_step, normal_speeds, transport_rate
from tokensphere.pde.limiter import skews

TRIAD = 30_000_000


@njit(parallel=True)  # type: ignore[misc]
def triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """a = b + 3c."""
    for i in prange(len(a)):
        a[i] = b[i] + 3.0 * c[i]


def stage_bytes(mesh: Mesh) -> int:
    """Bytes of one stage: what its loops have to read and write, each element once per loop."""
    read = (
        (mesh.face_offsets,),  # volume through the faces
        (mesh.cell_faces, mesh.cell_signs),  # outflow of the cells
        (mesh.areas,),  # largest face values that they afford
        (mesh.neighbours, mesh.gradient_weights, skews(mesh), mesh.centers),  # reconstruction
        (mesh.centers, mesh.face_cells, mesh.face_offsets, mesh.face_points),  # fluxes
        (mesh.cell_faces, mesh.cell_signs, mesh.areas),  # divergence
    )
    geometry = sum(array.nbytes for loop in read for array in loop)
    cells, faces, speeds = 8 * mesh.cells, 8 * len(mesh.face_cells), 8 * len(mesh.face_points)
    through, outflow, affordable, reconstruction, fluxes = 2 * faces, cells, cells, 8 * cells, faces
    written_and_read = 2 * (through + outflow + affordable + reconstruction + fluxes)
    density, rates = cells, cells
    return geometry + written_and_read + density + rates + 2 * speeds


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def main() -> None:
    """Print one row per nside: medians over pairs of stage and triad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nside", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--pairs", type=int, default=7)
    given = parser.parse_args()
    a, b, c = np.zeros(TRIAD), np.ones(TRIAD), np.ones(TRIAD)
    triad(a, b, c)
    print(f"{'nside':>6} {'bytes/cell':>11} {'GB/s':>7} {'stage ms':>9} {'at bandwidth ms':>16} {'ratio':>6}")
    for nside in given.nside:
        mesh = healpix(nside)
        density = 1 + mesh.centers[:, 0] / 2
        speeds = normal_speeds(mesh, np.cross([0.6, 0.0, 0.8], mesh.face_points))
        dt = largest_step(mesh, speeds)
        transport_rate(mesh, density, speeds, dt)
        stage_of = partial(transport_rate, mesh, density, speeds, dt)
        pairs = [(seconds(stage_of), seconds(lambda: triad(a, b, c))) for _ in range(given.pairs)]
        bandwidth = 3 * a.nbytes / statistics.median(pair[1] for pair in pairs)
        ideal = stage_bytes(mesh) / bandwidth
        stage = statistics.median(pair[0] for pair in pairs)
        print(
            f"{nside:>6} {stage_bytes(mesh) / mesh.cells:>11.0f} {bandwidth / 1e9:>7.1f} {1e3 * stage:>9.2f} "
            f"{1e3 * ideal:>16.2f} {stage / ideal:>6.2f}"
        )


if __name__ == "__main__":
    main()
