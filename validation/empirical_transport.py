"""W1 and W2 between tokens and a density on a common coarse mesh, beside what exact samples would give."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tokensphere.meshes.levels import coarsen, coarser
from tokensphere.meshes.locate import locate
from tokensphere.meshes.mesh import Mesh
from tokensphere.pde.errors import NumericalError
from tokensphere.validation.integrators import on_sphere

Array = NDArray[np.float64]

CELLS = {"healpix": 192, "circle": 256}
DRAWS = 8


@dataclass(frozen=True)
class Transport:
    """W_p (chordal) of binned laws, mean and standard deviation of the same for n exact samples, and the bin width.

    Binning moves either law by at most half a cell's diameter, so the unbinned W_p is within about `width`.
    """

    value: float
    expected: float
    deviation: float
    width: float


def transports(
    mesh: Mesh, density: Array, positions: Array, weights: Array, generator: Generator
) -> dict[str, Transport]:
    """W1 and W2 between tokens (n, d) and a density (cells,) with the sampling error of 1/Σw² exact samples.

    n exact samples fall into the cells by a multinomial law, which is drawn DRAWS times.
    Raises NumericalError where the transport problem was not solved to optimality.
    """
    levels = 0
    while mesh.cells // (4 if mesh.kind == "healpix" else 2) ** levels > CELLS[mesh.kind] and not (
        mesh.resolution % 2 ** (levels + 1)
    ):
        levels += 1
    coarse = coarser(mesh, levels)
    masses = coarsen(mesh, density, levels) * coarse.areas
    masses = masses / masses.sum()
    cells = locate(coarse, on_sphere(positions))
    held = np.asarray(np.bincount(cells, weights, minlength=coarse.cells), dtype=np.float64)
    count = max(1, round(float(1.0 / np.sum(weights**2))))
    samples: Array = generator.multinomial(count, masses, size=DRAWS) / float(count)
    distances = np.sqrt(np.maximum(2.0 - 2.0 * coarse.centers @ coarse.centers.T, 0.0))
    np.fill_diagonal(distances, 0.0)
    answers = {}
    for p in (1, 2):
        cost: Array = distances**p
        drawn = [_distance(sample, masses, cost, p) for sample in samples]
        answers[f"w{p}"] = Transport(
            _distance(held, masses, cost, p), float(np.mean(drawn)), float(np.std(drawn, ddof=1)), coarse.width
        )
    return answers


def _distance(first: Array, second: Array, cost: Array, p: int) -> float:
    import ot

    a, b = np.flatnonzero(first > 0), np.flatnonzero(second > 0)
    plan, log = ot.emd(
        first[a] / first.sum(), second[b] / second.sum(), cost[np.ix_(a, b)], numItermax=2_000_000, log=True
    )
    error = max(
        np.abs(plan.sum(1) - first[a] / first.sum()).max(), np.abs(plan.sum(0) - second[b] / second.sum()).max()
    )
    if log["warning"] is not None or error > 1e-9:
        raise NumericalError(f"optimal transport between tokens and density ended with: {log['warning']}")
    return float(max(log["cost"], 0.0) ** (1.0 / p))
