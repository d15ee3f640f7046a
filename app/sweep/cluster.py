"""The members of a sweep on dask.distributed: a local cluster sized to the machine, or one that stands already.

Processes are spawned, never forked, and a nanny starts another one where one dies; its member is taken up from its
checkpoint. A process runs one member at a time.
"""

import os
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokensphere.config import parse, to_toml
from tokensphere.durable import replace_text
from tokensphere.folder import RunFolder
from tokensphere.meshes.errors import InputError
from tokensphere.sweep.members import Member

FAILURE = "failure.json"
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Result:
    """How a member ended: "finished", or "failed" with one sentence."""

    name: str
    status: str
    reason: str = ""


def run_member(configuration: str, path: str, name: str, threads: int | None) -> dict[str, Any]:
    """Run or take up one member, in whatever process this is; a failure is an answer, not an exception."""
    from tokensphere.run import execute
    from tokensphere.summary import to_json

    folder = Path(path)
    failure = folder / FAILURE
    with _one_at_a_time:
        try:
            failure.unlink(missing_ok=True)
            execute(parse(tomllib.loads(configuration)), folder, resume=True, threads_wanted=threads or _own_threads())
            return asdict(Result(name, "finished"))
        except Exception as error:  # one member's failure, of whatever kind, must not end the others
            result = Result(name, "failed", " ".join(f"{error}".split()) or type(error).__name__)
            if (folder / "config.toml").exists():
                replace_text(failure, to_json({**asdict(result), "kind": type(error).__name__}))
            return asdict(result)


def is_finished(member: Member, folder: RunFolder) -> bool:
    """Whether the folder holds this member's finished run, whatever was asked of its figures and checkpoints."""
    try:
        written = tomllib.loads(folder.configuration.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    asked = tomllib.loads(to_toml(member.config))
    return folder.summary.exists() and {**written, "output": None} == {**asked, "output": None}


def run_members(
    members: list[Member],
    root: Path,
    *,
    workers: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    report: Callable[[Result], None] = lambda result: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[Result]:
    """Run members into root/<name>; `report` hears of each as it ends, and `stop` is asked twice a second.

    Raises InputError where the scheduler does not answer.
    """
    from distributed import as_completed

    results: list[Result] = []
    with _client(len(members), workers, threads, scheduler) as (client, share):
        futures = [
            client.submit(
                run_member,
                to_toml(member.config),
                str((root / member.name).absolute()),
                member.name,
                share,
                key=f"tokensphere-{os.getpid()}-{member.name}",
                pure=False,
            )
            for member in members
        ]
        names = {future.key: member.name for future, member in zip(futures, members, strict=True)}
        waiting = as_completed(futures, loop=client.loop)
        while len(results) < len(members) and not stop():
            for future in _ready(waiting):
                result = _result(future, names[future.key])
                results.append(result)
                report(result)
        if len(results) < len(members):
            client.cancel(futures, force=True)
    return results


def _ready(waiting: Any) -> list[Any]:
    """The futures that have ended within half a second."""
    import time

    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        if waiting.has_ready():
            return list(waiting.next_batch(block=False))
        time.sleep(0.02)
    return []


def _result(future: Any, name: str) -> Result:
    if future.status == "finished":
        return Result(**future.result())
    reason = " ".join(str(future.exception()).split()) if future.status == "error" else future.status
    return Result(name, "failed", reason)


@contextmanager
def _client(
    members: int, workers: int | None, threads: int | None, scheduler: str | None
) -> Iterator[tuple[Any, int | None]]:
    """A client with the threads each member gets (None: as many as its worker was started with)."""
    import gc
    import logging

    import dask
    from distributed import Client, LocalCluster

    # A client whose scheduler did not answer is garbage that takes distributed's lock when it is collected: were that
    # while the next client is being made, which holds the lock, both would wait for ever.
    gc.collect()
    for name in ("distributed", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=15, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise InputError(
                f"the scheduler {scheduler} does not answer ({' '.join(str(error).split())[:100]}); give "
                "the address it printed, such as tcp://127.0.0.1:8786."
            ) from None
        with client:
            yield client, threads
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    count = min(workers or cores, max(members, 1))
    share = threads or max(1, cores // count)
    environment = {name: str(share) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    settings = {
        "distributed.worker.multiprocessing-method": "spawn",
        "distributed.nanny.pre-spawn-environ": environment,
        "distributed.scheduler.allowed-failures": 5,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, share


def _own_threads() -> int | None:
    """The threads that the dask worker around this call was started with."""
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except (ValueError, AttributeError):
        return None
