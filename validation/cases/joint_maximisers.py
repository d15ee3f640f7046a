"""Maximisers of the joint energy and what happens next to them: the facts of theory §2.3 that need no mesh."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import iv

from tokensphere.meshes import labels as label_spaces
from tokensphere.pde import kernels
from tokensphere.pde.kernels import Kernel
from tokensphere.validation.cases.registry import Row, below, case
from tokensphere.validation.exact_joint import partial_period_mean
from tokensphere.validation.maximisers import search
from tokensphere.validation.particle_fields import kernel_velocity

Array = NDArray[np.float64]

CIRCLE = label_spaces.circle(32)


def found(name: str, kernel: Kernel, energy: float, restarts: int = 3) -> list[Row]:
    """The best graph law that ascent finds has the energy that theory names, to 1e−7."""
    best = search(CIRCLE, kernel, 3, np.random.default_rng(2), restarts)
    return [below(f"joint_maximisers: {name} ({best.shape.name})", CIRCLE.count, abs(best.energy / energy - 1), 1e-7)]


@case("joint_maximisers")
def joint_maximisers() -> list[Row]:
    """Energies of facts 2, 8, 9 and 10 found again from random starts, 32 labels."""
    linear, profile = kernels.Linear(), kernels.Exponential(2.0, "1/beta")
    bias = kernels.distance_bias(0.3, profile)
    total = float(CIRCLE.weights @ bias.mixing(CIRCLE) @ CIRCLE.weights)
    rows = [
        *found("rope", kernels.rope(1.0, profile), math.exp(2) / 4),
        *found("cos", kernels.toeplitz(linear, cosines=[(1, 1.0)]), 0.25),
        *found(".6 + cos", kernels.toeplitz(linear, cosines=[(0, 0.6), (1, 1.0)]), 0.3),
        *found("distance bias", bias, math.exp(2) / 4 * total),
    ]
    for beta, energy, restarts in ((1.0, float(iv(1, 1.0)) / 2, 2), (1.58, 0.10954599 * math.exp(1.58), 8)):
        kernel = kernels.toeplitz(kernels.Exponential(beta), cosines=[(1, 1.0)])
        rows += found(f"cos·exp at beta={beta:g}", kernel, energy, restarts)
    return rows


@case("joint_repulsion")
def joint_repulsion() -> list[Row]:
    """With one label and h = −e^{β⟨x,y⟩} the uniform law beats every graph law: fact 3 needs its hypothesis."""
    kernel = kernels.toeplitz(kernels.Exponential(2.0), cosines=[(0, -1.0)])
    best = search(label_spaces.finite([1.0]), kernel, 3, np.random.default_rng(0), 2)
    uniform = -math.sinh(2.0) / 4
    return [Row("joint_repulsion", 1, best.energy, None, uniform, best.energy < uniform)]


@case("joint_local_rate")
def joint_local_rate() -> list[Row]:
    """Next to a gauge maximiser every deviation from the common u decays at −g'(1) (fact 11)."""
    profile = kernels.Exponential(2.0, "1/beta")
    kernel = kernels.rope(1.0, profile)
    turns = kernel.gauge(CIRCLE, 3)
    assert turns is not None
    base = np.array([0.6, 0.0, 0.8])
    shifts = np.random.default_rng(3).normal(size=(CIRCLE.count, 3))
    shifts -= (shifts @ base)[:, None] * base
    shifts -= shifts.mean(axis=0)
    velocity = kernel_velocity(kernel, CIRCLE, np.arange(CIRCLE.count), CIRCLE.weights)
    ends = []
    for sign in (1.0, -1.0):
        u = base + sign * 1e-5 * shifts
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        ends.append(np.einsum("lij,lj->li", turns, velocity(np.einsum("lij,li->lj", turns, u))))
    slope = (ends[0] - ends[1]) / 2e-5
    expected = -float(profile.derivative(np.array(1.0))) * shifts
    return [below("joint_local_rate", CIRCLE.count, float(np.abs(slope - expected).max()), 1e-7)]


@case("joint_partial_period")
def joint_partial_period() -> list[Row]:
    """|mean x|² of the RoPE maximiser over an arc of labels (fact 12)."""
    arc = label_spaces.gauss_interval(24)
    turns = kernels.rope(4.0, kernels.Linear()).gauge(arc, 3)
    assert turns is not None
    points = np.array([math.sin(1.1), 0.0, math.cos(1.1)]) @ turns
    square = float(np.sum((arc.weights @ points) ** 2))
    return [below("joint_partial_period", arc.count, abs(square - partial_period_mean(1.1, 4.0)), 1e-12)]
