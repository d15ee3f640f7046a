"""The report: encoded densities decode, clusters and predictions agree with closed forms, the page is whole."""

import base64
import html.parser
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tokensphere.config import Config, parse, to_toml
from tokensphere.config.building import build_attention, build_initial, build_mesh
from tokensphere.meshes.circle import circle
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.healpix import healpix
from tokensphere.meshes.levels import subcells
from tokensphere.pde.attention import Attention
from tokensphere.pde.densities import mixture, uniform, von_mises_fisher
from tokensphere.report import load_run, write_report
from tokensphere.report.clusters import find_clusters
from tokensphere.report.embedding import embed, encode
from tokensphere.report.predictions import (
    bound_curve,
    initial_function,
    phase_intervals,
    plateau_level,
    zero_temperature_curve,
)
from tokensphere.report.verdicts import verdicts
from tokensphere.report.wording import number
from tokensphere.store import Layout, append_save
from tokensphere.validation.exact_zero_temperature import flow
from tokensphere.validation.projection import Projection

Array = NDArray[np.float64]

SPHERE: dict[str, Any] = {
    "mesh": {"kind": "healpix", "nside": 8},
    "attention": {"beta": 100.0, "value": [[1.0, 0, 0], [0, 0.0, 0], [0, 0, 0.0]]},
    "initial": {"kind": "uniform"},
    "time": {"end": 3.0, "saves": 3},
}
CIRCLE: dict[str, Any] = {
    "mesh": {"kind": "circle", "cells": 256},
    "attention": {"beta": 40.0, "value": [[1.0, 0], [0, -0.6]]},
    "initial": {"kind": "polynomial", "linear": [0.4, 0.3], "quadratic": [[0, 0.15], [0.15, 0]]},
    "time": {"end": 4.0, "saves": 4},
}
JOINT: dict[str, Any] = {
    "mesh": {"kind": "healpix", "nside": 4},
    "labels": {"kind": "circle", "count": 6},
    "kernel": {"kind": "rope", "frequency": 1.0, "profile": "exponential", "beta": 2.0, "factor": "1/beta"},
    "initial": {"kind": "uniform"},
    "time": {"end": 2.0, "saves": 2},
}


def angular_gaussian(points: Array, values: Array, t: float) -> Array:
    """Zero-temperature density from uniform data, B = I, M = diag(values): theory §1.3(b)."""
    d = points.shape[1]
    length = np.linalg.norm(points * np.exp(-t * values), axis=1)
    return np.asarray(np.exp(-t * values.sum()) * length**-d / (4 * np.pi if d == 3 else 2 * np.pi))


