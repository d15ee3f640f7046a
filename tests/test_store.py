"""solution.nc and records.csv: whole at any moment, the same bytes however often a run was interrupted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

from tokensphere import store
from tokensphere.durable import disk_guard, replace_text
from tokensphere.layout import Layout
from tokensphere.meshes.errors import InputError
from tokensphere.pde.errors import DiskFullError
from tokensphere.records import Records, read_records
from tokensphere.store import append_save, finish, forget_spare, read_saves, read_solution, saves_in

SPHERE = Layout("healpix", 4, None, {"title": "test", "configuration": "[mesh]\nnside = 4\n"})
JOINT = Layout("circle", 16, (np.array([0.0, 2.0, 4.0]), np.array([0.2, 0.3, 0.5])), {"title": "test"})


def densities(layout: Layout, saves: int = 6) -> np.ndarray:
    slices = () if layout.labels is None else (len(layout.labels[0]),)
    return np.random.default_rng(0).random((saves, *slices, layout.cells))


def write(path: Path, layout: Layout, values: np.ndarray, interruptions: tuple[int, ...] = ()) -> None:
    for index, density in enumerate(values):
        append_save(path, layout, index, 0.1 * index, density)
        if index in interruptions:
            forget_spare(path)


@pytest.mark.parametrize("layout", [SPHERE, JOINT], ids=["sphere", "joint"])
def test_saves_come_back_bitwise_while_and_after_the_run(tmp_path: Path, layout: Layout) -> None:
    path, values = tmp_path / "solution.nc", densities(layout)
    for index, density in enumerate(values):
        append_save(path, layout, index, 0.1 * index, density)
        found = read_solution(path)
        assert np.array_equal(found.density.values, values[: index + 1])
        assert np.array_equal(found.time.values, 0.1 * np.arange(index + 1))
    finish(path, layout)
    assert np.array_equal(read_solution(path).density.values, values)
    assert [entry.name for entry in tmp_path.iterdir()] == ["solution.nc"]


@pytest.mark.parametrize("interruptions", [(0,), (1, 2), (4,), (0, 1, 2, 3, 4, 5)])
def test_bytes_do_not_depend_on_interruptions(tmp_path: Path, interruptions: tuple[int, ...]) -> None:
    straight, broken = tmp_path / "a.nc", tmp_path / "b.nc"
    write(straight, SPHERE, densities(SPHERE))
    write(broken, SPHERE, densities(SPHERE), interruptions)
    finish(straight, SPHERE)
    finish(broken, SPHERE)
    assert straight.read_bytes() == broken.read_bytes()


def test_a_save_already_there_is_kept(tmp_path: Path) -> None:
    path, values = tmp_path / "solution.nc", densities(SPHERE)
    write(path, SPHERE, values)
    append_save(path, SPHERE, 2, 0.2, np.zeros(SPHERE.cells))
    assert saves_in(path) == 6
    assert np.array_equal(read_solution(path).density.values, values)


def test_conventions_of_the_sphere_and_of_the_circle(tmp_path: Path) -> None:
    write(tmp_path / "sphere.nc", SPHERE, densities(SPHERE))
    with xarray.open_dataset(tmp_path / "sphere.nc") as found:
        assert found.attrs["Conventions"] == "CF-1.13"
        assert found.density.dims == ("time", "cell")
        mapping = found[found.density.attrs["grid_mapping"]].attrs
        assert (mapping["grid_mapping_name"], mapping["indexing_scheme"]) == ("healpix", "nested")
        assert mapping["refinement_level"] == 2  # nside 4 = 2^2
        assert found.cell.attrs["standard_name"] == "healpix_index"
        assert np.array_equal(found.cell.values, np.arange(192))
        assert found.attrs["configuration"] == SPHERE.attributes["configuration"]
    write(tmp_path / "circle.nc", JOINT, densities(JOINT))
    with xarray.open_dataset(tmp_path / "circle.nc") as found:
        assert found.density.dims == ("time", "label", "cell")
        assert np.allclose(found.angle.values, 2 * np.pi * (np.arange(16) + 0.5) / 16, atol=1e-15)
        assert {"angle", "label_weight", "label", "time"} <= set(found.density.coords)


def test_a_failure_while_a_save_is_written_costs_that_save_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, values = tmp_path / "solution.nc", densities(SPHERE)
    write(path, SPHERE, values[:3])
    honest = store._append

    def torn(target: Path, times: Any, rows: Any) -> None:
        honest(target, times, rows)
        with target.open("r+b") as file:  # what a killed process can leave behind
            file.truncate(1500)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_append", torn)
    with pytest.raises(DiskFullError, match="can take no more"), disk_guard(tmp_path, 0.3, 7):
        append_save(path, SPHERE, 3, 0.3, values[3])
    assert np.array_equal(read_solution(path).density.values, values[:3])
    monkeypatch.undo()
    forget_spare(path)
    write(path, SPHERE, values)
    assert np.array_equal(read_solution(path).density.values, values)


def test_a_file_system_without_hard_links_is_served_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(store.os, "link", refuse)
    write(tmp_path / "solution.nc", SPHERE, densities(SPHERE))
    assert np.array_equal(read_solution(tmp_path / "solution.nc").density.values, densities(SPHERE))


def test_what_is_no_solution_is_refused(tmp_path: Path) -> None:
    for read in (read_solution, read_saves):
        with pytest.raises(InputError, match="does not exist"):
            read(tmp_path / "solution.nc")
    (tmp_path / "solution.nc").write_bytes(b"\x89HDF\r\n\x1a\nnot really")
    for read in (read_solution, read_saves):
        with pytest.raises(InputError, match="netCDF"):
            read(tmp_path / "solution.nc")
    with pytest.raises(InputError, match="damaged"):
        saves_in(tmp_path / "solution.nc")


def rows(count: int) -> list[dict[str, float]]:
    values = np.random.default_rng(5).random((count, 2)) * 1e-30
    return [{"time": a, "step": float(step), "energy": float("nan"), "mass": b} for step, (a, b) in enumerate(values)]


def test_records_come_back_bitwise_and_nan_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    records = Records(path)
    for row in rows(5):
        records.append(row)
    records.close()
    found = read_records(path)
    assert list(found) == ["time", "step", "energy", "mass"]
    assert found["mass"].tolist() == [row["mass"] for row in rows(5)]
    assert np.isnan(found["energy"]).all()


@pytest.mark.parametrize("lost", [1, 5, 30, 60, 200])
def test_a_torn_row_is_written_again_and_nothing_twice(tmp_path: Path, lost: int) -> None:
    straight, broken = tmp_path / "a.csv", tmp_path / "b.csv"
    for path in (straight, broken):
        records = Records(path)
        for row in rows(6):
            records.append(row)
        records.close()
    broken.write_bytes(broken.read_bytes()[:-lost])
    records = Records(broken)
    for row in rows(6)[2:]:  # a resumed march repeats steps that are already there
        if row["step"] > records.last_step + 1:
            break
        records.append(row)
    for row in rows(6)[int(records.last_step) + 1 :]:
        records.append(row)
    records.close()
    assert broken.read_bytes() == straight.read_bytes()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    from tokensphere.durable import replace_whole

    path = tmp_path / "summary.json"
    replace_text(path, "old")

    def fail(beside: Path) -> None:
        beside.write_text("ne")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        replace_whole(path, fail)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["summary.json"]
