"""Initial densities as cell averages per unit area, normalised to mass 1."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.levels import coarsen, refine
from tokensphere.meshes.mesh import Floats, Mesh
from tokensphere.meshes.quadrature import cell_averages
from tokensphere.meshes.rings import to_nested
from tokensphere.pde.direct import log_sum_exp

UNSEEN = -1.6375e30


def normalised(mesh: Mesh, averages: ArrayLike) -> Floats:
    """Cell averages (cells,) scaled to mass 1.

    Raises:
        InputError: for a wrong length, a NaN, an infinity, a negative value or no mass at all.
    """
    density = np.array(averages, dtype=np.float64)
    if density.shape != (mesh.cells,):
        raise InputError(f"the initial density has shape {density.shape}; it must be ({mesh.cells},), a value a cell.")
    if (density == UNSEEN).any():
        cell = int(np.argmax(density == UNSEEN))
        raise InputError(f"the initial density is UNSEEN in cell {cell}; fill every masked cell first.")
    if not np.isfinite(density).all():
        cell = int(np.argmin(np.isfinite(density)))
        raise InputError(f"the initial density is {density[cell]} in cell {cell}; it must be finite everywhere.")
    if density.min() < 0:
        cell = int(density.argmin())
        raise InputError(f"the initial density is {density[cell]:.3g} in cell {cell}; it must not be negative.")
    mass = float(density @ mesh.areas)
    if not 0 < mass < np.inf:
        raise InputError("the initial density is zero everywhere; give it some mass.")
    return density / mass


def uniform(mesh: Mesh) -> Floats:
    """1/4π on the sphere, 1/2π on the circle."""
    return np.full(mesh.cells, 1 / mesh.total_area)


def from_function(mesh: Mesh, function: Callable[[Floats], Floats], degree: int = 7) -> Floats:
    """Cell averages of f(x), x (…, d) unit vectors, by quadrature exact to ``degree`` in face coordinates; mass 1.

    Raises:
        InputError: see ``normalised``.
    """
    return normalised(mesh, cell_averages(mesh, function, degree))


def polynomial(
    mesh: Mesh, constant: float = 1.0, linear: ArrayLike | None = None, quadratic: ArrayLike | None = None
) -> Floats:
    """ρ0 ∝ c + ⟨a, x⟩ + ⟨x, A x⟩ with a (d,) and A (d, d).

    Raises:
        InputError: for coefficients of the wrong shape, or where the polynomial is negative.
    """
    d = mesh.dimension
    vector = _shaped("linear", np.zeros(d) if linear is None else linear, (d,))
    matrix = _shaped("quadratic", np.zeros((d, d)) if quadratic is None else quadratic, (d, d))

    def value(x: Floats) -> Floats:
        result: Floats = constant + np.einsum("...i,i->...", x, vector)
        return result + np.einsum("...i,ij,...j->...", x, matrix, x) if matrix.any() else result

    return from_function(mesh, value)


def von_mises_fisher(mesh: Mesh, mean: ArrayLike, concentration: float) -> Floats:
    """ρ0 ∝ e^{κ⟨m, x⟩} with m = mean/|mean| and κ the concentration.

    Raises:
        InputError: for a zero or misshapen mean, or κ < 0 or not finite.
    """
    direction = _shaped("mean", mean, (mesh.dimension,))
    length = float(np.linalg.norm(direction))
    if length == 0:
        raise InputError("the mean of a von Mises–Fisher density is the zero vector; give it a direction.")
    if not np.isfinite(concentration) or concentration < 0:
        raise InputError(f"the concentration is {concentration}; it must be finite and not negative.")
    unit = direction / length
    degree = 7 if concentration * mesh.width**2 < 0.1 else 19
    return from_function(mesh, lambda x: np.exp(concentration * (x @ unit - 1)), degree)


def mixture(mesh: Mesh, parts: Iterable[tuple[float, Floats]]) -> Floats:
    """Σ w_k ρ_k / Σ w_k of pairs (weight, density).

    Raises:
        InputError: for no pair, a negative weight, or densities that are not (cells,).
    """
    pairs = list(parts)
    if not pairs:
        raise InputError("a mixture needs at least one pair of weight and density.")
    if any(not np.isfinite(weight) or weight < 0 for weight, _ in pairs):
        raise InputError("the weights of a mixture must be finite and not negative.")
    return normalised(mesh, sum(weight * normalised(mesh, density) for weight, density in pairs))


def from_healpix_map(mesh: Mesh, values: ArrayLike, order: str = "ring") -> Floats:
    """A HEALPix map (cells,) in "ring" (healpy's habit) or "nested" order, moved to the mesh's level, mass 1.

    Raises:
        InputError: for an unknown order, a length that is not 12·4^k, or masked, negative or not finite pixels.
    """
    if mesh.kind != "healpix":
        raise InputError("a HEALPix map needs a HEALPix mesh; use ts.healpix(nside).")
    pixels = np.asarray(values, dtype=np.float64)
    nside = round(float(np.sqrt(pixels.size / 12))) if pixels.ndim == 1 else 0
    if nside < 1 or 12 * nside**2 != pixels.size or nside & (nside - 1):
        raise InputError(f"the map has shape {pixels.shape}; its length must be 12·nside² with nside a power of two.")
    nested = normalised(healpix(nside), to_nested(pixels, nside, order))
    if nside > mesh.resolution:
        return normalised(mesh, coarsen(healpix(nside), nested, (nside // mesh.resolution).bit_length() - 1))
    return normalised(mesh, refine(mesh, nested, (mesh.resolution // nside).bit_length() - 1))


def smoothing_concentration(mesh: Mesh, tokens: int) -> float:
    """κ of the kernel ``from_particles`` uses by default: width κ^{−1/2} = max(1.5 h, n^{−1/(d+3)})."""
    width = max(1.5 * mesh.width, float(tokens) ** (-1 / (mesh.dimension + 3)))
    return float(width**-2)


def from_particles(
    mesh: Mesh, points: ArrayLike, weights: ArrayLike | None = None, concentration: float | None = None
) -> Floats:
    """Tokens smoothed by a von Mises–Fisher kernel: ρ0(x) ∝ Σ_j w_j e^{κ⟨x, y_j⟩}; mass 1.

    Args:
        points: (n, d) unit vectors, to 1e−6.
        weights: (n,) non-negative, equal when left out.
        concentration: κ; by default ``smoothing_concentration(mesh, n)``, width max(1.5 h, n^{−1/(d+3)}).

    Raises:
        InputError: for tokens that are not unit vectors (with their row), or unusable weights or κ.
    """
    tokens = np.asarray(points, dtype=np.float64)
    if tokens.ndim != 2 or tokens.shape[1] != mesh.dimension or not len(tokens):
        raise InputError(f"the tokens have shape {tokens.shape}; they must be (n, {mesh.dimension}) with n ≥ 1.")
    lengths = np.linalg.norm(tokens, axis=1)
    if not (np.abs(lengths - 1) <= 1e-6).all():
        row = int(np.argmin(np.abs(lengths - 1) <= 1e-6))
        raise InputError(f"token {row} is {tokens[row].tolist()}; every token must be a unit vector to 1e-6.")
    shares = _shaped("weights", np.ones(len(tokens)) if weights is None else weights, (len(tokens),))
    if shares.min() < 0 or shares.sum() <= 0:
        raise InputError("the weights of the tokens must not be negative and must have a positive sum.")
    kappa = smoothing_concentration(mesh, len(tokens)) if concentration is None else float(concentration)
    if not 0 < kappa < np.inf:
        raise InputError(f"the concentration of the smoothing is {kappa}; it must be positive and finite.")
    with np.errstate(divide="ignore"):
        _, log_values = log_sum_exp(kappa * mesh.centers, tokens / lengths[:, None], np.log(shares))
    return normalised(mesh, np.exp(log_values - log_values.max()))


def _shaped(name: str, values: Any, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise InputError(f"{name} has shape {array.shape}; it must be {shape} and finite.")
    return array
