"""Verdicts on particle codes: correct ones pass, planted faults are found, and the statistics are calibrated."""

import importlib.util
import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import eval_legendre

from tokensphere.meshes import labels as label_spaces
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.kernels import Exponential, toeplitz
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation.comparison import Judge, compare_run
from tokensphere.validation.dynamics import AttentionDynamics
from tokensphere.validation.empirical_transport import transports
from tokensphere.validation.observables import degrees, energy_weights, harmonics, polynomial_maps
from tokensphere.validation.particle_fields import tangent, tilted_mean
from tokensphere.validation.particle_files import Trajectories, trajectories
from tokensphere.validation.particles import advance_labelled
from tokensphere.validation.replay import replay
from tokensphere.validation.sampling import sample_density
from tokensphere.validation.statistics import holm, hotelling, power, quadratic
from tokensphere.validation.time_rows import CONSISTENT, INCONSISTENT, TOO_FEW

VALUE = np.array([[1, 0.4, 0], [-0.2, 0.3, 0.1], [0, 0.3, -0.5]])
KEY = np.array([[0.8, 0.5, 0], [-0.4, 0.9, 0.2], [0.1, 0, 1.1]])
BETA = 2.0
TIMES = np.array([0.0, 1.0, 2.0])
FAULTS = {
    "B for its transpose": {"B": KEY.T},
    "beta 10 % up": {"beta": 1.1 * BETA},
    "beta 10 % down": {"beta": 0.9 * BETA},
    "V transposed": {"V": VALUE.T},
    "no softmax normalisation": {"normalised": False},
}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def plain_mean(z, x):
    """Softmax mean by a plain sum."""
    kernel = np.exp(z @ x.T)
    return kernel @ x / kernel.sum(axis=1, keepdims=True), np.log(kernel.mean(axis=1))


def fast_mean(z, x):
    """The same for many tokens."""
    return tilted_mean(z, x, np.full(len(x), 1 / len(x)), "spectral", (1.0, 5.0))


def code(x, times=TIMES, *, V=VALUE, B=KEY, beta=BETA, normalised=True, dt=0.25, euler=False, renormalise=True):
    """A particle code that shares no integrator with the package, with its faults on request: (times, n, d)."""
    mean_of = plain_mean if len(x) <= 2000 else fast_mean

    def rate(y):
        mean, log_normaliser = mean_of(beta * y @ B, y)
        return tangent(y, (mean if normalised else mean * np.exp(log_normaliser)[:, None]) @ V.T)

    frames = [x]
    for begin, end in pairwise(times):
        for _ in range(round((end - begin) / dt)):
            if euler:
                x = x + dt * rate(x)
            else:
                a = rate(x)
                b = rate(unit(x + dt / 2 * a))
                c = rate(unit(x + dt / 2 * b))
                x = x + dt / 6 * (a + 2 * b + 2 * c + rate(unit(x + dt * c)))
            x = unit(x) if renormalise else x
        frames.append(x)
    return np.array(frames)


@pytest.fixture(scope="module")
def run():
    mesh, head = healpix(16), Attention(np.eye(3), KEY, VALUE, BETA)
    start = densities.from_function(mesh, lambda x: 1 + x @ np.array([0.1, 0.3, 0.4]))
    states = march(AttentionFlow(mesh, head), State(0.0, start), TIMES)
    return mesh, head, np.array([state.density for state in states if state.saved is not None])


@pytest.fixture(scope="module")
def judge(run):
    mesh, head, saved = run
    return Judge(mesh, TIMES, saved, AttentionDynamics(head), replicates=100)


def start(run, count, seed):
    return sample_density(run[0], run[2][0], count, np.random.default_rng(seed))


def test_a_correct_code_passes_with_enough_tokens(run, judge):
    answer = judge.compare(trajectories(code(start(run, 20_000, 1), dt=0.5), TIMES, 3), identity=False)
    assert answer.verdict == CONSISTENT
    assert answer.replay is None
    assert answer.rows[-1].power > 0.9
    assert answer.detectable < 0.1
    assert [row.verdict for row in answer.rows][::2] == [CONSISTENT, CONSISTENT]
    row = answer.rows[-1]
    assert (np.abs(row.mean - row.mean_expected) < 2.5 * row.mean_interval).all()
    assert (np.abs(row.second_moment - row.second_moment_expected) < 2.5 * row.second_moment_interval).all()
    assert np.trace(row.second_moment) == pytest.approx(1)
    assert row.w2.value < row.w2.expected + 6 * row.w2.deviation


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found_in_the_law_alone(run, judge, name):
    file = trajectories(code(start(run, 20_000, 2), dt=0.5, **FAULTS[name]), TIMES, 3)
    answer = judge.compare(file, identity=False, transport=False)
    assert answer.verdict == INCONSISTENT
    assert answer.rows[0].verdict == CONSISTENT
    assert answer.rows[-1].adjusted.min() < 1e-3


