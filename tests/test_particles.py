"""Reference particles against exact solutions (theory §1.4, §2.3) and other codes."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention
from tokensphere.pde.errors import NumericalError
from tokensphere.pde.kernels import Exponential, rope, toeplitz, usa
from tokensphere.validation import exact_fields, exact_joint, exact_zero_temperature
from tokensphere.validation.document_runs import document_run
from tokensphere.validation.integrators import integrate
from tokensphere.validation.particle_fields import attention_velocity, kernel_velocity, tilted_mean, token_attention
from tokensphere.validation.particles import advance_labelled, advance_tokens

VALUE = np.array([[1, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
HEAD = Attention(np.eye(3), KEY, VALUE, 2.0)
EXACT = 1e-8


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def tokens(count, seed=0, d=3):
    return unit(np.random.default_rng(seed).normal(size=(count, d)))


def test_one_token_follows_the_matrix_exponential():
    times = np.linspace(0, 5, 6)
    run = advance_tokens(HEAD, tokens(1), times)
    exact = np.array([exact_fields.one_token(VALUE, tokens(1)[0], t) for t in times])
    assert np.abs(run.positions[:, 0] - exact).max() < EXACT


@pytest.mark.parametrize("beta", [0.5, 30.0])
def test_an_antipodal_pair_follows_its_equation_and_stays_antipodal(beta):
    head = Attention(np.eye(3), KEY, VALUE, beta)
    start, times = tokens(1)[0], np.linspace(0, 3, 4)
    run = advance_tokens(head, [start, -start], times)
    assert np.abs(run.positions[:, 0] - exact_fields.antipodal_pair(head, start, times)).max() < EXACT
    assert np.abs(run.positions.sum(axis=1)).max() < 1e-15


def test_a_simplex_stays_equiangular_in_five_dimensions():
    n, beta, c = 5, 1.5, 0.3
    times = np.linspace(0, 3, 4)
    start = np.linalg.cholesky((1 - c) * np.eye(n) + c)
    run = advance_tokens(Attention(np.eye(n), np.eye(n), np.eye(n), beta), start, times)
    cosines = np.einsum("tid,tjd->tij", run.positions, run.positions)
    exact = exact_fields.simplex_cosine(n, beta, c, times)
    off = ~np.eye(n, dtype=bool)
    assert np.abs(cosines[:, off] - exact[:, None]).max() < EXACT


def test_two_clusters_of_any_masses_and_labels_close_in_at_the_exact_rate():
    profile, labels = Exponential(3.0, "1/beta"), label_spaces.circle(5)
    kernel = rope(0.7, profile)
    u = np.array([[0, 0, 1.0], [np.sin(1.2), 0, np.cos(1.2)]])
    indices = np.array([0, 2, 4, 1, 3, 0])
    cluster = np.array([0, 0, 0, 1, 1, 1])
    gauge = kernel.gauge(labels, 3)
    start = np.einsum("nji,nj->ni", gauge[indices], u[cluster])
    weights = np.array([0.3, 0.1, 0.2, 0.15, 0.05, 0.2])
    times = np.array([0, 0.1, 0.2, 0.3])
    run = advance_labelled(kernel, labels, indices, start, times, weights=weights)
    turned = np.einsum("nij,tnj->tni", gauge[indices], run.positions)
    angles = np.arccos(np.einsum("td,td->t", turned[:, 0], turned[:, 5]))
    assert np.abs(turned[:, :3] - turned[:, :1]).max() < EXACT
    assert np.abs(angles - exact_joint.two_clusters(profile, 1.2, times)).max() < EXACT


def test_zero_temperature_tokens_follow_the_closed_form_flow():
    matrix = np.diag([1.0, 0.3, -0.5])
    head = Attention(np.eye(3), KEY, matrix @ np.linalg.inv(KEY).T, np.inf)
    run = advance_tokens(head, tokens(20), [0, 1.5])
    assert np.abs(run.positions[1] - exact_zero_temperature.flow(matrix, head.B, tokens(20), 1.5)).max() < EXACT


@pytest.mark.parametrize("normalised", [True, False])
def test_weighted_tokens_agree_with_scipy_and_a_plain_sum(normalised):
    head = Attention(np.eye(4), np.diag([1.0, 0.8, 1.2, 0.9]), np.diag([1.0, -0.5, 0.3, 0.2]), 1.3, normalised)
    start, weights = tokens(6, d=4), np.arange(1.0, 7.0) / 21

    def rate(_, flat):
        x = flat.reshape(6, 4)
        kernel = np.exp(1.3 * (x @ head.B @ x.T)) * weights
        pull = kernel @ x / (kernel.sum(axis=1, keepdims=True) if normalised else 1.0) @ head.value.T
        return (pull - np.sum(pull * x, axis=1, keepdims=True) * x).ravel()

    other = solve_ivp(rate, (0, 2), start.ravel(), method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    run = advance_tokens(head, start, [0, 2], weights=weights)
    assert np.abs(run.positions[1].ravel() - other).max() < EXACT
    assert np.abs(np.linalg.norm(run.positions, axis=-1) - 1).max() < 5e-16


def test_doubling_a_token_is_doubling_its_weight():
    start = tokens(5)
    twice = advance_tokens(HEAD, np.concatenate([start, start[:1]]), [0, 1]).positions[1]
    weighted = advance_tokens(HEAD, start, [0, 1], weights=np.array([2, 1, 1, 1, 1]) / 6).positions[1]
    assert np.abs(twice[:5] - weighted).max() < EXACT


def test_cancelling_fields_are_zero_and_not_nan():
    cross = np.concatenate([np.eye(3), -np.eye(3)])
    identity = Attention(np.eye(3), np.eye(3), np.eye(3), 4.0)
    assert np.abs(attention_velocity(identity, np.full(6, 1 / 6))(cross)).max() < 1e-16
    labels = label_spaces.circle(2)
    opposite = toeplitz(Exponential(2.0), cosines=[(1, 1.0)])
    same_place = np.array([[0.0, 0, 1], [0, 0, 1], [0.6, 0, 0.8], [0.6, 0, 0.8]])
    still = kernel_velocity(opposite, labels, np.array([0, 1, 0, 1]), np.full(4, 0.25))(same_place)
    assert np.isfinite(still).all()
    assert np.abs(still).max() < 1e-15


def test_a_kernel_without_labels_is_unnormalised_attention():
    beta, labels = 1.7, label_spaces.finite([1.0])
    head = Attention(np.eye(3), np.eye(3), np.eye(3), beta, normalised=False)
    weights = np.full(30, 1 / 30)
    kernel = kernel_velocity(usa(Exponential(beta, "1/beta")), labels, np.zeros(30, dtype=int), weights)
    assert np.abs(kernel(tokens(30)) - attention_velocity(head, weights)(tokens(30))).max() < 1e-13


def test_every_method_gives_the_direct_sum_among_free_tokens():
    positions, rng = tokens(2500), np.random.default_rng(1)
    weights = rng.dirichlet(np.ones(2500))
    head = Attention(np.eye(3), KEY, VALUE, 100.0)
    mean, log_normaliser = token_attention(positions, weights, head, "direct")
    for method in ("spectral", "tree", "auto"):
        other, other_log = token_attention(positions, weights, head, method)
        assert np.abs(other - mean).max() < 1e-10
        assert np.abs(other_log - log_normaliser).max() < 1e-9


def test_auto_keeps_relative_accuracy_in_a_void():
    positions = unit(np.array([0, 0, 1.0]) + 0.05 * np.random.default_rng(0).normal(size=(2500, 3)))
    weights, tilts = np.full(2500, 1 / 2500), 100 * tokens(900, seed=2)
    exact = tilted_mean(tilts, positions, weights, "direct")
    found = tilted_mean(tilts, positions, weights, "auto")
    assert exact[1].min() < -90  # F spans e^{190}: the spectral sum alone has lost it
    assert np.abs(found[0] - exact[0]).max() < 1e-8
    assert np.abs(found[1] - exact[1]).max() < 1e-8


def test_rk4_has_order_four_and_the_adaptive_steps_meet_awkward_times():
    times = [0, 0.1, 0.1 + 1e-9, 0.7]
    best = advance_tokens(HEAD, tokens(8), times)
    assert list(best.times) == times
    errors = [
        np.abs(advance_tokens(HEAD, tokens(8), times[::3], step=h).positions[1] - best.positions[-1]).max()
        for h in (0.35, 0.175, 0.0875)
    ]
    assert 3.7 < -np.polyfit(range(3), np.log2(errors), 1)[0] < 4.4


def test_a_velocity_that_is_not_finite_is_named_with_its_time():
    with pytest.raises(NumericalError, match="at time"):
        integrate(lambda x: np.full_like(x, np.nan), tokens(3), [0, 1])
    with pytest.raises(InputError, match="strictly increasing"):
        integrate(lambda x: x, tokens(3), [0, 1, 1])


@pytest.mark.parametrize(
    ("positions", "weights", "message"),
    [
        (tokens(4) * [[1], [1], [1.1], [1]], None, "token 2"),
        (np.where(np.arange(4)[:, None] == 1, np.nan, tokens(4)), None, "token 1"),
        (tokens(4, d=2), None, "shape"),
        (tokens(4), [0.5, 0.5, 0.5, 0.5], "sum to 2"),
        (tokens(4), [0.5, 0.6, -0.1, 0.0], "token 2"),
        (tokens(4), [0.5, 0.5], "shape"),
    ],
)
def test_bad_tokens_are_refused_with_their_row(positions, weights, message):
    with pytest.raises(InputError, match=message):
        advance_tokens(HEAD, positions, [0, 1], weights=weights)


def test_methods_are_refused_where_they_do_not_serve():
    with pytest.raises(InputError, match="spectral"):
        tilted_mean(tokens(3, d=4), tokens(3, d=4), np.full(3, 1 / 3), "spectral")


def test_the_documents_runs_end_at_the_maximisers():
    # β = 1, τ = 20, g = e^{βs}/β: gauge families reach E = g(1)/2, and RoPE has |mean x| = |u0·e3| (§2.3(2), (14)).
    for name in ("usa", "rope", "prefix"):
        run = document_run(name, 64, np.random.default_rng(1), tolerance=1e-6)
        assert run.energy == pytest.approx(np.e / 2, abs=1e-6)
        assert run.turned_length == pytest.approx(1, abs=1e-6)
        assert run.time_unit == "exponential(beta=1, factor=1/beta)"
        assert set(run.as_row()) > {"family", "tokens", "mean", "time unit"}
        if name == "rope":
            pole = run.tokens[0, 2]  # R_ξ about e3 leaves u0·e3
            assert run.mean_length == pytest.approx(abs(pole), abs=1e-6)
            assert run.mean_length < 0.99
        if name == "usa":
            assert run.mean_length == pytest.approx(1, abs=1e-9)
    with pytest.raises(InputError, match="families"):
        document_run("alibi", 64, np.random.default_rng(1))
