"""The interaction energy of a density, where the equation is a gradient flow."""

import math

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral


def has_energy(attention: Attention) -> bool:
    """Whether E is monotone along the flow: V = B or V = −B, symmetric, at finite β (theory §1.4)."""
    if attention.zero_temperature:
        return False
    scale = 1e-12 * np.linalg.norm(attention.B)
    symmetric = np.abs(attention.B - attention.B.T).max() <= scale
    return bool(
        symmetric
        and min(np.abs(attention.value - attention.B).max(), np.abs(attention.value + attention.B).max()) <= scale
    )


class InteractionEnergy:
    """E[ρ] e^{−β‖B‖} = (1/2β)∬ e^{β(⟨x, By⟩ − ‖B‖)} dρ dρ, scaled so that it neither over- nor underflows with β.

    ‖B‖ is the largest singular value: a Dirac at its singular vector has the value 1/2β. Along the softmax flow
    dE/dt = ±∫|v|² Z dρ for V = ±B.
    """

    def __init__(self, mesh: Mesh, attention: Attention, rtol: float = 1e-8) -> None:
        self._integral = AttentionIntegral(mesh, attention, mesh.centers, rtol=rtol)
        self._areas = mesh.areas
        self._beta = attention.beta
        self._largest = float(np.linalg.norm(attention.B, 2))

    def __call__(self, density: Floats) -> float:
        _, log_normaliser = self._integral(density)
        masses = density * self._areas
        return math.fsum(masses * np.exp(log_normaliser - self._beta * self._largest)) / (2 * self._beta)
