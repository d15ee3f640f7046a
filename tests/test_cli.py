"""The command line as a user meets it: statuses, one-sentence errors, whole run folders and signals."""

import io
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
        assert solution.time.values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
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
    folder = tmp_path / "runs" / "small"
    assert {entry.suffix for entry in (folder / "figures").iterdir()} == {".png"}
    (folder / "report.html").unlink()
    assert status(["report", str(folder)]) == 0
    assert (folder / "report.html").stat().st_size > 1000


def test_check_says_which_hypothesis_fails(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_config())
    assert status(["check", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["verdict"] for entry in answer["hypotheses"]] == ["holds"] * 3
    assert answer["hypotheses"][0]["value"] == pytest.approx(1.6)  # the gap, 1 + 0.6
    singular = ["--set", "attention.key=[[1.0,0.0],[0.0,0.0]]"]
    assert status(["check", path, *singular]) == 1
    assert "H1  fails" in capsys.readouterr().out
    assert status(["check", path, "--set", "attention.value=[[1.0,0.2],[0.0,-0.6]]", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["hypotheses"][0]["verdict"] == "fails"
    assert "joint law" in refused(["check", str(write_config("joint", "joint"))], capsys)


def test_compare_accepts_exact_samples_and_refuses_others(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["run", str(write_config()), "--set", "attention.beta=inf", "--set", "time.end=1.0"]) == 0
    capsys.readouterr()
    # Zero temperature, B = I, M = diag(1, -0.6): tokens move by x(t) = e^(tM) x / |e^(tM) x|, and the law of the start
    # is (1 + 0.4 cos + 0.3 sin)/2π, drawn by rejection.
    rng = np.random.default_rng(4)
    angles, heights = rng.uniform(0, 2 * np.pi, 4000), rng.uniform(0, 1.5, 4000)
    angles = angles[heights < 1 + 0.4 * np.cos(angles) + 0.3 * np.sin(angles)]
    start = np.column_stack([np.cos(angles), np.sin(angles)])
    for rate, expected in ((1.0, 0), (1.3, 1)):
        moved = start * np.exp(rate * np.array([1.0, -0.6]))
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        np.savez("tokens.npz", positions=np.stack([start, moved]), times=np.array([0.0, 1.0]))
        assert status(["compare", "runs/small", "tokens.npz", "--json"]) == expected
        assert json.loads(capsys.readouterr().out)["verdict"] == ("inconsistent" if expected else "consistent")
    np.savez("tokens.npz", positions=np.full((1, 5, 2), np.nan), times=np.array([0.0]))
    refused(["compare", "runs/small", "tokens.npz"], capsys)
    refused(["compare", "nowhere", "tokens.npz"], capsys)


def test_validate_prints_rows_and_falls_short_when_one_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokensphere.validation import cases
    from tokensphere.validation.cases import Row

    rows = [Row("transport", "8…64", 1.8e-4, 2.03, 1.95, True), Row("fields", 32, 2e-9, None, 1e-10, False)]
    for shown, expected in ((rows[:1], 0), (rows, 1), ([], 1)):
        monkeypatch.setattr(
            cases, "run_cases", lambda level, report, shown=shown: [report(row) or row for row in shown]
        )
        assert status(["validate", "--json"]) == expected
        found = json.loads(capsys.readouterr().out)
        assert [row["case"] for row in found] == [row.case for row in shown]
        assert all(list(row) == ["case", "resolution", "error", "order", "bound", "holds"] for row in found)
        assert status(["validate"]) == expected
        assert capsys.readouterr().out.count("\n") == len(shown) + 1


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


def test_a_guard_ends_with_status_one_a_sentence_and_a_document(
    write_config: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokensphere.pde.problem import AttentionFlow

    honest, count = AttentionFlow.field, iter(range(1000))

    def field(self: AttentionFlow, density: np.ndarray) -> object:
        found = honest(self, density)
        if next(count) > 5:
            found.speeds[7] = np.inf
        return found

    monkeypatch.setattr(AttentionFlow, "field", field)
    assert status(["run", str(write_config()), "--json"]) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["kind"] == "NonFiniteError"
    assert document["checkpoint"] == "runs/small/checkpoint.h5"
    assert document["longitude"] == pytest.approx(360 * (document["cell"] + 0.5) / 64)
    assert "Traceback" not in captured.err
    assert f"cell {document['cell']}" in captured.err


def test_a_validation_case_that_breaks_shows_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokensphere.validation import cases
    from tokensphere.validation.cases.registry import Case

    def broken() -> list[cases.Row]:
        raise RuntimeError("a fault")

    monkeypatch.setattr(cases, "all_cases", lambda: {"broken": Case("broken", "quick", broken, "")})
    assert status(["validate"]) == 1
    captured = capsys.readouterr()
    assert "a fault" in captured.err
    assert "Traceback" not in captured.err
    assert status(["--debug", "validate"]) == 1
    assert "Traceback" in capsys.readouterr().err


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


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_a_bar_on_a_terminal_and_plain_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokensphere import progress

    monkeypatch.setattr(progress, "BETWEEN_LINES", 0.0)
    shown = {}
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress(2.0) as update:
            for step in range(1, 5):
                update(step / 2, step)
        shown[type(stream)] = stream.getvalue()
    assert "\r" in shown[Terminal]
    assert "t = 2/2" in shown[Terminal]
    assert "step 4" in shown[Terminal]
    lines = shown[io.StringIO].splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("t = 2 of 2, step 4, ")
    assert lines[-1].endswith(" steps/s")
    assert not set(shown[io.StringIO]) & {"\r", "\x1b", "\b"}


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
