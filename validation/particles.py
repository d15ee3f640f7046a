"""Reference particles: tokens moved by exact all-pairs interaction, as the oracle a particle code is compared with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.pde.attention import Attention
from tokensphere.pde.kernels import Kernel
from tokensphere.validation.integrators import TOLERANCE, Path, integrate, on_sphere
from tokensphere.validation.particle_fields import Velocity, attention_velocity, kernel_velocity

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

UNIT = 1e-6
"""Tokens may start this far from the sphere; they are put on it exactly."""

MASS = 1e-9
"""The weights may miss 1 by this much; they are rescaled."""


@dataclass(frozen=True, eq=False)
class ParticleRun:
    """Tokens at the requested times: positions (times, n, d) on the sphere, weights (n,), and what the run cost."""

    times: Array
    positions: Array
    weights: Array
    steps: int
    rejected: int
    evaluations: int

    def mean(self) -> Array:
        """Σ w_i x_i at every time (times, d)."""
        return np.asarray(np.einsum("n,tnd->td", self.weights, self.positions))


def advance_tokens(
    attention: Attention,
    positions: ArrayLike,
    times: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    method: str = "auto",
    step: float | None = None,
    tolerance: float = TOLERANCE,
) -> ParticleRun:
    """dx_i/dt = P_{x_i} V Σ_j w_j x_j e^{β⟨Qx_i,Kx_j⟩} / Σ_j w_j e^{β⟨Qx_i,Kx_j⟩} from positions (n, d), in any d.

    Unnormalised attention leaves the denominator out; β = inf is v = P_x V Bᵀx/|Bᵀx|.  `times` starts with the time
    of `positions`.  `step` fixes RK4 steps; otherwise they adapt to the `tolerance` of one step.  `method` as in
    `token_attention`.  Source: first document, equation (2).

    Raises InputError for positions off the sphere, weights that are not a law, or times that do not increase.
    """
    start, masses = checked_tokens(positions, weights, attention.dimension)
    return _run(attention_velocity(attention, masses, method), start, masses, times, step, tolerance)


def advance_labelled(
    kernel: Kernel,
    labels: Labels,
    indices: ArrayLike,
    positions: ArrayLike,
    times: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    step: float | None = None,
    tolerance: float = TOLERANCE,
) -> ParticleRun:
    """dx_i/dt = P_{x_i}∇_x Σ_j w_j h((x_i,ξ_i),(x_j,ξ_j)): tokens (n, d) with frozen labels `indices` (n,).

    The time unit is the factor in the kernel's profile (theory §2.1).  Raises InputError as `advance_tokens`, and
    for an index outside the labels.
    """
    positions = np.asarray(positions, dtype=np.float64)
    start, masses = checked_tokens(positions, weights, positions.shape[-1])
    chosen = np.asarray(indices)
    whole = chosen.shape == (len(start),) and chosen.dtype.kind in "iu"
    if not whole or chosen.min() < 0 or chosen.max() >= labels.count:
        raise InputError(
            f"label indices of shape {chosen.shape} were given for {len(start)} tokens; give one whole "
            f"number from 0 to {labels.count - 1} per token."
        )
    return _run(kernel_velocity(kernel, labels, chosen.astype(np.int64), masses), start, masses, times, step, tolerance)


def checked_tokens(positions: ArrayLike, weights: ArrayLike | None, dimension: int) -> tuple[Array, Array]:
    """Positions put exactly on the sphere (n, d) and weights that sum to 1 (n,), equal if left out.

    Raises InputError, naming the row, for NaN, a wrong shape, |x| off 1 by more than UNIT, or weights without mass 1.
    """
    tokens = np.array(positions, dtype=np.float64)
    if tokens.ndim != 2 or tokens.shape[1] != dimension or not len(tokens):
        raise InputError(f"the tokens have shape {tokens.shape}, but they must be (n, {dimension}) with n ≥ 1.")
    defect = np.abs(np.linalg.norm(tokens, axis=1) - 1.0)
    if not (defect <= UNIT).all():
        row = int(np.argmin(defect <= UNIT))
        raise InputError(
            f"token {row} has length {np.linalg.norm(tokens[row]):.9g}, but tokens must be finite unit "
            f"vectors to {UNIT:g}; normalise the positions."
        )
    return on_sphere(tokens), checked_weights(weights, len(tokens))


def checked_weights(weights: ArrayLike | None, count: int) -> Array:
    """Weights (n,) that sum to 1; equal if None.  Raises InputError naming the row or the total mass."""
    if weights is None:
        return np.full(count, 1.0 / count)
    masses = np.array(weights, dtype=np.float64)
    if masses.shape != (count,):
        raise InputError(f"the weights have shape {masses.shape}, but {count} tokens need ({count},).")
    good = np.isfinite(masses) & (masses >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"the weight of token {row} is {masses[row]}, but weights must be finite and at least 0.")
    if abs(masses.sum() - 1.0) > MASS:
        raise InputError(
            f"the weights sum to {masses.sum():.12g}, but the mass of the tokens must be 1 to {MASS:g}; "
            "divide them by their sum."
        )
    return np.asarray(masses / masses.sum())


def _run(
    velocity: Velocity, start: Array, weights: Array, times: ArrayLike, step: float | None, tolerance: float
) -> ParticleRun:
    path = integrate(velocity, start, times, retract=on_sphere, step=step, tolerance=tolerance)
    return ParticleRun(path.times, path.states, weights, path.steps, path.rejected, path.evaluations)


__all__ = ["ParticleRun", "Path", "advance_labelled", "advance_tokens", "checked_tokens", "checked_weights"]
