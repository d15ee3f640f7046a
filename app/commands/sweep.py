"""`tokensphere sweep`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tokensphere.commands.options import ConfigPath, Json, Settings, Threads, check_threads, say, say_json
from tokensphere.interrupt import INTERRUPTED, deferred, requested

SHORTFALL = 1

Over = Annotated[
    list[str] | None, typer.Option("--over", metavar="KEY=LIST", help="Values of a key, such as attention.beta=10,20.")
]
Zip = Annotated[bool, typer.Option("--zip", help="Step through the lists together, not over their product.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Processes; one for each processor if left out.")]
Scheduler = Annotated[str | None, typer.Option("--scheduler", help="Address of a dask scheduler that stands already.")]
SweepOut = Annotated[Path | None, typer.Option("--out", help="Folder; runs/<config name>-sweep if left out.")]


def sweep(
    config: ConfigPath,
    over: Over = None,
    zipped: Zip = False,
    out: SweepOut = None,
    settings: Settings = None,
    workers: Workers = None,
    threads: Threads = None,
    scheduler: Scheduler = None,
    json: Json = False,
) -> int:
    """Run a configuration over lists of values; run again, it computes only what is missing."""
    check_threads(threads)
    _check_workers(workers, scheduler)
    from tokensphere.progress import count_progress
    from tokensphere.sweep.running import sweep as run_sweep

    with deferred(), count_progress("members") as update:
        outcome = run_sweep(
            config,
            over or [],
            out or Path("runs") / f"{config.stem}-sweep",
            settings=settings,
            zipped=zipped,
            workers=workers,
            threads=threads,
            scheduler=scheduler,
            listener=lambda done, total, result: update(done, total),
            stop=requested,
        )
    if json:
        say_json(asdict(outcome) | {"folder": str(outcome.folder)})
    else:
        for line in _lines(outcome):
            say(line)
    if outcome.status == "interrupted":
        return INTERRUPTED
    return SHORTFALL if outcome.failed else 0


def _lines(outcome: Any) -> list[str]:
    lines = [f"{result.name} failed: {result.reason}" for result in outcome.failed]
    if outcome.status == "interrupted":
        return [*lines, f"interrupted after {outcome.computed} members; the same command goes on"]
    words = "nothing was missing" if not outcome.computed and not outcome.failed else f"{outcome.computed} computed"
    return [*lines, f"{outcome.members} members, {words}, {len(outcome.failed)} failed; see {outcome.folder}/sweep.nc"]


def _check_workers(workers: int | None, scheduler: str | None) -> None:
    from tokensphere.meshes.errors import InputError

    if workers is not None and workers < 1:
        raise InputError(f"--workers {workers} was given, but it must be at least 1.")
    if workers is not None and scheduler is not None:
        raise InputError("--workers and --scheduler were both given, but an existing cluster has its own workers.")
