"""Linear stability of the uniform density: growth rates by degree, the dominant degree, and the rates a run shows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.mesh import Mesh

Floats = NDArray[np.float64]


def growth_rate(dimension: int, degree: int, beta: float, *, sign: int = 1, normalised: bool = True) -> float:
    """Rate at which degree l of a perturbation of the uniform density grows, for Q = K = I and V = sign·I.

    Softmax:       sign · l(l+d−2) I_{l+d/2−1}(β) / (β I_{d/2−1}(β)).
    Unnormalised:  sign · l(l+d−2) c_l(β)/β with c_l = I_l on S¹ and the modified spherical Bessel function i_l on S².
    At β = 0 the limits are taken: only degree 1 grows, at (d−1)/d. Rates are per unit of time.

    Raises InputError for d other than 2 and 3, a negative degree, or β that is negative or not finite.
    Source: theory of the low-temperature document, linearisation of equation (2) at the uniform state.
    """
    if dimension not in (2, 3):
        raise InputError(f"dimension is {dimension}, allowed are 2 (circle) and 3 (sphere); give one of them.")
    if degree < 0 or not 0 <= beta < np.inf:
        raise InputError(f"degree {degree} and beta {beta} were given; both must be finite and not negative.")
    if degree == 0:
        return 0.0
    if beta == 0:
        return sign * (dimension - 1) / dimension if degree == 1 else 0.0
    order = dimension / 2 - 1
    laplacian = degree * (degree + dimension - 2)
    if normalised:
        return float(sign * laplacian * ive(degree + order, beta) / (beta * ive(order, beta)))
    # i_l(β) = √(π/2β) I_{l+1/2}(β); ive carries e^{−β} so that large β does not overflow before the end
    factor = 1.0 if dimension == 2 else np.sqrt(np.pi / (2 * beta))
    return float(sign * laplacian * factor * ive(degree + order, beta) * np.exp(beta) / beta)


def dominant_degree(dimension: int, beta: float) -> int:
    """The degree that grows fastest for V = +I (about √(2β)); the same for the softmax and the unnormalised equation.

    Raises InputError as `growth_rate` does.
    """
    highest = int(3 * np.sqrt(2 * beta)) + 4
    rates = [growth_rate(dimension, degree, beta) for degree in range(1, highest + 1)]
    return int(np.argmax(rates)) + 1


def degree_amplitudes(mesh: Mesh, densities: Floats, highest: int) -> Floats:
    """Amplitude of each degree, (saves, highest+1): the root of the sum over orders of the squared coefficients.

    On the circle the Fourier coefficients ∫e^{−ilθ}dρ (up to the cell-average factor, which is constant in time), on
    the sphere the spherical-harmonic ones of the cell masses. Rates come from ratios in time, so factors cancel.
    """
    rows = np.atleast_2d(densities)
    if mesh.kind == "circle":
        spectrum = np.fft.rfft(rows * mesh.areas, axis=-1)
        return np.abs(spectrum[:, : highest + 1])
    from tokensphere.meshes.harmonics import analyse

    coefficients = analyse(mesh.centers, rows * mesh.areas, highest)
    return np.array([_by_degree(row, highest) for row in coefficients])


def _by_degree(coefficients: NDArray[np.complex128], highest: int) -> Floats:
    """Amplitude per degree of coefficients a_lm, m ≥ 0, in the m-major order of healpy and ducc0."""
    squares = np.zeros(highest + 1)
    start = 0
    for order in range(highest + 1):
        size = highest + 1 - order
        weight = 1.0 if order == 0 else 2.0
        squares[order:] += weight * np.abs(coefficients[start : start + size]) ** 2
        start += size
    return np.sqrt(squares)


@dataclass(frozen=True)
class MeasuredRate:
    """Growth rate of one degree fitted to a run: slope, its standard error, and the largest misfit of log a."""

    degree: int
    rate: float
    error: float
    misfit: float


def measured_rates(times: Floats, amplitudes: Floats, *, largest: float = np.inf) -> list[MeasuredRate]:
    """Least-squares slopes of log a_l(t), l ≥ 1, over the saves whose relative amplitude a_l/a_0 is at most `largest`.

    times (saves,), amplitudes (saves, degrees) from `degree_amplitudes`. `largest` ends the linear phase: beyond
    about .05 modes feed each other. Degrees with fewer than three usable saves are left out.
    """
    found = []
    for degree in range(1, amplitudes.shape[1]):
        relative = amplitudes[:, degree] / amplitudes[:, 0]
        usable = (relative > 0) & (relative <= largest)
        if np.count_nonzero(usable) < 3:
            continue
        t, y = times[usable], np.log(relative[usable])
        design = np.column_stack([t, np.ones_like(t)])
        solution, *_ = np.linalg.lstsq(design, y, rcond=None)
        residual = y - design @ solution
        spread = np.sum((t - t.mean()) ** 2)
        error = np.sqrt(np.sum(residual**2) / (len(t) - 2) / spread)
        found.append(MeasuredRate(degree, float(solution[0]), float(error), float(np.abs(residual).max())))
    return found