def write_run(folder: Path, raw: dict[str, Any], summary: dict[str, Any] | None) -> Config:
    """A run folder whose densities are closed forms: theory §1.3(b), or for a joint law rotated von Mises–Fisher."""
    config = parse(raw)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(to_toml(config), encoding="utf-8")
    mesh, labels = build_mesh(config.mesh), None
    if config.joint:
        angles = 2 * np.pi * np.arange(6) / 6
        labels = (angles, np.full(6, 1 / 6))
    layout = Layout(mesh.kind, mesh.resolution, labels)
    rows = ["time,step,dt,mass,density_min,mean_x,mean_y,w2_to_limit,w2_floor"]
    for k, t in enumerate(config.save_times):
        if labels is not None:
            rows[0] = "time,step,dt,mass,density_min,mean_x,mean_y,energy,conditional_spread,mean_length"
            means = np.stack([np.cos(labels[0]), -np.sin(labels[0]), np.zeros(6)], axis=1)
            density = np.stack([von_mises_fisher(mesh, mean, 5.0 * (k + 1)) for mean in means])
            least = float(density.min())
            last = f"{0.5 + k},{0.3 / (k + 1)},0.1"
        else:
            density = angular_gaussian(mesh.centers, np.diag(np.array(raw["attention"]["value"])), t)
            density /= density @ mesh.areas
            least, a = float(density.min()), math.exp(-t)
            distance = repr(math.sqrt(2 * a / (1 + a)))
            last = f"{distance},0.05"
        append_save(folder / "solution.nc", layout, k, t, density)
        rows.append(f"{t!r},{k},0.1,{1 + k * 1e-15!r},{least!r},0.1,0.0,{last}")
    (folder / "records.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    if summary is not None:
        (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return config


SUMMARY: dict[str, Any] = {
    "status": "finished",
    "run": {"steps": 1234},
    "timings": {"march": 2.5},
    "hypotheses": [
        {"name": "H1", "verdict": "holds", "value": 1.0, "tolerance": 1e-9, "reason": "gap 1 <fine>.", "details": {}},
        {
            "name": "H2",
            "verdict": "fails",
            "value": None,
            "tolerance": 0.0,
            "reason": "M_p is infinite.",
            "details": {},
        },
    ],
    "fits": {"w2_decay": {"rate": 0.48, "prefactor": 1.1, "start": 0.5, "end": 3.0}},
}


def test_codes_decode_to_the_stated_accuracy() -> None:
    mesh = healpix(4)
    density = np.exp(np.random.default_rng(2).uniform(-690, 3, size=(3, 1, mesh.cells)))
    density[0, 0, :5] = 0.0
    found = embed(mesh, density)
    assert (found.mesh.resolution, found.notes) == (4, [])
    raw = np.frombuffer(base64.b64decode(found.base64), dtype="<u2").reshape(density.shape)
    decoded = np.where(raw == 0, 0.0, np.exp(found.low + (raw - 1.0) * found.step))
    np.testing.assert_array_equal(decoded == 0, density == 0)
    positive = density > 0
    error = np.abs(decoded[positive] / density[positive] - 1).max()
    assert error <= found.relative_error * (1 + 1e-9)
    assert found.relative_error < 0.006
    assert encode(np.zeros(3))[0].tolist() == [0, 0, 0]


def test_large_runs_are_coarsened_and_thinned_with_a_note() -> None:
    mesh = healpix(8)
    density = np.random.default_rng(3).random((40, 20, mesh.cells))
    found = embed(mesh, density, budget=20_000, finest=4)
    assert 2 * found.codes.size <= 20_000
    assert found.mesh.resolution == 2
    assert (found.saves[0], found.saves[-1], len(found.saves)) == (0, 39, 11)
    assert len(found.labels) == 16
    assert "computed at 8" in found.notes[0]
    np.testing.assert_allclose(
        np.exp(found.low + (found.codes[0, 0] - 1.0) * found.step),
        density[0, 0].reshape(-1, 16).mean(axis=1),
        rtol=1e-4,
    )


def test_clusters_of_a_mixture() -> None:
    """Two von Mises–Fisher bumps of mass .7 and .3; half the mass of one lies within arccos(1 + ln(½)/κ)."""
    mesh, kappa = healpix(32), 60.0
    means = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0]])
    parts = [(share, von_mises_fisher(mesh, mean, kappa)) for share, mean in zip((0.7, 0.3), means, strict=True)]
    found = find_clusters(mesh, mixture(mesh, parts))
    assert [round(cluster.mass, 3) for cluster in found] == [0.7, 0.3]
    for cluster, mean in zip(found, means, strict=True):
        assert np.dot(cluster.direction, mean) > 1 - 1e-4
        assert cluster.width == pytest.approx(math.acos(1 + math.log(0.5) / kappa), rel=0.03)
    assert find_clusters(mesh, uniform(mesh)) == []
    ring = circle(512)
    (single,) = find_clusters(ring, von_mises_fisher(ring, [0.0, -1.0], 400.0))
    assert single.direction[1] < -0.999


