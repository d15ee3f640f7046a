"""What results look like to a reader: tables that are whole HTML, and a dataset with the names of solution.nc."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tokensphere as ts
from tokensphere.pde.solution import Solution
from tokensphere.store import Layout, append_save, read_solution

Array = NDArray[np.float64]


def solution(mesh: ts.Mesh, times: Array, densities: Array, labels: object = None) -> Solution:
    records = {"time": times, "mass": np.ones(len(times)), "energy": np.full(len(times), np.nan)}
    model = ts.Attention(np.eye(mesh.dimension), np.eye(mesh.dimension), np.eye(mesh.dimension), 2.0)
    return Solution(mesh, model, times, densities, records, {"steps": 1234.0}, labels)


def test_tables_are_whole() -> None:
    mesh = ts.healpix(2)
    found = solution(mesh, np.array([0.0, 1.0]), np.ones((2, mesh.cells)))
    page = found._repr_html_()
    ElementTree.fromstring(page)
    assert "1,234" in page
    assert "mass at the end" in page
    assert "energy" not in page


def test_hypotheses_print_as_a_table() -> None:
    mesh = ts.healpix(8)
    attention = ts.Attention(np.eye(3), np.eye(3), np.diag([1.0, 0.3, -0.5]), 10.0)
    found = ts.check_hypotheses(mesh, attention, ts.densities.uniform(mesh))
    assert [item.name for item in found] == ["H1", "H2", "H3"]
    assert len(repr(found).splitlines()) == 3
    rows = ElementTree.fromstring(found._repr_html_()).findall("tbody/tr")
    assert ["✓" in "".join(row.itertext()) for row in rows] == [item.verdict == "holds" for item in found]


@pytest.mark.parametrize("kind", ["sphere", "circle", "joint"])
def test_dataset_is_what_the_file_holds(kind: str, tmp_path: Path) -> None:
    """to_xarray() has the dimensions, coordinates, values and attributes of solution.nc."""
    mesh = ts.circle(12) if kind == "circle" else ts.healpix(2)
    labels = ts.labels.circle(3) if kind == "joint" else None
    shape = (2, 3, mesh.cells) if kind == "joint" else (2, mesh.cells)
    times, densities = np.array([0.0, 0.5]), np.random.default_rng(1).random(shape)
    layout = Layout(mesh.kind, mesh.resolution, None if labels is None else (labels.points, labels.weights))
    for index in range(2):
        append_save(tmp_path / "solution.nc", layout, index, times[index], densities[index])
    filed, made = read_solution(tmp_path / "solution.nc"), solution(mesh, times, densities, labels).to_xarray()
    assert made.density.dims == filed.density.dims
    for name in ("density", "time", "cell", *(["label", "label_weight"] if labels else [])):
        np.testing.assert_array_equal(made[name].values, filed[name].values)
    assert made.density.attrs["units"] == filed.density.attrs["units"]
    assert made.density.attrs["long_name"] == filed.density.attrs["long_name"]
    if kind != "circle":
        assert dict(made.healpix.attrs) == {key: filed.healpix.attrs[key] for key in made.healpix.attrs}
    else:
        np.testing.assert_array_equal(made.angle.values, filed.angle.values)


def test_the_command_line_completes_words() -> None:
    """What a shell asks when the tab key is pressed after `tokensphere r`."""
    question = {"_TOKENSPHERE_COMPLETE": "complete_bash", "COMP_WORDS": "tokensphere r", "COMP_CWORD": "1"}
    program = [sys.executable, "-m", "tokensphere"]
    answer = subprocess.run(program, env=os.environ | question, capture_output=True, text=True, timeout=60)
    assert answer.stdout.split() == ["run", "report"]
