"""One run from its configuration to its folder: march, record, save, checkpoint, stop when asked, sum up."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.checkpoint import Checkpoint, digest, read_checkpoint, write_checkpoint
from tokensphere.config import Config, to_toml
from tokensphere.durable import disk_guard, replace_text, sync
from tokensphere.folder import RunFolder, check_free, clear, locked
from tokensphere.layout import Layout
from tokensphere.memory import check_memory
from tokensphere.meshes.errors import InputError
from tokensphere.origin import in_words, origin
from tokensphere.pde.errors import NumericalError
from tokensphere.pde.march import State, march
from tokensphere.pde.threads import set_threads, threads
from tokensphere.progress import Update
from tokensphere.recording import row
from tokensphere.records import Records
from tokensphere.resuming import check_same_run, extended_plan
from tokensphere.stopwatch import Stopwatch
from tokensphere.store import append_save, finish, forget_spare
from tokensphere.summary import layout_of, write_summary
from tokensphere.task import Task, build_task

Array = NDArray[np.float64]
ROWS_TOGETHER, SECONDS_TOGETHER = 16, 4.0
"""Rows of records that are worked out together, within so many seconds: after the first, what they read is cached."""
log = logging.getLogger("tokensphere")


@dataclass(frozen=True)
class Outcome:
    """How a run ended: "finished", "interrupted" (a checkpoint is written), or "nothing to do"."""

    status: str
    folder: Path
    time: float
    step: int


@dataclass(frozen=True, eq=False)
class _Run:
    """A run under way: what it computes, where it writes, and the last checkpoint's contents but for the state."""

    task: Task
    folder: RunFolder
    config: Config
    checkpoint: Checkpoint
    records: Records
    waiting: list[State] = field(default_factory=list)  # states whose rows are not on disk yet
    compressions: dict[int, float] = field(default_factory=dict)  # sup div v by number of the save