def test_zero_temperature_curve_is_the_closed_form() -> None:
    """Uniform start, B = I, M = diag(1,0,0): chordal W2² = 2a/(1+a), a = e^{−t} (theory §1.3 g)."""
    config = parse({**SPHERE, "mesh": {"kind": "healpix", "nside": 16}})
    attention = build_attention(config.attention, 3) if config.attention else None
    assert attention is not None
    mesh, projection, times = healpix(16), Projection(attention), np.linspace(0.0, 10.0, 21)
    when, curve = zero_temperature_curve(mesh, attention, projection, uniform(mesh), times)
    a = np.exp(-when)
    assert 3.5 < when[-1] < 5.0
    np.testing.assert_allclose(curve**2, 2 * a / (1 + a), rtol=0.02)
    _, bound = bound_curve(attention, projection, 0.5, 2.0, times)
    assert np.all(bound[: len(curve)] > curve)


@pytest.mark.parametrize("metric", ["chordal", "geodesic"])
def test_zero_temperature_curve_follows_the_flow(metric: str) -> None:
    """Where |Bᵀx| varies: against points carried by the flow and measured where they are."""
    B, values = np.diag([1.0, 0.7, 1.5]), np.diag([1.0, 0.3, -0.5])
    attention = Attention(B, np.eye(3), values @ np.linalg.inv(B.T), 100.0)
    mesh, projection, times = healpix(8), Projection(attention), np.linspace(0.0, 3.0, 4)
    rho0 = von_mises_fisher(mesh, np.array([0.6, 0.0, 0.8]), 2.0)
    when, curve = zero_temperature_curve(mesh, attention, projection, rho0, times, metric)
    points = subcells(mesh, np.arange(mesh.cells), 3).reshape(-1, 3)
    masses = np.repeat(rho0 * mesh.areas, 64) / 64
    expected = [
        np.sqrt(masses @ projection.nearest_distance(flow(projection.matrix, attention.B, points, t), metric) ** 2)
        for t in when
    ]
    assert len(when) >= 3
    np.testing.assert_allclose(curve, expected, rtol=1e-10)


def test_plateau_is_the_formula_of_the_theory() -> None:
    """S¹, M = diag(1, −.6), ρ0 = (1+.4x1+.3x2+.3x1x2)/2π: β·δp → .0398 (theory §1.4)."""
    config = parse(CIRCLE)
    assert config.attention is not None
    attention = build_attention(config.attention, 2)
    level = plateau_level(attention, Projection(attention), initial_function(config))
    assert level == pytest.approx(2 * math.sqrt(0.0398 / 40), rel=2e-3)
    assert plateau_level(attention, Projection(attention), None) is None


@pytest.mark.parametrize(
    "initial",
    [
        {"kind": "uniform"},
        {"kind": "polynomial", "linear": [0.1, 0.3, 0.4], "quadratic": [[0.2, 0, 0], [0, 0, 0], [0, 0, 0.1]]},
        {"kind": "von_mises_fisher", "mean": [0.0, 3.0, 4.0], "concentration": 4.0},
        {
            "kind": "mixture",
            "components": [
                {"kind": "uniform", "weight": 1.0},
                {"kind": "von_mises_fisher", "weight": 3.0, "mean": [1.0, 0, 0], "concentration": 2.0},
            ],
        },
    ],
)
def test_initial_function_is_the_initial_density(initial: dict[str, Any]) -> None:
    config = parse({**SPHERE, "initial": initial, "mesh": {"kind": "healpix", "nside": 32}})
    mesh, function = healpix(32), initial_function(config)
    assert function is not None
    averages = build_initial(config.initial, mesh)
    np.testing.assert_allclose(function(mesh.centers), averages, rtol=3e-3)
    assert float(function(mesh.centers) @ mesh.areas) == pytest.approx(1.0, abs=1e-3)


def test_phases_are_read_off_the_curve() -> None:
    t = np.linspace(0.0, 20.0, 400)
    curve = np.hypot(np.exp(-t), 0.05) + np.where(t > 15, (t - 15) * 0.1, 0.0)
    names = [name for name, _, _ in phase_intervals(t, curve)]
    assert names == ["approaching the limit", "plateau", "leaving"]
    falling = phase_intervals(t, np.exp(-0.05 * t))
    assert falling == [("approaching the limit", 0.0, 20.0)]
    assert phase_intervals(t[:2], curve[:2]) == []


