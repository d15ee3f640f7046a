"""The reference: log-sum-exp against scipy's, closed forms at one source, and the extremes of β and density."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from tokensphere.pde.direct import log_sum_exp

Array = NDArray[np.float64]


def unit(rng: np.random.Generator, count: int, dimension: int) -> Array:
    vectors = rng.normal(size=(count, dimension))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def numpy_log_sum_exp(tilts: Array, sources: Array, log_masses: Array) -> tuple[Array, Array]:
    exponents = tilts @ sources.T + log_masses
    total = logsumexp(exponents, axis=1)
    return np.exp(exponents - total[:, None]) @ sources, total


@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize("beta", [1.0, 1e2, 1e4, 1e6])
def test_agrees_with_numpy_over_600_decades(dimension: int, beta: float) -> None:
    rng = np.random.default_rng(int(beta) + dimension)
    sources, tilts = unit(rng, 2500, dimension), beta * unit(rng, 70, dimension)
    log_masses = rng.uniform(np.log(1e-300), np.log(1e300), 2500)
    mean, log_normaliser = log_sum_exp(tilts, sources, log_masses)
    expected_mean, expected_log = numpy_log_sum_exp(tilts, sources, log_masses)
    rounding = 1e-15 * beta + 1e-13  # of the exponents themselves
    np.testing.assert_allclose(mean, expected_mean, atol=10 * rounding)
    np.testing.assert_allclose(log_normaliser, expected_log, atol=10 * rounding)
    assert np.linalg.norm(mean, axis=1).max() <= 1.0 + 1e-14


@pytest.mark.parametrize("beta", [1.0, 1e2, 1e4, 1e6])
def test_one_faint_source_is_the_whole_answer(beta: float) -> None:
    rng = np.random.default_rng(3)
    sources, tilts = unit(rng, 1500, 3), beta * unit(rng, 9, 3)
    log_masses = np.full(1500, -np.inf)
    log_masses[1300] = np.log(1e-300)
    mean, log_normaliser = log_sum_exp(tilts, sources, log_masses)
    np.testing.assert_allclose(mean, np.broadcast_to(sources[1300], mean.shape), rtol=1e-15)
    np.testing.assert_allclose(log_normaliser, tilts @ sources[1300] + np.log(1e-300), rtol=1e-14)


def test_no_mass_at_all() -> None:
    mean, log_normaliser = log_sum_exp(np.eye(3), np.eye(3), np.full(3, -np.inf))
    assert (log_normaliser == -np.inf).all()
    assert (mean == 0.0).all()


def test_two_sources_by_hand() -> None:
    # F(z) = a e^{z} + b e^{−z} on the axis: the mean is tanh(z + log(a/b)/2).
    mean, log_normaliser = log_sum_exp(
        np.array([[3.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.log([2e-4, 0.1])
    )
    assert mean[0, 0] == pytest.approx(np.tanh(3.0 + np.log(2e-3) / 2), rel=1e-14)
    assert log_normaliser[0] == pytest.approx(np.log(2e-4 * np.exp(3) + 0.1 * np.exp(-3)), rel=1e-14)


def test_repeats_bitwise() -> None:
    rng = np.random.default_rng(5)
    arguments = 50.0 * unit(rng, 300, 3), unit(rng, 3000, 3), rng.normal(size=3000)
    first, again = log_sum_exp(*arguments), log_sum_exp(*arguments)
    assert (first[0] == again[0]).all()
    assert (first[1] == again[1]).all()
