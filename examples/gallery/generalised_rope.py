"""Generalised RoPE draws the content along any curve Q(ξ)⁻¹u0, here one that wobbles about the equator.

Every gauge kernel has the maximisers x(ξ) = Q(ξ)⁻¹u0 with the energy g(1)/2, whatever the curve (theory §2.3, fact 2).
Q(ξ) turns by 2πξ about e3 and then by .6 cos(6πξ) about e1; the profile is linear, g(1)/2 = 1/2.
"""

from dataclasses import dataclass

import numpy as np
from common import Check, main
from matplotlib.axes import Axes

import tokensphere as ts
from tokensphere import plots
from tokensphere.pde.solution import Solution


@dataclass
class Result:
    """The run in u and the content's points x(ξ)."""

    run: Solution
    points: np.ndarray


def turn(positions: np.ndarray) -> np.ndarray:
    """Q(ξ) (labels, 3, 3)."""
    a, b = 2 * np.pi * positions, 0.6 * np.cos(6 * np.pi * positions)
    zero, one = np.zeros_like(a), np.ones_like(a)
    about_axis = np.array([[np.cos(a), -np.sin(a), zero], [np.sin(a), np.cos(a), zero], [zero, zero, one]])
    about_first = np.array([[one, zero, zero], [zero, np.cos(b), -np.sin(b)], [zero, np.sin(b), np.cos(b)]])
    return np.einsum("ijl,jkl->lik", about_axis, about_first)


def compute(quick: bool) -> Result:
    """Solve in the co-rotating frame from a cap."""
    mesh, labels = ts.healpix(4 if quick else 16), ts.labels.interval(12 if quick else 96)
    kernel = ts.kernels.generalised_rope(ts.kernels.Linear(), rotation=turn)
    cap = ts.densities.von_mises_fisher(mesh, [0.2, 1.0, 0.1], 3.0)
    start = np.repeat(cap[None], labels.count, axis=0)
    run = ts.solve_joint(mesh, labels, kernel, start, save_at=[0.0, 10.0], frame="co-rotating")
    place = labels.weights @ (run.densities[-1] * mesh.areas) @ mesh.centers
    return Result(run, np.einsum("lij,i->lj", turn(labels.points), place / np.linalg.norm(place)))


def draw(result: Result) -> Axes:
    """The content as a curve on the sphere."""
    labels = result.run.labels
    view = plots.Orthographic((1.0, 0.4, 0.9))
    return plots.label_curve(
        labels.points, result.points, view, period=1.0, title="Generalised RoPE: content on a curve"
    )


def check(result: Result) -> Check:
    """The energy at the end; a cluster as wide as a cell h lacks about h² of it."""
    run = result.run
    return Check("energy at the end", float(run.records["energy"][-1]), 0.5, run.mesh.width**2, "theory §2.3, fact 2")


if __name__ == "__main__":
    main("generalised_rope", compute, draw, check)