def test_few_tokens_cannot_tell_by_their_law_but_their_replay_can(run, judge):
    right = trajectories(code(start(run, 400, 3)), TIMES, 3)
    alone, replayed = judge.compare(right, identity=False, transport=False), judge.compare(right, transport=False)
    assert alone.verdict == TOO_FEW
    assert alone.detectable > 0.1
    assert "too few" not in alone.reason
    assert replayed.verdict == CONSISTENT
    assert replayed.replay.rms.max() < 1e-4


@pytest.mark.parametrize("name", FAULTS)
def test_a_replay_finds_every_fault_with_sixty_tokens(run, judge, name):
    file = trajectories(code(start(run, 60, 4), **FAULTS[name]), TIMES, 3)
    answer = judge.compare(file, transport=False)
    assert answer.replay.verdict == INCONSISTENT
    assert answer.verdict == INCONSISTENT
    assert f"token {answer.replay.worst[np.argmax(answer.replay.rms > answer.replay.allowed)]}" in answer.reason or (
        "law" in answer.reason
    )


def test_an_euler_code_that_never_renormalises_is_caught_by_its_sphere_defect(run, judge):
    frames = code(start(run, 60, 5), dt=0.1, euler=True, renormalise=False)
    answer = judge.compare(trajectories(frames, TIMES, 3), identity=False, transport=False)
    assert answer.verdict == INCONSISTENT
    assert "off the sphere" in answer.reason
    assert answer.rows[-1].sphere_defect > 1e-3


def test_shuffled_frames_are_not_replayed(run, judge):
    rng = np.random.default_rng(0)
    frames = np.array([frame[rng.permutation(400)] for frame in code(start(run, 400, 6))])
    answer = judge.compare(trajectories(frames, TIMES, 3), transport=False)
    assert answer.replay is None
    assert answer.verdict == TOO_FEW


def test_weighted_tokens_and_times_between_saves(run, judge):
    frames = code(start(run, 300, 7), np.array([0.0, 0.5, 1.0]))
    doubled, weights = np.concatenate([frames, frames], axis=1), np.repeat([0.3, 0.7], 300) / 300
    file = trajectories(doubled, [0, 0.5, 1], 3, weights)
    answer = judge.compare(file, transport=False)
    assert answer.skipped == (0.5,)
    assert answer.verdict == CONSISTENT
    assert answer.effective_tokens == pytest.approx(300 / (0.09 + 0.49))
    single = trajectories(frames[2], 1.0, 3)
    assert judge.compare(single, transport=False).replay is None


def test_the_report_is_plain_and_repeatable(run, judge):
    file = trajectories(code(start(run, 60, 8)), TIMES, 3)
    first, second = (json.dumps(judge.compare(file).as_dict()) for _ in range(2))
    assert first == second
    content = json.loads(first)
    assert content["verdict"] == CONSISTENT
    assert content["rows"][0]["power"] is None
    assert set(content["rows"][1]["w2"]) == {"value", "expected", "deviation", "width"}
    assert any("replay" in line for line in content["lines"])


def test_files_that_do_not_fit_the_run_are_refused(run, tmp_path):
    mesh, head, saved = run
    with pytest.raises(InputError, match=r"times\[0\] is 0\.3 .* saved at \(0, 1, 2\)"):
        compare_run(mesh, TIMES, saved, head, trajectories(start(run, 5, 0), 0.3, 3))
    np.savez(tmp_path / "p.npz", positions=start(run, 5, 0))
    with pytest.raises(InputError, match="no times"):
        compare_run(mesh, TIMES, saved, head, tmp_path / "p.npz")
    with pytest.raises(InputError, match="neither an attention"):
        compare_run(mesh, TIMES, saved, None, tmp_path / "p.npz")


def test_labelled_codes_are_compared_with_a_joint_law():
    # The product of uniform laws is at rest under every kernel, so the density is known without solving for it.
    mesh, labels, times = circle(32), label_spaces.circle(6), np.array([0.0, 0.4])
    saved = np.full((2, 6, 32), 1 / (2 * np.pi))
    kernel, wrong = (toeplitz(Exponential(2.0, "1/beta"), cosines=[(1, sign)]) for sign in (1.0, -1.0))
    rng = np.random.default_rng(0)
    indices = np.arange(180) % 6
    x = sample_density(mesh, saved[0, 0], 180, rng)
    for used, verdict in ((kernel, CONSISTENT), (wrong, INCONSISTENT)):
        moved = advance_labelled(used, labels, indices, x, times, tolerance=1e-6)
        file = trajectories(moved.positions, times, 2, labels=labels.points[indices])
        answer = compare_run(mesh, times, saved, None, file, kernel=kernel, labels=labels, replicates=50)
        assert answer.verdict == verdict
    with pytest.raises(InputError, match="the particle file has none"):
        compare_run(mesh, times, saved, None, trajectories(x, 0.4, 2), kernel=kernel, labels=labels)


