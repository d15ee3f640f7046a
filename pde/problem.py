"""Where mesh and attention meet: the speeds that a density under an attention head gives rise to."""

import logging
from functools import cached_property

import numpy as np

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import LARGEST_NSIDE
from tokensphere.meshes.levels import finer_cells
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.pde.attention import Attention
from tokensphere.pde.integral import AttentionIntegral
from tokensphere.pde.march import Field, velocity_tolerance
from tokensphere.pde.peaks import integral_with_peaks
from tokensphere.pde.subcell import aliasing_error, kernel_levels

logger = logging.getLogger(__name__)

MOST_LEVELS = 3


class AttentionFlow:
    """The flow of the mean-field transformer equation,  v[ρ](x) = P_x V ∇log F(βBᵀx)  (times F if unnormalised).

    Args:
        mesh: circle (d = 2) or sphere (d = 3).
        attention: the head; β = inf makes the flow steady.
        method: of the attention integral.
        rtol: its relative tolerance.

    A kernel narrower than a cell is integrated on ``levels`` finer levels of the limited reconstruction, as many as
    bring the error of cells taken as points below h²/6 and 1/100β; where three are not enough, a warning says what is
    left.  Clusters within two cells are taken as points (``peaks.split``).

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
        # The drift that the temperature adds is of size 1/β: it has to be resolved, not only the mean of size 1.
        sharpest = attention.beta * float(np.linalg.norm(attention.B, 2))
        tolerance = min(velocity_tolerance(mesh), 0.01 / sharpest)
        finest = min(mesh.resolution * 2**MOST_LEVELS, LARGEST_NSIDE if mesh.kind == "healpix" else 2**24)
        self.levels = kernel_levels(mesh, attention, tolerance, finest)
        left = aliasing_error(mesh, attention, self.levels)
        if left > tolerance:
            logger.warning(
                "the kernel of β = %g is narrower than the cells it is integrated on, %d levels below %s(%d): the "
                "attention mean may be off by %.2g; take a finer mesh",
                attention.beta,
                self.levels,
                mesh.kind,
                mesh.resolution,
                left,
            )

    @property
    def steady(self) -> bool:
        """Whether the speeds do not depend on the density (β = inf)."""
        return self.attention.zero_temperature

    @cached_property
    def _normals(self) -> Floats:
        """N_q V as rows, so that ⟨N_q, P V m⟩ = ⟨Vᵀ N_q, m⟩: N_q is tangent."""
        result: Floats = np.einsum("pd,dk->pk", self.mesh.face_normals, self.attention.value)
        return result

    def field(self, density: Floats) -> Field:
        """Normal speeds (points,) of the velocity at the face points, and which method served which share of them."""
        if self.steady:
            mean, log_normaliser = self._integral(density)
        else:
            mean, log_normaliser = integral_with_peaks(self.mesh, density, self.levels, self._integral, self._tilts)
        speeds = np.einsum("pd,pd->p", self._normals, mean)
        if not self.attention.normalised:
            speeds *= np.exp(log_normaliser)
        notes = {f"{name}_fraction": share for name, share in self._integral.served.items()}
        return Field(speeds, {**notes, "levels": float(self.levels)})

    @cached_property
    def _tilts(self) -> Floats:
        return self.attention.tilts(self.mesh.face_points)

    @cached_property
    def _integral(self) -> AttentionIntegral:
        fine = finer_cells(self.mesh, self.levels)
        return AttentionIntegral(fine, self.attention, self.mesh.face_points, self.method, self.rtol)
