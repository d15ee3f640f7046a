"""Theorem 1 against curves: fits of closed forms, envelope and verdict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from tokensphere.meshes.errors import InputError
from tokensphere.validation.bound import (
    Curve,
    closed_form_shape,
    concentration_phase,
    decay_prefactor,
    envelope_at,
    fit_envelope,
    fit_power,
    fit_rate,
    judge_bound,
    temperature_term,
    without_width,
)

TIMES = np.linspace(0, 8, 161)


def plain(beta: float, distances: np.ndarray) -> Curve:
    return Curve(beta, TIMES, distances, np.zeros(len(TIMES)))


@pytest.mark.parametrize(("dimension", "multiplicity"), [(2, 1), (3, 1), (3, 2)])
def test_closed_forms_give_back_their_rate(dimension: int, multiplicity: int) -> None:
    shape = closed_form_shape(dimension, multiplicity)
    found = fit_rate(TIMES, shape(np.exp(-1.3 * TIMES)), shape)
    assert found.value == pytest.approx(1.3, rel=1e-8)


def test_the_interval_of_a_rate_covers_it() -> None:
    shape, random = closed_form_shape(3, 2), np.random.default_rng(0)
    exact = shape(np.exp(-1.3 * TIMES))
    fits = [fit_rate(TIMES, exact * np.exp(0.02 * random.normal(size=len(TIMES))), shape) for _ in range(40)]
    # nominally 95 %, more where the two halves disagree
    assert np.mean([fit.low < 1.3 < fit.high for fit in fits]) >= 0.85
    assert np.median([fit.high - fit.low for fit in fits]) < 0.03


def test_the_observed_rate_of_a_line_is_half_the_gap() -> None:
    found = fit_rate(TIMES, np.sqrt(2 * np.exp(-1.6 * TIMES) / (1 + np.exp(-1.6 * TIMES))))
    assert found.value == pytest.approx(0.8, rel=0.03)
    assert found.low < 0.8 + 1e-9 or found.value < 0.8


def test_only_the_concentration_phase_is_fitted() -> None:
    distances = np.exp(-TIMES) + 1e-4 * np.exp(2 * (TIMES - 4))
    chosen = concentration_phase(distances)
    assert TIMES[chosen].max() < 3
    assert fit_rate(TIMES, distances).value == pytest.approx(1.0, rel=0.02)
    with pytest.raises(InputError, match="save more often"):
        fit_rate(TIMES[::40], distances[::40])


@given(st.floats(-2, -0.1), st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_powers_are_recovered(power: float, prefactor: float) -> None:
    betas = np.array([10.0, 20.0, 40.0, 80.0])
    found = fit_power(betas, prefactor * betas**power)
    assert found.value == pytest.approx(power)
    assert found.prefactor == pytest.approx(prefactor)


def test_the_interval_of_a_power_is_the_t_interval() -> None:
    # four points, residuals ±δ: worked out by hand, t_{.975, 2} = 4.302653
    x = np.array([0.0, 1.0, 2.0, 3.0])
    found = fit_power(np.exp(x), np.exp(0.5 * x + 0.1 * np.array([1, -1, -1, 1])))
    assert found.high - found.value == pytest.approx(4.302653 * np.sqrt(0.04 / 2 / 5), rel=1e-6)
    with pytest.raises(InputError):
        fit_power(np.array([1.0, 2.0]), np.array([1.0, 2.0]))


def test_widths_are_subtracted_in_squares() -> None:
    assert without_width(np.array([0.5, 0.1]), np.array([0.3, 0.2])) == pytest.approx([0.4, 0.0])


def test_the_temperature_term() -> None:
    assert temperature_term(np.inf) == 0.0
    assert temperature_term(10.0) == pytest.approx(np.sqrt(np.log(11) / 10))


def test_the_envelope_covers_every_curve_and_touches_one() -> None:
    curves = [
        plain(beta, np.exp(-TIMES) + temperature_term(beta) * 0.3 * np.exp(0.4 * TIMES)) for beta in (10.0, 40.0, 160.0)
    ]
    found = fit_envelope(curves, 1.0, 1.0)
    level, growth = found.A, found.C1
    assert (level, growth) == pytest.approx((0.3, 0.4), rel=1e-6)
    assert found.tightest == pytest.approx(1.0)
    for curve in curves:
        assert np.all(curve.distances <= envelope_at(found, curve.beta, TIMES) * (1 + 1e-12))


def test_a_plateau_needs_no_growth() -> None:
    found = fit_envelope([plain(40.0, np.exp(-TIMES) + 0.05)], 1.0, 1.0)
    assert found.C1 == 0.0
    assert pytest.approx(0.05) == found.A * temperature_term(40.0)
    below = fit_envelope([plain(40.0, 0.5 * np.exp(-TIMES))], 1.0, 1.0)
    assert (below.A, below.C1) == (0.0, 0.0)
    assert below.tightest == pytest.approx(0.5)


def test_verdicts() -> None:
    good = [plain(beta, np.exp(-TIMES) + 2 * np.sqrt(0.04 / beta)) for beta in (10.0, 40.0, 160.0)]
    judged = judge_bound(good, 1.0, 1.0)
    assert judged.verdict == "holds"
    assert "also cover beta = 160" in judged.reason
    single = judge_bound(good[:1], 1.0, 1.0)
    assert single.verdict == "holds"
    assert "does not test" in single.reason
    # a plateau that does not fall with β breaks the scaling
    flat = [plain(beta, np.exp(-TIMES) + 0.1) for beta in (10.0, 40.0, 160.0)]
    assert judge_bound(flat, 1.0, 1.0).verdict == "fails"
    # … unless the difference is within the error bars
    wide = [Curve(each.beta, TIMES, each.distances, np.full(len(TIMES), 0.1)) for each in flat]
    assert judge_bound(wide, 1.0, 1.0).verdict == "holds"
    cold = judge_bound([plain(np.inf, np.exp(-0.5 * TIMES))], 1.0, 1.0)
    assert cold.verdict == "fails"
    assert "zero temperature" in cold.reason
    assert judge_bound([plain(np.inf, 0.9 * np.exp(-TIMES))], 1.0, 1.0).verdict == "holds"


def test_the_prefactor_bounds_the_closed_form() -> None:
    # S², k = 1, uniform: W2² = 2a/(1+a) ≤ 2^{1−p/2} M_p a^p for every p < 1, M_p = 1/(1−p)
    a = np.exp(-1.6 * TIMES)
    for p in (0.2, 0.5, 0.9):
        bound = decay_prefactor(p, 1 / (1 - p)) * np.exp(-p / 2 * 1.6 * TIMES)
        assert np.all(np.sqrt(2 * a / (1 + a)) <= bound)
        # geodesic W2² = ∫ arctan²(a tan θ) sin θ dθ
        geodesic = np.sqrt(quad(lambda th: np.arctan(a[20] * np.tan(th)) ** 2 * np.sin(th), 0, np.pi / 2)[0])
        assert geodesic <= decay_prefactor(p, 1 / (1 - p), "geodesic") * a[20] ** (p / 2)
    with pytest.raises(InputError):
        decay_prefactor(2.5, 1.0)


def test_a_curve_needs_matching_arrays() -> None:
    with pytest.raises(InputError):
        Curve(1.0, TIMES, TIMES[:-1], TIMES)


def test_the_prefactor_is_the_one_of_theory() -> None:
    # W2² ≤ 2^{1−p/2} e^{−pγt/σmax} M_p (chordal), (π/2)^{2−p} for the geodesic metric (theory §1.3 f)
    assert decay_prefactor(1.0, 4.0) == pytest.approx(np.sqrt(4 * np.sqrt(2)))
    assert decay_prefactor(1.0, 4.0, "geodesic") == pytest.approx(np.sqrt(2 * np.pi))
    assert decay_prefactor(2.0, 4.0) == decay_prefactor(2.0, 4.0, "geodesic") == pytest.approx(2.0)
