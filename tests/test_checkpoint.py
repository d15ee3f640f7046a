"""Checkpoints: a state comes back to the bit, a resumed run is the uninterrupted run, and nothing good is ever lost."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokensphere import durable, run, store
from tokensphere.checkpoint import Checkpoint, digest, read_checkpoint, write_checkpoint
from tokensphere.config import Config, load
from tokensphere.meshes.errors import InputError
from tokensphere.pde.errors import DiskFullError, NonFiniteError, PredictedMemoryError
from tokensphere.pde.march import State
from tokensphere.records import read_records
from tokensphere.run import execute
from tokensphere.store import read_solution

FILES = ("solution.nc", "records.csv")


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def assert_same(first: Any, second: Any) -> None:
    for field in fields(first):
        a, b = getattr(first, field.name), getattr(second, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes(), field.name
        else:
            assert a == b, field.name
            assert type(a) is type(b), field.name


def stop_after(steps: int) -> Callable[[], bool]:
    left = iter(range(steps))
    return lambda: next(left, None) is None


@pytest.fixture
def state() -> State:
    rng = np.random.default_rng(0)
    return State(
        0.1 + 0.2,
        rng.random(7),
        step=3,
        dt=1e-300,
        save_index=1,
        saved=None,
        macro=float("inf"),
        history_times=rng.random(2),
        history_speeds=rng.random((2, 5)),
        masses=np.array([1.0]),
        notes={"tree_fraction": 0.1, "levels": 0.0},
    )


@pytest.fixture
def checkpoint(state: State) -> Checkpoint:
    return Checkpoint(
        state, "[mesh]\n", np.array([0.0, 1.0]), digest(state.density), {"versions": {}, "seed": None}, 1.5
    )


def test_a_state_comes_back_to_the_bit(tmp_path: Path, checkpoint: Checkpoint) -> None:
    write_checkpoint(tmp_path / "checkpoint.h5", checkpoint)
    found = read_checkpoint(tmp_path / "checkpoint.h5")
    assert_same(found.state, checkpoint.state)
    assert_same(replace(found, state=None), replace(checkpoint, state=None))


@dataclass(frozen=True, eq=False)
class Foreign:
    """A class that no checkpoint may name."""

    value: int = 1


def test_only_our_own_classes_are_rebuilt(tmp_path: Path, checkpoint: Checkpoint) -> None:
    write_checkpoint(tmp_path / "checkpoint.h5", replace(checkpoint, state=Foreign()))
    with pytest.raises(InputError, match="foreign"):
        read_checkpoint(tmp_path / "checkpoint.h5")


@pytest.mark.parametrize("left", [0.0, 0.3, 0.7, 0.99])
def test_a_truncated_checkpoint_is_said_to_be_damaged(tmp_path: Path, checkpoint: Checkpoint, left: float) -> None:
    path = tmp_path / "checkpoint.h5"
    write_checkpoint(path, checkpoint)
    path.write_bytes(path.read_bytes()[: int(left * path.stat().st_size)])
    with pytest.raises(InputError, match="damaged"):
        read_checkpoint(path)


def test_a_flipped_byte_in_an_array_is_noticed(tmp_path: Path, checkpoint: Checkpoint) -> None:
    path = tmp_path / "checkpoint.h5"
    write_checkpoint(path, checkpoint)
    content = bytearray(path.read_bytes())
    place = bytes(content).index(checkpoint.state.density.tobytes())
    content[place + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read_checkpoint(path)


@pytest.mark.parametrize("kind", ["circle", "joint"])
def test_stopped_and_resumed_equals_uninterrupted_for_many_stops(
    tmp_path: Path, write_config: Callable[..., Path], kind: str
) -> None:
    config = load(write_config(kind))
    whole = execute(config, tmp_path / "whole")
    assert whole.status == "finished"
    assert whole.step > 10  # enough places to stop at
    reference = read_checkpoint(tmp_path / "whole" / "checkpoint.h5")
    for pattern in ([1], [2, 3], [5, 1, 0, 1], [whole.step - 1]):
        folder = tmp_path / f"{kind}{pattern}"
        for number, steps in enumerate(pattern):
            assert execute(config, folder, resume=number > 0, stop=stop_after(steps)).status == "interrupted"
        assert execute(config, folder, resume=True).status == "finished"
        assert contents(folder) == contents(tmp_path / "whole")
        found = read_checkpoint(folder / "checkpoint.h5")
        assert found.resumed == len(pattern)
        assert_same(found.state, reference.state)
    assert execute(config, tmp_path / "whole", resume=True).status == "nothing to do"


def test_resuming_from_an_old_checkpoint_neither_repeats_nor_drops_output(
    tmp_path: Path, write_config: Callable[..., Path]
) -> None:
    config = load(write_config())
    execute(config, tmp_path / "whole")
    folder = tmp_path / "killed"
    execute(config, folder, stop=stop_after(4))
    old = (folder / "checkpoint.h5").read_bytes()
    execute(config, folder, resume=True, stop=stop_after(9))
    (folder / "checkpoint.h5").write_bytes(old)  # as a kill leaves it: the outputs are ahead of the checkpoint
    execute(config, folder, resume=True)
    assert contents(folder) == contents(tmp_path / "whole")


def test_a_later_end_keeps_every_earlier_step_and_save(tmp_path: Path, write_config: Callable[..., Path]) -> None:
    path = write_config()
    execute(load(path), tmp_path / "run")
    before = (tmp_path / "run" / "records.csv").read_text()
    longer = load(path, ["time.end=6", "time.saves=6"])
    assert execute(longer, tmp_path / "run", resume=True).status == "finished"
    assert (tmp_path / "run" / "records.csv").read_text().startswith(before)
    found = read_checkpoint(tmp_path / "run" / "checkpoint.h5")
    assert found.plan.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    execute(load(path), tmp_path / "cut", stop=stop_after(6))
    execute(longer, tmp_path / "cut", resume=True)
    assert contents(tmp_path / "cut") == contents(tmp_path / "run")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["attention.beta=13"], "attention.beta was 12.0 and is now 13.0"),
        (["mesh.cells=128"], "mesh.cells was 64 and is now 128"),
        (["attention.value=[[1,0],[0,-0.5]]", "solver.rtol=1e-9"], "attention.value was .*; solver.rtol was"),
        (["initial.constant=2"], "initial.constant was 1.0 and is now 2.0"),
        (["time.end=0.5"], "time.end was 4.0 and is now 0.5, but it may only grow"),
        (["time.saves=8"], "time.saves was 4 and is now 8"),
    ],
)
def test_another_configuration_is_refused_and_the_difference_shown(
    tmp_path: Path, write_config: Callable[..., Path], settings: list[str], words: str
) -> None:
    path = write_config()
    execute(load(path), tmp_path / "run", stop=stop_after(2))
    before = contents(tmp_path / "run")
    with pytest.raises(InputError, match=words):
        execute(load(path, settings), tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == before
    execute(load(path, ["output.checkpoint_every=0.5"]), tmp_path / "run", resume=True)  # not the trajectory's business


def test_a_start_whose_file_has_changed_is_refused(tmp_path: Path, write_config: Callable[..., Path]) -> None:
    angles = np.random.default_rng(2).random(30) * 6
    np.savez(tmp_path / "tokens.npz", positions=np.column_stack([np.cos(angles), np.sin(angles)]))
    text = (
        write_config()
        .read_text()
        .replace('kind = "polynomial"\nlinear = [0.4, 0.3]', 'kind = "particles"\npath = "tokens.npz"')
    )
    config = load(write_config(text, "tokens"))
    execute(config, tmp_path / "run", stop=stop_after(2))
    np.savez(tmp_path / "tokens.npz", positions=np.column_stack([np.cos(angles[1:]), np.sin(angles[1:])]))
    with pytest.raises(InputError, match="initial density is another one"):
        execute(config, tmp_path / "run", resume=True)


def fail_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Let the attention field hold a NaN from its call number `call` on."""
    from tokensphere.pde.problem import AttentionFlow

    honest, count = AttentionFlow.field, iter(range(1, 10**6))

    def field(self: AttentionFlow, density: np.ndarray) -> Any:
        found = honest(self, density)
        if next(count) >= call:
            found.speeds[5] = np.nan
        return found

    monkeypatch.setattr(AttentionFlow, "field", field)


