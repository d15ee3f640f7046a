"""The command line as a user meets it: statuses, one-sentence errors, whole run folders and signals."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray

from tokensphere.cli import status
from tokensphere.records import read_records


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert status(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tokensphere: ")
    assert captured.err.count("\n") == 1
    assert "Traceback" not in captured.err
    return captured.err


def test_a_run_writes_its_folder_and_the_folder_is_consistent(
    write_config: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config()
    assert status(["run", str(path), "--json", "--threads", "1"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["status"] == "finished"
    assert not set(captured.err) & {"\r", "\x1b", "\b"}  # plain lines where there is no terminal
    folder = tmp_path / "runs" / "small"
    assert {entry.name for entry in folder.iterdir()} == {
        "config.toml",
        "solution.nc",
        "records.csv",
        "summary.json",
        "checkpoint.h5",
    }
    records = read_records(folder / "records.csv")
    with xarray.open_dataset(folder / "solution.nc") as solution:
        assert solution.time.values.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
        mass = solution.density.values.sum(axis=1) * 2 * np.pi / 64
        assert np.abs(mass - 1).max() < 1e-13
        least = [records["density_min"][records["time"] == when][0] for when in solution.time.values]
        assert least == solution.density.values.min(axis=1).tolist()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["threads"] == 1
    assert summary["run"]["mass_defect"] < 1e-13
    assert summary["limit"]["gap"] == pytest.approx(1.6)
    assert [entry["name"] for entry in summary["hypotheses"]] == ["H1", "H2", "H3"]
    assert set(summary["origin"]["versions"]) >= {"numpy", "tokensphere", "ducc0"}


def test_figures_are_written_unless_they_are_turned_off(write_config: Callable[..., Path], tmp_path: Path) -> None:
    assert status(["run", str(write_config()), "--set", "output.figures=true", "--set", "time.end=0.2"]) == 0
    assert {entry.suffix for entry in (tmp_path / "runs" / "small" / "figures").iterdir()} == {".png"}


def test_an_existing_run_is_kept_unless_forced_and_a_finished_one_has_nothing_to_resume(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(write_config()), "--out", "here", "--set", "time.end=0.2"]
    assert status(arguments) == 0
    before = Path("here/records.csv").read_bytes()
    capsys.readouterr()
    assert "--force" in refused(arguments, capsys)
    assert status([*arguments, "--resume"]) == 0
    assert "already finished" in capsys.readouterr().out
    assert Path("here/records.csv").read_bytes() == before
    assert status([*arguments, "--force", "--set", "attention.beta=5"]) == 0
    assert Path("here/records.csv").read_bytes() != before


def test_resume_on_a_missing_folder_starts_from_the_beginning(write_config: Callable[..., Path]) -> None:
    assert status(["run", str(write_config()), "--resume", "--set", "time.end=0.2"]) == 0
    assert Path("runs/small/summary.json").exists()


def test_a_foreign_folder_or_a_file_is_never_written_to(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("thesis").mkdir()
    Path("thesis/chapter.tex").write_text("precious")
    path = str(write_config())
    for force in ([], ["--force"], ["--resume"]):
        assert "no run" in refused(["run", path, "--out", "thesis", *force], capsys)
        assert "file" in refused(["run", path, "--out", "thesis/chapter.tex", *force], capsys)
    assert Path("thesis/chapter.tex").read_text() == "precious"
    assert "name too long" in refused(["run", path, "--out", "x" * 300], capsys)


@pytest.mark.parametrize(
    "setting",
    [
        "attention.bta=3",
        "attention.query=[[1,0],[0,0]]",
        "attention.value=[[1,0,0],[0,1,0],[0,0,1]]",
        "attention.value=[[nan,0],[0,1]]",
        "attention.beta=nan",
        "attention.beta=-1",
        "initial.linear=[4.0, 0.0]",
        "initial.constant=nan",
        "initial={kind='polynomial', constant=0.0}",
        "initial={kind='healpix_map', path='none.fits', order='rign'}",
        "initial={kind='particles', path='none.npz'}",
        "mesh={kind='healpix', nside=12}",
        "mesh.cells=9",
        "time.end=0",
        "time.end=-1",
    ],
)
def test_bad_input_costs_one_sentence_and_leaves_no_folder(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    refused(["run", str(write_config()), "--set", setting], capsys)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], "Did you mean 'run'"),
        (["run"], "CONFIG.toml"),
        (["run", "none.toml"], "none.toml does not exist"),
        (["run", "none.toml", "--thread", "2"], "--threads"),
        (["run", "none.toml", "--threads", "two"], "--threads"),
        (["run", "none.toml", "--threads", "0"], "at least 1"),
        (["validate", "--level", "quik"], "quick"),
        (["sweep", "none.toml", "--over", "attention.beta=1", "--workers", "0"], "at least 1"),
    ],
)
def test_wrong_arguments_cost_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in refused(arguments, capsys)


def test_without_symmetry_or_gap_a_run_still_ends_well_and_says_why_there_is_no_limit(
    write_config: Callable[..., Path],
) -> None:
    for number, value in enumerate(("[[1.0, 0.5], [0.0, -0.6]]", "[[1.0, 0.0], [0.0, 1.0]]")):
        out = f"run{number}"
        assert (
            status(
                ["run", str(write_config()), "--out", out, "--set", f"attention.value={value}", "--set", "time.end=0.2"]
            )
            == 0
        )
        limit = json.loads(Path(out, "summary.json").read_text())["limit"]
        assert limit["defined"] is False
        assert limit["reason"]
        assert np.isnan(read_records(Path(out, "records.csv"))["w2_to_limit"]).all()


def test_version_and_help_need_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tokensphere ")
    assert status([]) == 0
    assert "sweep" in capsys.readouterr().out
    assert status(["run", "--help"]) == 0


def launch(*arguments: str) -> subprocess.Popen[str]:
    """A command line of its own whose signal handlers stand (before, no program can answer a signal)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tokensphere", *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not caught(process.pid) >> (signal.SIGTERM - 1) & 1:
        assert process.poll() is None
        time.sleep(0.005)
    return process


def caught(pid: int) -> int:
    """The mask of signals that a process has handlers for."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("SigCgt")), 16)


LONG = ("--threads", "1", "--set", "mesh.cells=256", "--set", "time.end=400", "--set", "time.saves=40000")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_a_checkpoint_to_resume_from(
    write_config: Callable[..., Path], number: signal.Signals
) -> None:
    from tokensphere.checkpoint import read_checkpoint

    process = launch("run", str(write_config()), *LONG)
    while not Path("runs/small/checkpoint.h5").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "--resume" in out
    assert "Traceback" not in err
    state = read_checkpoint(Path("runs/small/checkpoint.h5")).state
    # The checkpoint is of the very step that the signal came in: nothing in the outputs is ahead of it.
    assert read_records(Path("runs/small/records.csv"))["step"][-1] == state.step
    with xarray.open_dataset("runs/small/solution.nc") as solution:
        assert len(solution.time) == state.save_index


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize("delay", [0.0, 0.5])
def test_a_signal_before_the_first_step_ends_with_status_three(write_config: Callable[..., Path], delay: float) -> None:
    process = launch("run", str(write_config()), *LONG)
    time.sleep(delay)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "Traceback" not in err
