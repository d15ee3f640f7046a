"""The assessment of runs and sweeps: one document whose parts agree with what was put in."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.config import parse
from tokensphere.folder import RunFolder
from tokensphere.meshes.circle import circle
from tokensphere.pde import densities
from tokensphere.pde.attention import Attention
from tokensphere.pde.problem import AttentionFlow
from tokensphere.run import execute
from tokensphere.sweep.members import expand
from tokensphere.sweep.theorem import sweep_theorem
from tokensphere.task import build_task
from tokensphere.theorem_facts import theorem_facts
from tokensphere.validation.assessment import assess_run, assess_sweep, predictions
from tokensphere.validation.bound import Curve, temperature_term
from tokensphere.validation.cases.theorem import attention_of, planar, solved
from tokensphere.validation.lipschitz import largest_compression
from tokensphere.validation.projection import Projection
from tokensphere.validation.wasserstein import DistanceToLimit

Array = NDArray[np.float64]
MATRIX = np.diag([1.0, -0.6])


def test_a_run_on_the_circle() -> None:
    mesh, times, attention = circle(128), np.linspace(0, 8, 41), attention_of(MATRIX, np.eye(2), 20.0)
    rho0 = densities.from_function(mesh, planar)
    run = solved(mesh, attention, rho0, times)
    limit = DistanceToLimit(mesh, rho0, Projection(attention))
    measured = [limit(density) for density in run]
    distances = (times, np.array([float(each) for each in measured]), np.array([each.error for each in measured]))
    flow = AttentionFlow(mesh, attention)
    compression = np.array([largest_compression(mesh, flow.field(density).speeds) for density in run])
    found = assess_run(mesh, attention, times, run, None, distances, compression)
    json.dumps(found)
    assert found["bound"]["verdict"] == "holds"
    assert found["bound"]["constants"]["c"] == pytest.approx(0.4)
    # the distance falls at γ/2 up to the plateau
    assert 0.4 < found["bound"]["fitted_rate"]["value"] < 0.9
    assert found["phases"]["exit_time"] == np.inf
    assert found["terminal"]["state"] == "stationary"
    assert found["terminal"]["reached"]["name"] == found["predictions"]["terminal"]["name"] == "two clusters"
    # the plateau of theory §1.4: mass off by .0439/β at β = 20
    masses = sorted(cluster["mass"] for cluster in found["terminal"]["reached"]["clusters"])
    start = float(rho0[mesh.centers[:, 0] > 0] @ mesh.areas[mesh.centers[:, 0] > 0])
    assert masses[1] - start == pytest.approx(0.0439 / 20, rel=0.05)
    lower = np.array(found["regularity"]["minimum_lower_bound"])
    assert np.all(np.array(found["regularity"]["minimum"]) >= 0.95 * lower)
    assert not found["resolution"]["fine_enough"]


def test_parts_that_do_not_apply_say_why() -> None:
    mesh, times = circle(64), np.linspace(0, 1, 4)
    rho0 = densities.from_function(mesh, planar)
    skew = Attention(np.eye(2), np.eye(2), np.array([[1.0, 0.5], [0.0, -0.6]]), 20.0)
    found = assess_run(mesh, skew, times, np.array([rho0] * 4))
    assert "reason" in found["phases"]
    assert found["bound"]["verdict"] == "undecided"
    flat = assess_run(mesh, attention_of(np.eye(2), np.eye(2), 20.0), times, np.array([rho0] * 4))
    assert "gap" in flat["phases"]["reason"]
    cold = assess_run(mesh, attention_of(MATRIX, np.eye(2), np.inf), times, np.array([rho0] * 4))
    assert "inf" in cold["terminal"]["reason"]


def test_predictions_name_the_dominant_degree_only_where_it_is_known() -> None:
    assert predictions(attention_of(np.eye(3), np.eye(3), 5.0))["dominant_degree"] == 3  # switches at 4.43 and 7.96
    assert "dominant_degree" not in predictions(attention_of(np.diag([1.0, 0.3, -0.5]), np.eye(3), 5.0))
    assert "exit" not in predictions(attention_of(MATRIX, np.eye(2), np.inf))


def test_a_sweep_gives_the_power_of_the_plateau() -> None:
    times = np.linspace(0, 8, 81)
    betas, width = np.array([10.0, 40.0, 160.0]), 0.01
    curves = [Curve(beta, times, np.sqrt(np.exp(-2 * times) + 0.16 / beta + width**2), np.zeros(81)) for beta in betas]
    found = assess_sweep(curves, 1.0, 1.0, np.full(3, np.hypot(width, np.exp(-8.0))))
    json.dumps(found)
    assert found["verdict"] == "holds"
    assert found["plateau"]["power"]["value"] == pytest.approx(-0.5, abs=1e-6)
    assert found["plateau"]["power"]["prefactor"] == pytest.approx(0.4, rel=1e-5)
    assert found["plateau"]["temperature_term"] == pytest.approx([temperature_term(b) for b in betas])
    assert -0.5 < found["plateau"]["power_of_temperature_term"]["value"] < -0.3
    assert "reason" in assess_sweep(curves[:2], 1.0, 1.0)["plateau"]["power"]


def test_a_sweep_folder_is_judged(tmp_path: Path) -> None:
    raw = {
        "mesh": {"kind": "circle", "cells": 64},
        "attention": {"beta": 10.0, "value": [[1.0, 0.0], [0.0, -0.6]], "query": "identity", "key": "identity"},
        "initial": {"kind": "polynomial", "constant": 1.0, "linear": [0.4, 0.3]},
        "time": {"end": 1.0, "saves": 2},
        "output": {"figures": False},
    }
    members = expand(raw, {"attention.beta": [10.0, 20.0, 40.0, float("inf")]}, False)
    undecided = sweep_theorem(members, tmp_path)
    assert undecided["verdict"] == "undecided"
    for member in members:
        execute(member.config, tmp_path / member.name)
    found = sweep_theorem(members, tmp_path)
    assert found["verdict"] == "holds"
    # theory §1.4: O(1/β) at a fixed time for smooth data
    assert found["fixed_time_error"]["power"]["value"] == pytest.approx(-1.0, abs=0.1)
    other = expand(raw, {"mesh.cells": [64, 128]}, False)
    assert "alone" in sweep_theorem(other, tmp_path)["reason"]


def test_the_fields_of_the_march_are_those_of_its_saves(tmp_path: Path) -> None:
    """The summary takes sup div v from the march; evaluated anew at the saves it is the same to the last bit."""
    raw = {
        "mesh": {"kind": "healpix", "nside": 4},
        "attention": {"beta": 10.0, "value": [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, -0.5]]},
        "initial": {"kind": "polynomial", "constant": 1.0, "linear": [0.1, 0.3, 0.4]},
        "time": {"end": 2.0, "saves": 4},
        "output": {"figures": False},
    }
    config = parse(raw)
    execute(config, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    told = json.loads(folder.summary.read_text(encoding="utf-8"))["theorem"]["regularity"]["minimum_lower_bound"]
    anew = theorem_facts(build_task(config), folder, {}, [])["regularity"]["minimum_lower_bound"]
    assert len(told) == 5
    assert told == anew
