"""Sweeps: the same numbers whoever computes them, only what is missing, and no member takes the others with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import xarray

from tokensphere.cli import status
from tokensphere.config import load, to_toml
from tokensphere.meshes.errors import InputError
from tokensphere.run import execute
from tokensphere.store import read_solution
from tokensphere.sweep.cluster import Result, is_finished
from tokensphere.sweep.members import Member, expand, parse_over
from tokensphere.sweep.running import sweep


def test_lists_may_hold_numbers_words_and_matrices() -> None:
    over = parse_over(["attention.beta=10,2e1,inf", "attention.value=[[1,0],[0,.5]], identity", "solver.method=direct"])
    assert over["attention.beta"] == [10, 20.0, float("inf")]
    assert over["attention.value"][1] == "identity"
    assert over["solver.method"] == ["direct"]


@pytest.mark.parametrize("texts", [["attention.beta"], ["=1"], ["attention.beta="], ["a.b=1", "a.b=2"]])
def test_lists_that_are_none_are_refused(texts: list[str]) -> None:
    with pytest.raises(InputError):
        parse_over(texts)


def test_members_are_the_product_or_the_zip_and_keep_their_names(circle_tables: dict[str, object]) -> None:
    over = {"attention.beta": [5, 10, 20], "mesh.cells": [32, 64]}
    members = expand(circle_tables, over, zipped=False)
    assert len(members) == 6
    assert members[1].values == {"attention.beta": 5.0, "mesh.cells": 64}
    assert members[1].config.attention is not None
    assert members[1].config.attention.beta == 5.0
    longer = expand(circle_tables, {**over, "attention.beta": [5.0, 40]}, zipped=False)
    assert longer[1].name == members[1].name  # so that a longer sweep finds the runs of a shorter one
    assert [
        m.values["mesh.cells"] for m in expand(circle_tables, {**over, "mesh.cells": [8, 16, 32]}, zipped=True)
    ] == [8, 16, 32]
    matrices = expand(circle_tables, {"attention.value": [[[1, 0], [0, 0.5]], [[1, 0], [0, 0.25]]]}, zipped=False)
    assert len({member.name for member in matrices}) == 2
    assert all("/" not in member.name and len(member.name) <= 80 for member in matrices)


@pytest.mark.parametrize(
    ("over", "zipped", "words"),
    [
        ({}, False, "at least one"),
        ({"attention.beta": []}, False, "no values"),
        ({"attention.beta": [1, 2], "mesh.cells": [32]}, True, "one length"),
        ({"attention.beta": [1, 1.0]}, False, "twice"),
        ({"attention.bta": [1]}, False, "did you mean beta"),
        ({"attention.beta": [1, -1]}, False, "above 0"),
        ({"attention.beta": list(range(1, 400)), "time.saves": list(range(1, 400))}, False, "at most"),
    ],
)
def test_sweeps_that_are_none_are_refused(
    circle_tables: dict[str, object], over: dict[str, list[object]], zipped: bool, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        expand(circle_tables, over, zipped=zipped)


def test_phases_of_a_member_are_those_of_theory_and_are_drawn(tmp_path: Path) -> None:
    """Case A of theory §1.5 at beta = 10: the distance to E is above .3 again at t = 2.52."""
    from tokensphere.config.reading import apply_settings, read
    from tokensphere.sweep.collection import collect
    from tokensphere.sweep.figures import OUTCOMES, draw_sweep, outcomes
    from tokensphere.validation.phases import Thresholds

    example = Path(__file__).parents[1] / "examples" / "exit_sweep.toml"
    raw = apply_settings(read(example), ["time.end=3", "time.saves=60", "output.figures=false"])
    members = expand(raw, {"attention.beta": [10.0, 12.0], "mesh.cells": [64, 256]}, zipped=False)
    for member in members:
        if member.values != {"attention.beta": 12.0, "mesh.cells": 256}:  # one stays missing
            execute(member.config, tmp_path / "members" / member.name)
    found = collect(members, tmp_path / "members", False, Thresholds(0.3, 1.1, 0.3, 0.3), {})
    assert float(found.exit_time[0, 1]) == pytest.approx(2.52, abs=0.02)
    assert float(found.exit_time[1, 0]) > float(found.exit_time[0, 0])
    assert np.isnan(found.exit_time[1, 1])
    left = OUTCOMES.index("left E again")
    assert outcomes(found).values.tolist() == [[left, left], [left, -1]]
    assert {path.name for path in draw_sweep(found, tmp_path)} == {"plateau.png", "exit_time.png", "phases.png"}


def densities(folder: Path) -> dict[str, bytes]:
    return {path.name: read_solution(path / "solution.nc").density.values.tobytes() for path in folder.iterdir()}


def test_twelve_members_on_two_workers_equal_serial_runs_and_a_killed_worker_costs_nothing(
    tmp_path: Path, write_config: Callable[..., Path]
) -> None:
    path = write_config(write_config().read_text().replace("end = 4.0", "end = 1.0"), "short")
    over = ["attention.beta=5,10,20,40,80,inf", "mesh.cells=32,64"]
    out, killed = tmp_path / "sweep", []

    def kill_one(done: int, total: int, result: Result | None) -> None:
        if done == 3 and not killed:
            victims = workers()
            assert victims
            os.kill(victims[0], signal.SIGKILL)
            killed.append(victims[0])

    outcome = sweep(path, over, out, workers=2, threads=1, listener=kill_one)
    assert killed
    assert (outcome.members, outcome.computed, outcome.failed) == (12, 12, [])
    serial = tmp_path / "serial"
    for member in expand(load(path).model_dump(exclude_none=True), parse_over(over), zipped=False):
        execute(member.config, serial / member.name, threads_wanted=1)
    assert densities(out / "members") == densities(serial)
    with xarray.open_dataset(out / "sweep.nc") as dataset:
        assert dataset["attention.beta"].values.tolist() == [5, 10, 20, 40, 80, np.inf]
        assert dataset.w2_final.dims == ("attention.beta", "mesh.cells")
        assert (dataset.finished == 1).all()
        assert float(dataset.mass_defect.max()) < 1e-13
        assert dataset.w2.sizes["save"] == 5

    def must_not_compute(*_: object) -> None:
        raise AssertionError("a finished sweep was computed again")

    before = {file: file.stat().st_mtime_ns for file in out.rglob("*") if file.is_file() and file.name != "sweep.toml"}
    again = sweep(path, over, out, listener=lambda done, total, result: result is None or must_not_compute())
    assert (again.members, again.computed) == (12, 0)
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_lists_from_the_configuration_are_stepped_through_together(
    tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokensphere.sweep import running
    from tokensphere.sweep.cluster import run_member

    def serially(members: list[Member], root: Path, *, report: Callable[[Result], None], **_: object) -> list[Result]:
        for member in members:
            report(Result(**run_member(to_toml(member.config), str(root / member.name), member.name, 1)))
        return []

    monkeypatch.setattr(running, "run_members", serially)
    table = '[sweep]\nover = { "attention.beta" = [5.0, 7.0], "mesh.cells" = [32, 64] }\nzip = true\n'
    text = write_config().read_text().replace("end = 4.0", "end = 0.3") + table
    outcome = sweep(write_config(text, "table"), [], tmp_path / "out")
    assert (outcome.members, outcome.computed) == (2, 2)
    with xarray.open_dataset(tmp_path / "out" / "sweep.nc") as dataset:
        assert dataset.w2_final.dims == ("member",)
        assert dataset["attention.beta"].values.tolist() == [5.0, 7.0]
        assert dataset["mesh.cells"].values.tolist() == [32, 64]
        assert "zip = true" in dataset.attrs["configuration"]
    # The command line's list replaces the table's; only the new member is missing.
    again = sweep(write_config(text, "table"), ["attention.beta=5,9"], tmp_path / "out")
    assert (again.members, again.computed) == (2, 1)
    with pytest.raises(InputError, match="did you mean over"):
        sweep(write_config(text.replace("over =", "ovr ="), "typo"), [], tmp_path / "typo")


def workers() -> list[int]:
    """Worker processes of this process's cluster: they hold dask's nanny pipe, and have this process as parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == os.getpid() and any(b"spawn_main" in word for word in words):
                found.append(int(entry.name))
    return found


