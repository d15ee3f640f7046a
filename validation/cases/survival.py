"""Runs that are killed, starved of disk or very long: what is on disk afterwards against the uninterrupted run.

Everything goes through the command line in processes of its own, as it would for a user.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.circle import circle
from tokensphere.pde.attention import Attention
from tokensphere.pde.densities import polynomial
from tokensphere.pde.march import State, march
from tokensphere.pde.problem import AttentionFlow
from tokensphere.validation.cases.registry import Row, below, case

Array = NDArray[np.float64]

DENSITY = """
mesh = {kind = "circle", cells = 256}
attention = {beta = 60.0, value = [[1.0, 0.0], [0.0, -0.6]]}
initial = {kind = "polynomial", linear = [0.4, 0.3]}
time = {end = 6.0, saves = 12}
output = {figures = false, checkpoint_every = 1e-9}
"""

JOINT = """
mesh = {kind = "circle", cells = 128}
labels = {kind = "circle", count = 6}
kernel = {kind = "toeplitz", cosines = [[1, 1.0]], beta = 4.0}
initial = {kind = "uniform", perturbation = 0.3, seed = 5}
time = {end = 10.0, saves = 10}
output = {figures = false, checkpoint_every = 1e-9}
"""

FINISHED, INTERRUPTED = 0, 3


class Runs:
    """Runs of one configuration in a folder of their own."""

    def __init__(self, folder: Path, configuration: str) -> None:
        self.folder = folder
        self.configuration = folder / "survival.toml"
        self.configuration.write_text(configuration, encoding="utf-8")

    def start(self, name: str, *options: str, preparation: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        """A process that runs, or goes on with, the folder `name`."""
        command = [sys.executable, "-m", "tokensphere", "run", str(self.configuration), "--threads", "1", "--resume"]
        return subprocess.Popen(
            [*command, "--out", str(self.folder / name), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            preexec_fn=preparation,
        )

    def complete(self, name: str) -> float:
        """Run the folder to its end; returns the wall seconds from the first checkpoint on."""
        process = self.start(name)
        checkpoint = self.folder / name / "checkpoint.h5"
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        began = time.perf_counter()
        if process.wait() != FINISHED:
            raise RuntimeError(f"the run ended with status {process.returncode}")
        return time.perf_counter() - began

    def differences(self, name: str, reference: str) -> int:
        """How many of records, saves and the arrays and numbers of the final state are not bitwise the same."""
        first, second = self.folder / name, self.folder / reference
        count = int((first / "records.csv").read_bytes() != (second / "records.csv").read_bytes())
        for file, group in (("solution.nc", "/"), ("checkpoint.h5", "/checkpoint/state")):
            a, b = contents(first / file, group), contents(second / file, group)
            count += len(set(a) ^ set(b)) + sum(a[key] != b[key] for key in set(a) & set(b))
        return count


def contents(path: Path, group: str) -> dict[str, bytes]:
    """Bytes of every array under a group of an HDF5 file, and the numbers that stand as attributes of a state."""
    found: dict[str, bytes] = {}
    with h5py.File(path, "r") as file:
        top = file[group]

        def visit(name: str, item: h5py.Dataset | h5py.Group) -> None:
            if isinstance(item, h5py.Dataset):
                found[name] = np.asarray(item[()]).tobytes()

        top.visititems(visit)
        if group != "/":
            found |= {name: str(value).encode() for name, value in top.attrs.items()}
    return found


def interrupted(runs: Runs, name: str, number: signal.Signals, times: int, rng: random.Random, span: float) -> int:
    """Start, signal and take up again until it has been signalled `times` times, then let it end.

    Returns the moments at which solution.nc did not open or held something else than finished saves.
    """
    unreadable = 0
    for _ in range(times):
        process = runs.start(name)
        started = (runs.folder / name / "checkpoint.h5").exists()
        time.sleep(rng.uniform(0.0, span) + (0.5 if started else 1.0))
        process.send_signal(number)
        process.wait()
        unreadable += _unreadable(runs.folder / name / "solution.nc")
    runs.complete(name)
    return unreadable


def _unreadable(path: Path) -> int:
    if not path.exists():
        return 0
    try:
        with h5py.File(path, "r") as file:
            return int(not np.isfinite(file["density"][()]).all() or len(file["time"]) != len(file["density"]))
    except OSError:
        return 1


def _survive(title: str, configuration: str, number: signal.Signals, signals: int, per_run: int) -> list[Row]:
    """Several runs, each signalled `per_run` times (so resumptions are resumed), `signals` in all."""
    rng = random.Random(signals)
    differing = unreadable = 0
    with tempfile.TemporaryDirectory() as place:
        runs = Runs(Path(place), configuration)
        span = runs.complete("whole")
        for run in range(signals // per_run):
            unreadable += interrupted(runs, f"run{run}", number, per_run, rng, span / 2)
            differing += runs.differences(f"run{run}", "whole")
    return [
        below(f"{title}: pieces that differ from the uninterrupted run", f"{signals} signals", differing, 0),
        below(f"{title}: moments at which solution.nc did not open", f"{signals} signals", unreadable, 0),
    ]


@case("survival-kill-density", level="full")
def killed_density() -> list[Row]:
    """kill −9 at 26 random moments of a density run with adaptive steps, then resumed to the end."""
    return _survive("kill -9, density", DENSITY, signal.SIGKILL, 26, 2)


@case("survival-kill-joint", level="full")
def killed_joint() -> list[Row]:
    """kill −9 at 24 random moments of a joint law, then resumed to the end."""
    return _survive("kill -9, joint law", JOINT, signal.SIGKILL, 24, 3)


@case("survival-term", level="full")
def terminated() -> list[Row]:
    """SIGTERM at 12 random moments of a density run, then resumed to the end."""
    return _survive("SIGTERM, density", DENSITY, signal.SIGTERM, 12, 4)


@case("survival-disk", level="full")
def full_disk() -> list[Row]:
    """A file size limit below what solution.nc needs: a clear end, and the run goes on when the limit is gone."""
    with tempfile.TemporaryDirectory() as place:
        runs = Runs(Path(place), DENSITY)
        runs.complete("whole")
        least = 65_536 + (Path(place) / "whole" / "solution.nc").stat().st_size // 2
        process = runs.start("full", preparation=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (least, least)))
        _, err = process.communicate()
        clear = process.returncode == 1 and b"can take no more" in err and b"Traceback" not in err
        unreadable = _unreadable(Path(place) / "full" / "solution.nc")
        runs.complete("full")
        differing = runs.differences("full", "whole")
    return [
        below("full disk: ends without a clear error", None, int(not clear), 0),
        below(
            "full disk: solution.nc unreadable, or pieces that differ after going on", None, unreadable + differing, 0
        ),
    ]


@case("survival-steps", level="full")
def many_steps() -> list[Row]:
    """10⁵ steps on a circle: drift of the mass, and resident memory from step 10⁴ on."""
    mesh = circle(64)
    attention = Attention(np.eye(2), np.eye(2), np.diag([1.0, -0.6]), beta=6.0)
    density = polynomial(mesh, 1.0, [0.4, 0.3])
    saves = np.linspace(0.0, 40.0, 100_001)  # one step at least to each
    drift, memory = 0.0, []
    for state in march(AttentionFlow(mesh, attention), State(0.0, density), saves):
        drift = max(drift, abs(float(state.density @ mesh.areas) - 1.0))
        if state.step >= 10_000 and state.step % 5_000 == 0:
            memory.append(resident())
    growth = max(memory) / memory[0] - 1.0
    return [
        below("long run: drift of the mass", f"{state.step} steps", drift, 1e-11),
        below("long run: growth of the memory", f"{state.step} steps", growth, 0.02),
    ]


def resident() -> float:
    """Bytes of memory this process holds now (at its peak, where /proc does not tell)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return float(pages * os.sysconf("SC_PAGE_SIZE"))