def test_harmonics_obey_the_addition_theorem():
    x = unit(np.random.default_rng(0).normal(size=(9, 3)))
    values = harmonics(x, 8)
    for degree in range(1, 9):
        part = values[:, degrees(3, 8) == degree]
        exact = (2 * degree + 1) * eval_legendre(degree, np.clip(x @ x.T, -1, 1))
        assert np.abs(part @ part.T - exact).max() < 1e-12


@pytest.mark.parametrize("d", [2, 3])
def test_the_energy_distance_is_the_double_sum(d):
    rng = np.random.default_rng(1)
    x, y = unit(rng.normal(size=(30, d))), unit(rng.normal(size=(40, d)) + 0.5)

    def mean_distance(a, b):
        return np.linalg.norm(a[:, None] - b, axis=-1).mean()

    exact = 2 * mean_distance(x, y) - mean_distance(x, x) - mean_distance(y, y)
    difference = harmonics(x, 120).mean(axis=0) - harmonics(y, 120).mean(axis=0)
    assert energy_weights(d, 120) @ difference**2 == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("d", [2, 3])
def test_mean_and_second_moment_are_linear_in_the_harmonics(d):
    x = unit(np.random.default_rng(2).normal(size=(15, d)))
    mean, second = polynomial_maps(d)
    moments = harmonics(x, 2).mean(axis=0)
    assert np.abs(mean @ moments - x.mean(axis=0)).max() < 1e-14
    assert np.abs(np.eye(d) / d + second @ moments - x.T @ x / 15).max() < 1e-14


def test_holm_is_the_published_procedure():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([[0.9, 0.6]]).tolist() == [[1.0, 1.0]]


def test_p_values_are_uniform_under_the_null_and_power_is_what_it_says():
    rng, size, replicates = np.random.default_rng(3), 5, 40
    mixing = rng.normal(size=(size, size))
    shift = 1.4 * mixing @ np.ones(size)
    weights = rng.random(size)
    ps, qs, hits = [], [], []
    for _ in range(1500):
        covariance = np.cov(mixing @ rng.normal(size=(size, replicates)))
        deviation = mixing @ rng.normal(size=size)
        ps.append(hotelling(deviation, covariance, replicates))
        qs.append(quadratic(deviation, weights, mixing @ mixing.T, np.zeros(size))[1])
        hits.append(hotelling(deviation + shift, covariance, replicates) < 0.05)
    assert stats.kstest(ps, "uniform").pvalue > 0.01
    assert np.mean(np.array(qs) < 0.05) == pytest.approx(0.05, abs=0.02)
    # `power` corrects for the inverse of an estimated covariance; here the true one is given
    assert np.mean(hits) == pytest.approx(power(shift, mixing @ mixing.T * (33 / 39), 40, 0.05), abs=0.04)


def test_transport_of_a_point_from_the_uniform_law():
    mesh = circle(512)
    point = np.array([[1.0, 0.0]] * 2)
    found = transports(mesh, densities.uniform(mesh), point, np.full(2, 0.5), np.random.default_rng(0))
    assert found["w1"].value == pytest.approx(4 / math.pi, abs=found["w1"].width)
    assert found["w2"].value == pytest.approx(math.sqrt(2), abs=found["w2"].width)


def test_a_file_of_one_token_is_judged(run, judge):
    file = Trajectories(TIMES, code(start(run, 1, 9)), np.ones(1))
    assert judge.compare(file).verdict in (CONSISTENT, TOO_FEW)


def test_the_example_tells_right_from_wrong(tmp_path):
    path = Path(__file__).parent.parent / "examples" / "particle_comparison.py"
    specification = importlib.util.spec_from_file_location("particle_comparison", path)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    right, wrong = example.main(tmp_path, nside=4, tokens=200, replicates=25)
    assert right.verdict == CONSISTENT
    assert right.replay.rms.max() < 1e-3
    assert wrong.verdict == INCONSISTENT
    assert (tmp_path / "comparison.png").stat().st_size > 5000


def test_a_replay_finds_a_tenth_of_beta_where_the_law_cannot_and_allows_small_steps(run):
    # At β = 6 an error of 10 % moves the mean by .002 only.
    dynamics = AttentionDynamics(Attention(np.eye(3), KEY, VALUE, 6.0))
    x, nothing = start(run, 200, 10), np.zeros(200, dtype=int)

    def replayed(**how):
        return replay(trajectories(code(x, **how), TIMES, 3), dynamics, nothing)

    assert replayed(beta=6.0).verdict == CONSISTENT
    assert replayed(beta=6.0, euler=True, dt=0.01).verdict == CONSISTENT
    assert replayed(beta=6.6).verdict == INCONSISTENT
    assert replayed(beta=6.0, euler=True, dt=0.1).verdict == INCONSISTENT