def execute(
    config: Config,
    path: Path,
    *,
    resume: bool = False,
    force: bool = False,
    threads_wanted: int | None = None,
    update: Update = lambda time, step: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run a configuration into a folder, or go on with what the folder holds.

    `stop` is asked after every step: where it says so, the state is written and the outcome is "interrupted". On
    `resume`, a folder without a checkpoint starts from the beginning and a finished run has nothing to do.

    Raises InputError, before anything is written, for whatever is wrong with configuration, folder or checkpoint, and
    a NumericalError that names the last good checkpoint when a guard fires.
    """
    folder = RunFolder(path)
    check_free(folder, force, resume)
    check_memory(config)
    old = read_checkpoint(folder.checkpoint) if resume and not force and folder.checkpoint.exists() else None
    wanted = threads_wanted or (old and old.origin.get("threads"))
    if wanted:
        set_threads(int(wanted))
    clock = Stopwatch()
    with clock.watch("build"):
        task = build_task(config)
    if old is not None:
        check_same_run(path, old, config, digest(task.density))
        if folder.summary.exists() and old.state.save_index == len(extended_plan(old.plan, config)):
            if not folder.report.exists():
                _draw(folder, config)
            return Outcome("nothing to do", path, old.state.time, old.state.step)
    _make(path)
    with locked(folder):
        run = _begin(task, folder, config) if old is None else _continue(task, folder, config, old)
        try:
            return _march(run, clock, update, stop)
        finally:
            run.records.close()


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); choose another --out.") from None


def _begin(task: Task, folder: RunFolder, config: Config) -> _Run:
    checkpoint = Checkpoint(
        state=State(0.0, task.density),
        configuration=to_toml(config),
        plan=np.array(config.save_times),
        initial=digest(task.density),
        origin=origin(threads(), config.initial.seed),
    )
    clear(folder)
    with disk_guard(folder.path, 0.0, 0):
        _write_configuration(folder, checkpoint)
    return _Run(task, folder, config, checkpoint, folder.open_records())


def _continue(task: Task, folder: RunFolder, config: Config, old: Checkpoint) -> _Run:
    _note_changes(old)
    plan = extended_plan(old.plan, config)
    checkpoint = replace(old, configuration=to_toml(config), plan=plan, resumed=old.resumed + 1)
    folder.summary.unlink(missing_ok=True)
    forget_spare(folder.solution)
    with disk_guard(folder.path, old.state.time, old.state.step):
        _write_configuration(folder, checkpoint)
        write_checkpoint(folder.checkpoint, checkpoint)
    return _Run(task, folder, config, checkpoint, folder.open_records())


def _write_configuration(folder: RunFolder, checkpoint: Checkpoint) -> None:
    replace_text(folder.configuration, f"# {in_words(checkpoint.origin)}\n{checkpoint.configuration}")


def _note_changes(old: Checkpoint) -> None:
    now = origin(threads(), old.origin.get("seed"))
    changed = [key for key in ("versions", "threads", "machine") if now[key] != old.origin.get(key)]
    if changed:
        log.warning(
            "the run was started with other %s: going on is exact to rounding, not bitwise", " and ".join(changed)
        )


def _march(run: _Run, clock: Stopwatch, update: Update, stop: Callable[[], bool]) -> Outcome:
    layout, plan, path = layout_of(run.task, run.checkpoint), run.checkpoint.plan, run.folder.path
    began, last = time.perf_counter(), -np.inf
    if run.config.output.figures:
        threading.Thread(target=_load_figures).start()
    state = reached = good = run.checkpoint.state
    recorded = began
    try:
        for state in march(run.task.flow, state, plan):  # noqa: B020
            stopping = stop()
            now = time.perf_counter()
            checking = stopping or now - last >= run.config.output.checkpoint_every
            with disk_guard(path, state.time, state.step):
                _put_out(run, state, layout, clock)
                reached = state
                if checking or len(run.waiting) == ROWS_TOGETHER or now - recorded >= SECONDS_TOGETHER:
                    _record(run, clock)
                    good, recorded = state, now  # with all that it put out on disk: a checkpoint may stand for it
                if checking:
                    _write_checkpoint(run, state, began, clock)
                    last = time.perf_counter()
            update(state.time, state.step)
            if stopping and state.save_index < len(plan):
                return Outcome("interrupted", path, state.time, state.step)
        with disk_guard(path, state.time, state.step):
            _record(run, clock)
            run = _write_checkpoint(run, state, began, clock)
            with clock.watch("saves"):
                finish(run.folder.solution, layout)
            write_summary(run.task, run.folder, run.config, run.checkpoint, clock.seconds, run.compressions)
            _draw(run.folder, run.config)
    except NumericalError as error:
        raise error.with_checkpoint(_rescue(run, good, reached, began, clock)) from error.__cause__
    return Outcome("finished", path, state.time, state.step)


def _put_out(run: _Run, state: State, layout: Layout, clock: Stopwatch) -> None:
    """At a save time the density; the row of records waits for others."""
    if state.saved is not None:
        with clock.watch("saves"):
            append_save(run.folder.solution, layout, state.saved, state.time, state.density)
        if run.task.attention is not None:
            from tokensphere.validation.lipschitz import largest_compression

            # The field at a save is at hand now; evaluating it anew for the summary would take seconds.
            run.compressions[state.saved] = largest_compression(run.task.mesh, state.history_speeds[0])
    run.waiting.append(replace(state, history_speeds=np.empty((0, 0))))


def _record(run: _Run, clock: Stopwatch) -> None:
    """The rows of all states that wait, to disk."""
    with clock.watch("records"):
        for state in run.waiting:
            run.records.append(row(run.task.recorders, state))
    run.waiting.clear()


def _load_figures() -> None:
    """Load what figures need while the march computes: half a second that would follow it."""
    from tokensphere import report as report


def _draw(folder: RunFolder, config: Config) -> None:
    """figures/*.png and report.html."""
    if config.output.figures:
        from tokensphere.report import write_report

        write_report(folder.path)


def _write_checkpoint(run: _Run, state: State, began: float, clock: Stopwatch) -> _Run:
    """Everything that the state stands for is on disk before the state is."""
    with clock.watch("checkpoints"):
        if run.folder.records.exists():
            sync(run.folder.records)
        seconds = run.checkpoint.seconds + time.perf_counter() - began
        checkpoint = replace(run.checkpoint, state=state, seconds=seconds)
        write_checkpoint(run.folder.checkpoint, checkpoint)
    return replace(run, checkpoint=checkpoint)


def _rescue(run: _Run, good: State, reached: State, began: float, clock: Stopwatch) -> str | None:
    """Keep the last good state when a guard has fired, if the disk takes it; the path of the checkpoint there is.

    That is the state reached if its rows can be recorded.
    """
    try:
        _record(run, clock)
        good = reached
    except (NumericalError, OSError, RuntimeError):
        pass  # what has just failed fails again: it has its sentence
    if len(good.history_times):
        try:
            _write_checkpoint(run, good, began, clock)
        except (OSError, RuntimeError) as error:
            log.warning("the last state could not be written (%s)", error)
    return str(run.folder.checkpoint) if run.folder.checkpoint.exists() else None


def describe(outcome: Outcome) -> dict[str, Any]:
    """The outcome as a JSON-ready record."""
    return {"status": outcome.status, "folder": str(outcome.folder), "time": outcome.time, "step": outcome.step}