@contextmanager
def cluster(tmp_path: Path, count: int) -> Iterator[str]:
    """A scheduler and workers of their own on loopback, as a user starts them."""
    address = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    processes = [
        subprocess.Popen(
            [*run, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(address)], **quiet
        )
    ]
    try:
        while not address.exists() or not address.read_text().strip().endswith("}"):
            assert processes[0].poll() is None
            time.sleep(0.05)
        run = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--nthreads", "1"]
        processes += [
            subprocess.Popen(
                [*run, "--scheduler-file", str(address), "--local-directory", str(tmp_path / f"scratch{k}")], **quiet
            )
            for k in range(count)
        ]
        import json

        yield json.loads(address.read_text())["address"]
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)


def test_an_existing_cluster_serves_a_sweep_and_a_failing_member_lets_the_others_go_on(
    tmp_path: Path, write_config: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(write_config(write_config().read_text().replace("end = 4.0", "end = 1.0"), "short"))
    out = tmp_path / "out"
    with cluster(tmp_path, 2) as address:
        # 4x1 + 1 is negative somewhere: the configuration is well-formed, the density is not
        arguments = ["sweep", path, "--over", "initial.linear=[0.1,0.2],[4.0,0.0],[0.3,0.2]", "--out", str(out)]
        assert status([*arguments, "--scheduler", address]) == 1
    captured = capfd.readouterr()
    assert "negative" in captured.out
    assert "3 members, 2 computed, 1 failed" in captured.out
    assert "Traceback" not in captured.err
    with xarray.open_dataset(out / "sweep.nc") as dataset:
        assert dataset.finished.values.tolist() == [1, 0, 1]
        assert np.isnan(dataset.w2_final.values).tolist() == [False, True, False]
    members = expand(load(Path(path)).model_dump(exclude_none=True), parse_over([arguments[3]]), zipped=False)
    from tokensphere.folder import RunFolder

    assert [is_finished(member, RunFolder(out / "members" / member.name)) for member in members] == [True, False, True]


def test_a_scheduler_that_does_not_answer_costs_one_sentence(
    tmp_path: Path, write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", str(write_config()), "--over", "attention.beta=1,2", "--out", str(tmp_path / "out")]
    for address in ("not an address", "tcp://127.0.0.1:x"):
        assert status([*arguments, "--scheduler", address]) == 2
        assert "does not answer" in capsys.readouterr().err
