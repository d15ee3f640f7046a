"""RoPE turns one cluster of u = R_ξ x into a latitude circle of content; over part of a period, into an arc of it.

Maximisers are x(ξ) = R_ξ^(−1) u0. For labels uniform on a period Φ and u0 at colatitude a,
|mean x|² = cos²a + sin²a·sinc²(Φ/2) (theory §2.3, facts 2 and 12). Here Φ is half a turn.
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution

PERIOD = np.pi


@dataclass
class Result:
    """The run in u, the point u0 it gathers at, and the content's points x(ξ)."""

    run: Solution
    place: np.ndarray
    points: np.ndarray


def compute(quick: bool) -> Result:
    """Solve in the co-rotating frame from a cap; labels are uniform on [0, 1], turned at the frequency Φ."""
    mesh, labels = ts.healpix(4 if quick else 16), ts.labels.interval(8 if quick else 32)
    kernel = ts.kernels.rope(frequency=PERIOD, profile=ts.kernels.Linear())
    cap = ts.densities.von_mises_fisher(mesh, [0.8, 0.1, 0.6], 3.0)
    start = np.repeat(cap[None], labels.count, axis=0)
    run = ts.solve_joint(mesh, labels, kernel, start, save_at=[0.0, 8.0], frame="co-rotating")
    mean = labels.weights @ (run.densities[-1] * mesh.areas) @ mesh.centers
    place = mean / np.linalg.norm(mean)
    turns = kernel.gauge(labels, 3)
    return Result(run, place, np.einsum("lij,i->lj", turns, place))


def draw(result: Result) -> Axes:
    """The content as a curve on the sphere, coloured by label."""
    labels = result.run.labels
    title = "RoPE over half a period: content on an arc of a latitude circle"
    return plots.label_curve(labels.points, result.points, period=1.0, cyclic=False, title=title)


def check(result: Result) -> Check:
    """|mean x| against the formula at the colatitude that the flow chose."""
    height = result.place[2]
    sinc = np.sinc(PERIOD / 2 / np.pi)
    expected = np.sqrt(height**2 + (1 - height**2) * sinc**2)
    found = float(result.run.records["mean_length"][-1])
    return Check("|mean x| at the end", found, float(expected), 0.02, "theory §2.3, fact 12")


if __name__ == "__main__":
    main("rope_latitude", compute, draw, check)
