"""`tokensphere compare`."""

from pathlib import Path
from typing import Annotated

import typer

from tokensphere.commands.options import Json, RunPath, Threads, check_threads, say, say_json

SHORTFALL = 1


def compare(
    run: RunPath,
    particles: Annotated[Path, typer.Argument(metavar="PARTICLES.npz", help="positions (times, n, d), times, …")],
    threads: Threads = None,
    json: Json = False,
) -> int:
    """Compare a particle code with the density of a run: 1 where they are inconsistent; draws comparison.png."""
    check_threads(threads)
    from tokensphere.config.building import build_kernel, build_labels
    from tokensphere.folder import RunFolder
    from tokensphere.pde.threads import set_threads
    from tokensphere.plots.canvas import save
    from tokensphere.report.loading import load_run
    from tokensphere.validation.comparison import compare_run
    from tokensphere.validation.particle_figures import plot_comparison
    from tokensphere.validation.time_rows import INCONSISTENT

    if threads is not None:
        set_threads(threads)
    found = load_run(run)
    config = found.config
    answer = compare_run(
        found.mesh,
        found.times,
        found.densities,
        found.attention,
        particles,
        kernel=None if config.kernel is None else build_kernel(config.kernel, config.dimension),
        labels=None if config.labels is None else build_labels(config.labels),
    )
    figures = RunFolder(run).figures
    if figures.is_dir():
        save(plot_comparison(answer), figures / "comparison.png")
    if json:
        say_json(answer.as_dict())
    else:
        for line in answer.lines():
            say(line)
    return SHORTFALL if answer.verdict == INCONSISTENT else 0
