"""Propagation of chaos and metastable exit times."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.validation.chaos import (
    Ladder,
    chaos_ladder,
    distance_to_eigenspace,
    exit_ladder,
    exit_time,
    fitted_ladder,
    token_exit_time,
)
from tokensphere.validation.dynamics import AttentionDynamics
from tokensphere.validation.exact_fields import poisson_density, poisson_radius
from tokensphere.validation.particle_figures import plot_exit_times, plot_ladder
from tokensphere.validation.projection import Projection

# Case B of theory §1.5 on S¹: e is an eigenvector of M = VBᵀ but not of Bᵀ.
TURN = np.array([[1.0, -1.0], [1.0, 1.0]]) / math.sqrt(2)
MATRIX = np.diag([1.0, -0.6])


def case_b(beta):
    return Attention(np.eye(2), TURN.T, MATRIX @ np.linalg.inv(TURN), beta)


def start(mesh):
    return densities.from_function(
        mesh, lambda x: 1 + 0.4 * x[..., 0] + 0.3 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]
    )


def test_the_error_of_tokens_falls_like_one_over_root_n():
    # β → 0, V = I: the Poisson family is exact (theory §1.4), so the densities are known at both times.
    mesh, e = healpix(8), np.array([0.0, 0.6, 0.8])
    radii = poisson_radius(3, 0.3, np.array([0.0, 0.7]))
    saved = [densities.from_function(mesh, lambda x, r=r: poisson_density(3, r, e, x)) for r in radii]
    dynamics = AttentionDynamics(Attention(np.eye(3), np.eye(3), np.eye(3), 1e-9))
    ladder = chaos_ladder(mesh, [0, 0.7], saved, dynamics, [20, 80, 320, 1280], 10, np.random.default_rng(0))
    assert ladder.exponent == pytest.approx(-0.5, abs=0.1)
    assert ladder.crossover > 1280
    assert [row["tokens"] for row in ladder.table()] == [20, 80, 320, 1280]
    assert plot_ladder(ladder).get_xlabel() == "tokens"


def test_a_ladder_with_a_floor_finds_it():
    rng, counts = np.random.default_rng(1), 4.0 ** np.arange(2, 11)
    errors = np.sqrt(4.0 / counts + 0.01**2)[:, None] * (1 + 0.1 * rng.normal(size=(9, 30)))
    ladder = fitted_ladder(counts, errors)
    assert isinstance(ladder, Ladder)
    assert ladder.floor == pytest.approx(0.01, rel=0.1)
    assert ladder.crossover == pytest.approx(40_000, rel=0.2)
    assert ladder.exponent == pytest.approx(-0.5, abs=0.06)


def test_an_exit_needs_an_entry_and_is_interpolated():
    assert exit_time([0, 1, 2, 3], [0.5, 0.1, 0.1, 0.2]) == pytest.approx(2.5)
    assert exit_time([0, 1, 2], [0.5, 0.13, 0.5]) == math.inf
    assert exit_time([0, 1, 2], [0.5, 0.1, 0.1]) == math.inf


def test_the_distance_to_an_eigenspace_is_elementary():
    projection = Projection(np.diag([1.0, 0.0]))
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.6, 0.8]])
    found = distance_to_eigenspace(points, np.array([0.25, 0.25, 0.5]), projection)
    assert found == pytest.approx(math.sqrt(0.5 * 2 * (1 - 0.6)))


def test_tokens_leave_a_metastable_state_early_and_later_if_there_are_more():
    # The density stays until t = 10.3 at β = 60; 2,000 tokens leave near 6 (theory §1.5).
    mesh, rng = circle(256), np.random.default_rng(2)
    ladder = exit_ladder(
        mesh, start(mesh), case_b(60.0), [60, 480], 6, 11.0, rng, density_time=10.3, entered=0.24, left=0.25
    )
    assert np.isfinite(ladder.times).all()
    assert ladder.times.max() < 0.8 * ladder.density
    assert ladder.slope > 0.1
    assert ladder.table()[0]["density"] == 10.3
    assert plot_exit_times([ladder]).get_xscale() == "log"


def test_tokens_on_the_sphere_leave_too():
    turn = np.eye(3)
    turn[:2, :2] = TURN
    head = Attention(np.eye(3), turn.T, np.diag([1.0, -0.6, -0.6]) @ turn.T, 60.0)
    mesh, rng = healpix(8), np.random.default_rng(3)
    rho = densities.from_function(mesh, lambda x: 1 + 0.4 * x[..., 0] + 0.3 * x[..., 1])
    assert Projection(head).multiplicity == 1
    ladder = exit_ladder(mesh, rho, head, [100, 800], 3, 9.0, rng, entered=0.24, left=0.25)
    assert np.isfinite(ladder.times).all()
    assert (ladder.times > 3).all()
    assert ladder.slope > 0.1


def test_one_token_at_an_eigenvector_of_v_never_leaves():
    head = Attention(np.eye(2), np.eye(2), np.diag([2.0, 1.0]), 3.0)
    assert token_exit_time(head, Projection(head), np.array([[1.0, 0.0]]), 1.0) == math.inf


def test_a_ladder_of_one_rung_is_refused():
    mesh = circle(8)
    with pytest.raises(InputError, match="at least two"):
        chaos_ladder(mesh, [0, 1], np.ones((2, 8)), AttentionDynamics(case_b(1.0)), [5], 3, np.random.default_rng())


def test_the_example_tabulates_circle_and_sphere(tmp_path):
    path = Path(__file__).parent.parent / "examples" / "exit_times.py"
    specification = importlib.util.spec_from_file_location("exit_times", path)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)
    ladders = example.main(tmp_path, beta=20.0, counts=(40, 160), repeats=2)
    assert [len(ladder.table()) for ladder in ladders] == [2, 2]
    assert (tmp_path / "exit_times.png").stat().st_size > 5000
