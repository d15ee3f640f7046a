"""`tokensphere run`."""

from pathlib import Path

from tokensphere.commands.options import (
    ConfigPath,
    Force,
    Json,
    Out,
    Resume,
    Settings,
    Threads,
    check_threads,
    say,
    say_json,
)
from tokensphere.interrupt import INTERRUPTED, deferred, requested


def run(
    config: ConfigPath,
    out: Out = None,
    settings: Settings = None,
    resume: Resume = False,
    force: Force = False,
    threads: Threads = None,
    json: Json = False,
) -> int:
    """March a density to time.end and write its run folder."""
    check_threads(threads)
    from tokensphere.config import load

    asked = load(config, settings)
    folder = out or Path("runs") / config.stem
    from tokensphere.pde.threads import ready_numba

    ready_numba()
    from tokensphere.pde.errors import NumericalError
    from tokensphere.progress import progress
    from tokensphere.run import describe, execute

    # From here on a signal waits for the end of the step; a second one does not.
    try:
        with deferred(), progress(asked.time.end) as update:
            outcome = execute(
                asked, folder, resume=resume, force=force, threads_wanted=threads, update=update, stop=requested
            )
    except NumericalError as error:
        if json:
            say_json({"status": "failed", "folder": str(folder), "reason": str(error), **error.facts()})
        raise
    if json:
        say_json(describe(outcome))
    elif outcome.status == "interrupted":
        say(f"interrupted at t = {outcome.time:.6g}, step {outcome.step}; --resume goes on from {folder}")
    elif outcome.status == "nothing to do":
        say(f"{folder} is already finished at t = {outcome.time:g}")
    else:
        say(f"finished at t = {outcome.time:g} after {outcome.step} steps; see {folder}")
    return INTERRUPTED if outcome.status == "interrupted" else 0
