"""Theorem 1 against measured curves: fitted rate, plateau and fixed-time powers, envelope and verdict.

    W2(ρ^β_t, Π♯ρ0) ≤ A √(log(β+1)/β) e^{C1 t} + D e^{−ct}

The theorem is an upper bound: nothing here turns it into an equality. Distances may be chordal or geodesic.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tokensphere.meshes.errors import InputError

Floats = NDArray[np.float64]
Shape = Callable[[Floats], Floats]

WINDOW = (0.07, 0.2)  # distances of the concentration phase: below lies the plateau and the mesh floor


@dataclass(frozen=True, eq=False)
class Curve:
    """A measured distance W2(ρ^β_t, Π♯ρ0) at one β: times, distances and their error bars, each (saves,)."""

    beta: float
    times: Floats
    distances: Floats
    errors: Floats

    def __post_init__(self) -> None:
        if not len(self.times) == len(self.distances) == len(self.errors) >= 2:
            raise InputError("a curve needs one distance and one error for each of at least 2 times; give such arrays.")


@dataclass(frozen=True)
class Fit:
    """A fitted number with its 95 % confidence interval [low, high], the prefactor beside it and the points used."""

    value: float
    low: float
    high: float
    prefactor: float
    points: int


def temperature_term(beta: float) -> float:
    """√(log(β+1)/β), the finite-temperature term of Theorem 1 (0 at β = inf)."""
    return 0.0 if math.isinf(beta) else math.sqrt(math.log1p(beta) / beta)


def closed_form_shape(dimension: int, multiplicity: int) -> Shape:
    """W2 as a function of a = e^{−γt} for uniform data and equal other eigenvalues (theory §1.3 g), chordal."""
    from tokensphere.validation.exact_distances import chordal_squared

    return lambda a: np.sqrt(chordal_squared(a, dimension, multiplicity))


def concentration_phase(distances: Floats, window: tuple[float, float] = WINDOW) -> NDArray[np.int64]:
    """Indices of the saves before the smallest distance whose distance lies in the window."""
    lowest = int(np.argmin(distances))
    index = np.arange(len(distances))
    return np.flatnonzero((index <= lowest) & (distances >= window[0]) & (distances <= window[1]))


def fit_rate(
    times: Floats, distances: Floats, shape: Shape | None = None, window: tuple[float, float] = WINDOW
) -> Fit:
    """The rate c in W2 = shape(e^{−ct}), or in W2 = C e^{−ct} where no shape is given, over the concentration phase.

    Least squares of log W2. The interval is the larger of the 95 % t-interval and the spread between the fits of the
    two halves of the window, because the misfit of a smooth curve is not noise. Raises InputError for fewer than four
    saves in the window.
    """
    chosen = concentration_phase(distances, window)
    if len(chosen) < 4:
        raise InputError(
            f"only {len(chosen)} saves have a distance between {window[0]} and {window[1]} before the smallest one; "
            "at least 4 are needed, save more often or widen the window."
        )
    fit = _exponential if shape is None else _shaped(shape)
    t, w = times[chosen], np.log(distances[chosen])
    value, prefactor, error = fit(t, w)
    half = len(t) // 2
    parts = [fit(t[:half], w[:half])[0], fit(t[half:], w[half:])[0]] if half >= 3 else [value]
    reach = max(error, max(abs(part - value) for part in parts))
    return Fit(value, value - reach, value + reach, prefactor, len(t))


def _interval(residual: Floats, sensitivity: Floats, unknowns: int) -> float:
    """Half width of the 95 % t-interval of a slope with ∂model/∂slope given (centred where a constant is fitted)."""
    freedom = len(residual) - unknowns
    variance = float(residual @ residual) / max(freedom, 1) / max(float(sensitivity @ sensitivity), 1e-300)
    return float(stdtrit(max(freedom, 1), 0.975) * math.sqrt(variance))


def _exponential(t: Floats, log_w: Floats) -> tuple[float, float, float]:
    slope, intercept = np.polyfit(t, log_w, 1)
    residual = log_w - (slope * t + intercept)
    return -float(slope), float(np.exp(intercept)), _interval(residual, t - t.mean(), 2)


def _shaped(shape: Shape) -> Callable[[Floats, Floats], tuple[float, float, float]]:
    from scipy.optimize import least_squares

    def fit(t: Floats, log_w: Floats) -> tuple[float, float, float]:
        def residual(c: Floats) -> Floats:
            return np.asarray(np.log(shape(np.exp(-c[0] * t))) - log_w)

        start = np.array([max(2 * _exponential(t, log_w)[0], 1e-3)])
        found = least_squares(residual, start, x_scale="jac")
        return float(found.x[0]), 1.0, _interval(found.fun, found.jac[:, 0], 1)

    return fit


def fit_power(betas: Floats, values: Floats) -> Fit:
    """The power s in value = C β^s by least squares of logs, with its 95 % t-interval.

    Raises InputError for fewer than three positive values.
    """
    usable = (values > 0) & np.isfinite(values) & np.isfinite(betas)
    if np.count_nonzero(usable) < 3:
        raise InputError("a power needs at least 3 finite values of beta with a positive result each; sweep over more.")
    x, y = np.log(betas[usable]), np.log(values[usable])
    slope, intercept = np.polyfit(x, y, 1)
    reach = _interval(y - (slope * x + intercept), x - x.mean(), 2)
    return Fit(float(slope), float(slope - reach), float(slope + reach), float(np.exp(intercept)), len(x))


def without_width(plateaus: Floats, widths: Floats) -> Floats:
    """√(W² − w²): the plateau of W2 without the width w of the clusters, which adds in squares."""
    return np.asarray(np.sqrt(np.maximum(plateaus**2 - widths**2, 0.0)))


@dataclass(frozen=True)
class Envelope:
    """Constants A, C1, D, c of the bound; `tightest` is the largest measured/bound ratio (≤ 1 on the curves fitted)."""

    A: float
    C1: float
    D: float
    c: float
    tightest: float


def envelope_at(constants: Envelope, beta: float, times: Floats) -> Floats:
    """The right-hand side of the bound at times (saves,)."""
    growing = constants.A * temperature_term(beta) * np.exp(constants.C1 * times)
    return np.asarray(growing + constants.D * np.exp(-constants.c * times))


def fit_envelope(curves: Sequence[Curve], c: float, D: float) -> Envelope:
    """Smallest common A and C1 ≥ 0 with which every curve obeys the bound, for given c and D.

    What the decaying term leaves, (W2 − De^{−ct})/√(log(β+1)/β), is covered by A e^{C1 t}: of all such covers the one
    with the smallest mean excess in the logarithm. A curve at β = inf must obey D e^{−ct} alone.
    """
    t, r = _remainders(curves, c, D)
    if len(t) == 0:
        A, C1 = 0.0, 0.0
    else:
        C1 = _supporting_slope(t, np.log(r))
        A = float(np.exp(np.max(np.log(r) - C1 * t)))
    constants = Envelope(A, C1, D, c, 0.0)
    ratio = max(float(np.max(curve.distances / envelope_at(constants, curve.beta, curve.times))) for curve in curves)
    return Envelope(A, C1, D, c, ratio)


def _remainders(curves: Sequence[Curve], c: float, D: float) -> tuple[Floats, Floats]:
    times, left = [np.empty(0)], [np.empty(0)]
    for curve in curves:
        if math.isinf(curve.beta):
            continue
        rest = (curve.distances - D * np.exp(-c * curve.times)) / temperature_term(curve.beta)
        times.append(curve.times[rest > 0])
        left.append(rest[rest > 0])
    return np.concatenate(times), np.concatenate(left)


def _supporting_slope(t: Floats, y: Floats) -> float:
    """Slope ≥ 0 of the line above all points (t, y) with the least mean excess.

    That mean is max(y − C t) + C mean(t), convex and piecewise linear in the slope C; its minimum is a slope between
    two points of the upper hull, found by bisection on the side of mean(t) on which the touching point lies.
    """
    middle = float(t.mean())
    low, high = 0.0, 1.0
    if t[np.argmax(y)] <= middle:
        return 0.0
    while t[np.argmax(y - high * t)] > middle and high < 1e12:
        high *= 2
    for _ in range(80):
        slope = (low + high) / 2
        if t[np.argmax(y - slope * t)] > middle:
            low = slope
        else:
            high = slope
    return high


@dataclass(frozen=True)
class BoundVerdict:
    """Does the bound hold with these constants? "holds", "fails" or "undecided", with the reason in one sentence."""

    verdict: str
    constants: Envelope
    reason: str


def judge_bound(curves: Sequence[Curve], c: float, D: float) -> BoundVerdict:
    """Verdict on the bound for one run or a sweep over β, with c and D from theory (or fitted).

    c: rate that follows from H2, (p/2)γ/σmax(B); D: its prefactor, √(2^{1−p/2} M_p) (chordal). Several finite β: A and
    C1 are found without the largest β, which then has to obey them within its error bars — the scaling in β is what
    is tested. One β: any curve can be covered, so the verdict says only that finite constants exist.
    """
    for curve in curves:
        over = curve.distances - curve.errors - D * np.exp(-c * curve.times)
        if math.isinf(curve.beta) and np.any(over > 0):
            when = float(curve.times[int(np.argmax(over))])
            reason = f"at zero temperature the distance exceeds {D:.4g} exp(−{c:.4g} t) at t = {when:.4g}."
            return BoundVerdict("fails", fit_envelope(curves, c, D), reason)
    finite = sorted((curve for curve in curves if not math.isinf(curve.beta)), key=lambda curve: curve.beta)
    constants = fit_envelope(curves, c, D)
    numbers = f"A = {constants.A:.4g}, C1 = {constants.C1:.4g}, D = {D:.4g}, c = {c:.4g}"
    if not finite or finite[0].beta == finite[-1].beta:
        reason = f"the bound holds with {numbers}; one value of beta does not test how it scales with beta."
        return BoundVerdict("holds", constants, reason)
    fitted = fit_envelope([curve for curve in finite if curve.beta < finite[-1].beta], c, D)
    last = finite[-1]
    allowed = envelope_at(fitted, last.beta, last.times)
    if np.any(last.distances - last.errors > allowed):
        worst = float(np.max(last.distances / allowed))
        reason = (
            f"the constants of the smaller beta (A = {fitted.A:.4g}, C1 = {fitted.C1:.4g}) do not cover beta = "
            f"{last.beta:g}, which exceeds them by the factor {worst:.4g}."
        )
        return BoundVerdict("fails", constants, reason)
    reason = f"the bound holds with {numbers}; the constants of the smaller beta also cover beta = {last.beta:g}."
    return BoundVerdict("holds", constants, reason)


def decay_prefactor(p: float, moment: float, metric: str = "chordal") -> float:
    """D with W2(ρ_t, Π♯ρ0) ≤ D e^{−(p/2)γt/σmax}: √(2^{1−p/2} M_p) chordal, √((π/2)^{2−p} M_p) geodesic.

    0 < p ≤ 2; moment is M_p = ∫|P_E x|^{−p}dρ0, which is at least ∫tan^p∠(x,E)dρ0. Source: theory §1.3 (f).
    """
    if not 0 < p <= 2:
        raise InputError(f"p is {p}, allowed is 0 < p <= 2; choose such a power.")
    constant = 2.0 ** (1 - p / 2) if metric == "chordal" else (math.pi / 2) ** (2 - p)
    return math.sqrt(constant * moment)