@pytest.mark.parametrize("call", [3, 9, 14])
def test_a_nan_field_stops_with_its_place_and_nothing_good_is_lost(
    tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    config = load(write_config())
    execute(config, tmp_path / "whole")
    fail_at(monkeypatch, call)
    with pytest.raises(NonFiniteError) as raised:
        execute(config, tmp_path / "run")
    error = raised.value
    path = tmp_path / "run" / "checkpoint.h5"
    assert error.checkpoint == str(path)
    assert str(path) in str(error)
    assert error.cell in (4, 5)  # face 5 of the circle lies between them
    assert error.longitude == pytest.approx(360 * (error.cell + 0.5) / 64)
    kept = read_checkpoint(path).state
    assert np.isfinite(kept.density).all()
    assert np.isfinite(kept.history_speeds).all()
    assert kept.step == error.step - 1
    assert read_records(tmp_path / "run" / "records.csv")["step"][-1] == kept.step  # rows that waited are not lost
    monkeypatch.undo()
    assert execute(config, tmp_path / "run", resume=True).status == "finished"
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("save", [1, 3])
@pytest.mark.parametrize("every", ["1e-9", "1e9"])
def test_a_disk_that_fills_up_at_a_save_loses_that_save_alone(
    tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, save: int, every: str
) -> None:
    """The state that could not be saved must not be checkpointed either: going on would then skip its save."""
    config = load(write_config(), [f"output.checkpoint_every={every}"])
    execute(config, tmp_path / "whole")
    honest, count = durable.reserve, iter(range(10**6))

    def full(path: Path, extra: int) -> None:
        if next(count) >= save:  # one append a save, but for the first
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(path, extra)

    monkeypatch.setattr(store, "reserve", full)
    with pytest.raises(DiskFullError, match="can take no more"):
        execute(config, tmp_path / "run")
    monkeypatch.undo()
    assert len(read_solution(tmp_path / "run" / "solution.nc").time) == save + 1
    execute(config, tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("writes", [3, 6, 8])
def test_a_full_disk_stops_the_run_and_it_goes_on_when_there_is_space(
    tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    config = load(write_config(), ["output.checkpoint_every=1e-9"])
    execute(config, tmp_path / "whole")
    honest, count = durable.sync, iter(range(10**6))

    def full(path: Path) -> None:
        if next(count) >= writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        honest(path)

    monkeypatch.setattr(durable, "sync", full)
    monkeypatch.setattr(run, "sync", full)
    with pytest.raises(DiskFullError, match="can take no more"):
        execute(config, tmp_path / "run")
    monkeypatch.undo()
    assert not list((tmp_path / "run").glob(".new-*"))
    execute(config, tmp_path / "run", resume=True)
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


def test_memory_that_is_not_there_is_refused_before_anything_is_built(
    tmp_path: Path, write_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokensphere import memory

    monkeypatch.setattr(memory, "available_memory", lambda: 1e8)
    with pytest.raises(PredictedMemoryError, match=r"lower mesh\.cells"):
        execute(load(write_config()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
from tokensphere.config import load
from tokensphere.run import execute
import tokensphere.summary, tokensphere.validation.hypotheses, xarray, h5netcdf, tokensphere.pde.problem

config, folder, kills = load(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
random.seed(4)
while True:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if execute(config, folder, resume=True, threads_wanted=1).status == "finished" else 1
        finally:
            os._exit(status)
    if kills > 0:
        time.sleep(random.uniform(0.05, 0.6))
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    if not os.WIFSIGNALED(ended):
        sys.exit(os.WEXITSTATUS(ended))
    kills -= 1
    if (folder / "solution.nc").exists():
        xarray.open_dataset(folder / "solution.nc", decode_times=False).load().close()
"""


def test_killed_at_random_moments_it_still_ends_as_the_uninterrupted_run(
    tmp_path: Path, write_config: Callable[..., Path]
) -> None:
    text = write_config().read_text().replace("figures = false", "figures = false\ncheckpoint_every = 1e-9")
    path = write_config(text, "often")
    config: Config = load(path)
    execute(config, tmp_path / "whole", threads_wanted=1)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(tmp_path / "killed"), "3"], timeout=120)
    assert done.returncode == 0
    # Not the whole of solution.nc: in a source tree under work, its record of the commit may change between processes.
    found, expected = (read_solution(tmp_path / name / "solution.nc") for name in ("killed", "whole"))
    assert found.time.values.tobytes() == expected.time.values.tobytes()
    assert found.density.values.tobytes() == expected.density.values.tobytes()
    assert contents(tmp_path / "killed")["records.csv"] == contents(tmp_path / "whole")["records.csv"]
    assert_same(
        read_checkpoint(tmp_path / "killed" / "checkpoint.h5").state,
        read_checkpoint(tmp_path / "whole" / "checkpoint.h5").state,
    )