def test_numbers_for_readers() -> None:
    shown = [number(v) for v in (0.0, 0.01234, -2.5, 1.8e-9, 123456.0, math.inf, math.nan, None)]
    assert shown == ["0", "0.0123", "−2.5", "1.80 × 10⁻⁹", "1.23 × 10⁵", "∞", "–", "–"]


class Tags(html.parser.HTMLParser):
    """Collects tags, ids, and whatever would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag not in ("meta", "link", "img", "input", "br"):
            self.open.append(tag)
        if named.get("id"):
            self.ids.append(str(named["id"]))
        for key in ("src", "href", "action", "poster"):
            if key in named and not str(named[key]).startswith(("data:", "#")):
                self.fetched.append(str(named[key]))
        if tag == "img":
            assert named.get("alt")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def read_page(path: Path) -> tuple[str, Tags, dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    found = re.search(r'<script type="application/json" id="run-data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return text, tags, json.loads(found.group(1))


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The PNG figures are tested with the plots."""
    monkeypatch.setattr("tokensphere.figures.write_run_figures", lambda *_, **__: [])


@pytest.mark.usefixtures("without_figures")
def test_page_of_a_sphere_run(tmp_path: Path) -> None:
    write_run(tmp_path / "run", SPHERE, SUMMARY)
    path = write_report(tmp_path / "run")
    text, tags, data = read_page(path)
    assert tags.open == []
    assert tags.fetched == []
    assert len(tags.ids) == len(set(tags.ids))
    assert "http:" not in re.sub(r"data:[^\"]*", "", text.split("<script")[0])
    for phrase in ("reached its end t = 3", "H2 fails: M_p is infinite.", "gap 1 &lt;fine&gt;", "μ₁", "e^(−0.480 t)"):
        assert phrase in text
    assert {"hypotheses", "distance", "regularity", "spectrum", "times", "making"} <= set(tags.ids)
    assert (data["kind"], data["resolution"], data["limit"]) == ("healpix", 8, [[1.0, 0.0, 0.0]])
    assert data["times"] == [0.0, 1.0, 2.0, 3.0]
    assert path.stat().st_size < 2_000_000


@pytest.mark.usefixtures("without_figures")
def test_page_of_unfinished_circle_and_joint_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "circle", CIRCLE, None)
    text, tags, data = read_page(write_report(tmp_path / "circle"))
    assert tags.open == []
    assert "not finished" in text
    assert data["kind"] == "circle"
    write_run(tmp_path / "joint", JOINT, {"status": "finished", "hypotheses": []})
    text, tags, data = read_page(write_report(tmp_path / "joint"))
    assert tags.open == []
    assert "hypotheses" not in tags.ids
    assert "joint law" in text
    assert "g(1)/2 = 1.847" in text  # e²/4 for β = 2 and the factor 1/β: theory §2.3, fact 2
    assert "length 0.1 at the end: no collapse" in text
    assert "order" in tags.ids
    assert (len(data["labels"]), len(data["weights"])) == (6, 6)
    assert sum(data["weights"]) == pytest.approx(1.0)


def test_verdicts_name_what_is_wrong(tmp_path: Path) -> None:
    write_run(tmp_path / "run", SPHERE, SUMMARY)
    run = load_run(tmp_path / "run")
    run.records["mass"][-1] = 1.0 + 1e-6
    run.records["density_min"][-1] = -1e-9
    kinds = {verdict.kind: verdict.sentence for verdict in verdicts(run, None) if verdict.kind == "fails"}
    sentences = " ".join(verdict.sentence for verdict in verdicts(run, None) if verdict.kind == "fails")
    assert kinds
    assert "Mass is conserved to 1.0 × 10⁻⁶" in sentences
    assert "becomes negative (−1.00 × 10⁻⁹)" in sentences


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.toml"):
        write_report(tmp_path)
