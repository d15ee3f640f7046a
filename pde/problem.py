"""Where mesh and attention meet: the speeds that a density under an attention head gives rise to."""

from functools import cached_property

import numpy as np

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.levels import finer
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.limiter import prolong
from tokensphere.pde.march import Field


class AttentionFlow:
    """The flow of the mean-field transformer equation,  v[ρ](x) = P_x V ∇log F(βBᵀx)  (times F if unnormalised).

    Args:
        mesh: circle (d = 2) or sphere (d = 3).
        attention: the head; β = inf makes the flow steady.
        method: of the attention integral.
        rtol: its relative tolerance.

    Raises:
        InputError: where the attention's dimension is not the mesh's.
    """

    def __init__(self, mesh: Mesh, attention: Attention, *, method: str = "auto", rtol: float = 1e-8) -> None:
        if mesh.dimension != attention.dimension:
            raise InputError(
                f"the attention acts on vectors of {attention.dimension} coordinates but the mesh lies in "
                f"{mesh.dimension} dimensions; use a circle with d = 2 and a sphere with d = 3."
            )
        self.mesh = mesh
        self.attention = attention
        self.method = method
        self.rtol = rtol
        self._integrals: dict[int, AttentionIntegral] = {}

    @property
    def steady(self) -> bool:
        """Whether the speeds do not depend on the density (β = inf)."""
        return self.attention.zero_temperature

    @cached_property
    def _normals(self) -> Floats:
        """N_q V as rows, so that ⟨N_q, P V m⟩ = ⟨Vᵀ N_q, m⟩: N_q is tangent."""
        return self.mesh.face_normals @ self.attention.value

    def field(self, density: Floats) -> Field:
        """Normal speeds (points,) of the velocity at the face points, and which method served which share of them."""
        levels = 0
        integral = self._integral(levels)
        mean, log_normaliser = integral(prolong(self.mesh, density, levels))
        speeds = np.einsum("pd,pd->p", self._normals, mean)
        if not self.attention.normalised and not self.steady:
            speeds *= np.exp(log_normaliser)
        notes = {f"{name}_fraction": share for name, share in integral.served.items()}
        return Field(speeds, {**notes, "levels": float(levels)})

    def _integral(self, levels: int) -> AttentionIntegral:
        if levels not in self._integrals:
            self._integrals[levels] = AttentionIntegral(
                finer(self.mesh, levels), self.attention, self.mesh.face_points, self.method, self.rtol
            )
        return self._integrals[levels]
