"""A long joint run: RoPE at nside 32 with 64 labels to t = 20 in USA time (factor 1/β, β = 1), co-rotating.

    python benchmarks/joint.py [END]

Prints wall and processor seconds, peak memory and what became of the law. Target: 8 minutes on 2 cores, 1.5 GB.
"""

import resource
import sys
import time

import numpy as np

import tokensphere as ts
from tokensphere.pde.joint import product
from tokensphere.validation.diracization import outcome


def main(end: float = 20.0, nside: int = 32, count: int = 64) -> None:
    """Solve once and print one line each for cost and outcome."""
    mesh, labels = ts.healpix(nside), ts.labels.circle(count)
    kernel = ts.kernels.rope(frequency=1.0, profile=ts.kernels.Exponential(beta=1.0, factor="1/beta"))
    start = product(labels, ts.densities.polynomial(mesh, 1.0, [0.1, 0.2, 0.3]))
    wall, processor = time.perf_counter(), time.process_time()
    run = ts.solve_joint(mesh, labels, kernel, start, np.linspace(0, end, 11), frame="co-rotating")
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    steps = int(run.statistics["substeps"])
    print(f"{wall:.0f} s, {processor:.0f} s of processors, {steps} transport steps, peak {memory:.0f} MB")
    judged = outcome(mesh, labels, kernel, run.densities[-1], kernel.gauge(labels, 3))
    print(f"{judged.verdict}; largest label mass defect {run.records['mass_defect'].max():.1e}")


if __name__ == "__main__":
    main(*(float(argument) for argument in sys.argv[1:2]))
