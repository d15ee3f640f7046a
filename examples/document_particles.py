"""The second document's particle runs: n ∈ {64, 128, 256}, τ = 20, six families, time unit g = e^{βs}/β.

    python examples/document_particles.py [BETA]

USA collapses (|mean x| = 1).  RoPE, generalised RoPE and prefix do not, although u = Q(ξ)x does: |mean x| is then
any value in [0, 1], not 0.  The cosine Toeplitz kernel spreads along a great circle.  At β = 4 the runs still move at
τ = 20.
"""

import sys

import numpy as np

from tokensphere.pde.kernels import Exponential
from tokensphere.validation.document_runs import COUNTS, FAMILIES, DocumentRun, document_run


def main(beta: float = 1.0, counts: tuple[int, ...] = COUNTS) -> list[DocumentRun]:
    """All runs, printed as a table."""
    runs = []
    print("family            tokens  |mean x|  |mean u|  energy   speed at the end")
    for name in FAMILIES:
        for count in counts:
            profile = Exponential(beta, "1/beta")
            run = document_run(name, count, np.random.default_rng(count), profile=profile, tolerance=1e-6)
            print(
                f"{name:<16}  {count:>6}  {run.mean_length:8.4f}  {run.turned_length:8.4f}  "
                f"{run.energy:.5f}  {run.speed:.1e}"
            )
            runs.append(run)
    return runs


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
