"""Velocities of weighted tokens under exact all-pairs attention, and under the kernels of the joint law.

A velocity is a function: positions (n, d) → (n, d), tangent to the sphere.  Every interaction is summed over all
tokens, the token itself included, by the integral methods of the mesh: direct (any d), spectral or tree (d = 3).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.pde.attention import Attention
from tokensphere.pde.direct import log_sum_exp
from tokensphere.pde.kernels import Kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Integral = tuple[Array, Array]
Velocity = Callable[[Array], Array]

METHODS = ("auto", "direct", "spectral", "tree")

PAIRS_DIRECT = 2_000_000
"""Up to this many pairs the direct sum is as fast as planning a transform."""

RTOL = 1e-10
"""Relative accuracy auto asks of the spectral method before it hands a token to the tree."""


def token_attention(
    positions: Array, weights: Array, attention: Attention, method: str = "auto", sites: Array | None = None
) -> Integral:
    """Softmax mean Σ_j w_j y_j e^{⟨z,y_j⟩}/F(z) and log F(z) at z = βBᵀx, over n free tokens.

    positions y (n, d), weights w (n,), sites x (m, d), by default the tokens themselves.  Returns (m, d) and (m,).
    method: "direct" in any d; "spectral" (d = 3) has an absolute error, which is noise where F is tiny; "tree" keeps
    the relative accuracy everywhere (d = 2, 3); "auto" takes the spectral method where its own bound allows RTOL and
    the tree for the other tokens.  At β = inf: Bᵀx/|Bᵀx| and +inf, the limit for a positive density.

    Raises InputError for an unknown method or one that does not serve this d.
    """
    sites = positions if sites is None else sites
    if attention.zero_temperature:
        return attention.directions(sites), np.full(len(sites), np.inf)
    return tilted_mean(attention.tilts(sites), positions, weights, method, tilt_lengths(attention))


def tilt_lengths(attention: Attention) -> tuple[float, float]:
    """Bounds βσ_min(B) ≤ |βBᵀx| ≤ βσ_max(B), which no motion of the tokens changes."""
    singular_values = attention.beta * np.linalg.svd(attention.B, compute_uv=False)
    # A hair wider than the numbers, so that no tilt lies outside by round-off.
    return float(singular_values[-1] * (1 - 1e-15)), float(singular_values[0] * (1 + 1e-15))


def tilted_mean(
    tilts: Array, sources: Array, weights: Array, method: str = "auto", spread: tuple[float, float] | None = None
) -> Integral:
    """∇ log F (m, d) and log F (m,) of F(z) = Σ_j w_j e^{⟨z, y_j⟩} at free tilts z (m, d): see `token_attention`.

    `spread` are bounds on |z|: with the same bounds the spectral method plans its radial factors once for all calls.
    """
    dimension = sources.shape[1]
    if method not in METHODS or (method == "spectral" and dimension != 3) or (method == "tree" and dimension > 3):
        raise InputError(
            f"method = {method!r} was given for tokens with d = {dimension}, but the methods are auto, "
            "direct (any d), tree (d = 2 or 3) and spectral (d = 3)."
        )
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    small = len(tilts) * len(sources) <= PAIRS_DIRECT
    if method == "direct" or (method == "auto" and (small or dimension > 3)):
        return log_sum_exp(tilts, sources, log_weights)
    if method == "tree" or (method == "auto" and dimension == 2):
        return _tree(tilts, sources, log_weights)
    from tokensphere.pde.spectral import SpectralPlan

    mean, log_normaliser, floor = SpectralPlan(sources, tilts, spread=spread)(weights)
    poor = np.flatnonzero(floor > RTOL)
    if method == "auto" and len(poor):
        mean[poor], log_normaliser[poor] = _tree(tilts[poor], sources, log_weights)
    return mean, log_normaliser


def _tree(tilts: Array, sources: Array, log_weights: Array) -> Integral:
    from tokensphere.pde.tree import TreePlan

    mean, log_normaliser = TreePlan(sources, tilts, rtol=RTOL)(log_weights)
    return mean, log_normaliser


def tangent(positions: Array, vectors: Array) -> Array:
    """P_x u = u − ⟨x, u⟩x for rows."""
    return np.asarray(vectors - np.einsum("...i,...i->...", positions, vectors)[..., None] * positions)


def velocity_at(attention: Attention, sites: Array, positions: Array, weights: Array, method: str = "auto") -> Array:
    """v(x) = P_x V E(x) at sites x (m, d), E the softmax mean over tokens (n, d) of the given weights (n,).

    Unnormalised attention multiplies it by F.  Where the contributions cancel exactly the velocity is 0.
    Source: first document, equation (2); theory §1.1.
    """
    mean, log_normaliser = token_attention(positions, weights, attention, method, sites)
    if not attention.normalised and not attention.zero_temperature:
        mean = mean * np.exp(log_normaliser)[:, None]
    return tangent(sites, mean @ attention.value.T)


def attention_velocity(attention: Attention, weights: Array, method: str = "auto") -> Velocity:
    """`velocity_at` for the tokens themselves: positions (n, d) → (n, d)."""
    return lambda positions: velocity_at(attention, positions, positions, weights, method)


def kernel_velocity(kernel: Kernel, labels: Labels, indices: Indices, weights: Array) -> Velocity:
    """v_i = P_x∇_x Σ_j w_j h((x_i,ξ_i),(x_j,ξ_j)),  h = b(ξ,ζ) g(⟨Q(ξ)x, Q(ζ)y⟩), by a direct sum in any d.

    indices (n,) point into `labels`; weights (n,) are the masses of the tokens.  Source: second document; theory §2.1.
    """
    mixing = kernel.mixing(labels) if kernel.is_mixing else None
    gauges: dict[int, Array | None] = {}

    def velocity(positions: Array) -> Array:
        dimension = positions.shape[1]
        if dimension not in gauges:
            table = kernel.gauge(labels, dimension)
            gauges[dimension] = None if table is None else table[indices]
        gauge = gauges[dimension]
        turned = positions if gauge is None else np.einsum("nij,nj->ni", gauge, positions)
        pull = _pairwise(kernel, turned, mixing, indices, weights)
        return tangent(positions, pull if gauge is None else np.einsum("nij,ni->nj", gauge, pull))

    return velocity


def _pairwise(kernel: Kernel, turned: Array, mixing: Array | None, indices: Indices, weights: Array) -> Array:
    """Σ_j w_j b_ij g'(⟨u_i,u_j⟩) u_j, in blocks of rows so that memory stays linear in n."""
    pull = np.empty_like(turned)
    rows = max(1, PAIRS_DIRECT // len(turned))
    for start in range(0, len(turned), rows):
        block = slice(start, start + rows)
        strength = kernel.profile.derivative(turned[block] @ turned.T) * weights
        if mixing is not None:
            strength = strength * mixing[indices[block]][:, indices]
        pull[block] = strength @ turned
    return pull
