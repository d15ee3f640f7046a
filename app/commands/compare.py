"""`tokensphere compare`."""

from pathlib import Path
from typing import Annotated

import typer

from tokensphere.commands.options import Json, RunPath, say, say_json

SHORTFALL = 1


def compare(
    run: RunPath,
    particles: Annotated[Path, typer.Argument(metavar="PARTICLES.npz", help="positions (times, n, d), times, …")],
    json: Json = False,
) -> int:
    """Compare a particle code with the density of a run."""
    from tokensphere.comparing import compare_files

    answer = compare_files(run, particles)
    if json:
        say_json(answer)
    else:
        for line in answer["lines"]:
            say(line)
    return SHORTFALL if answer["verdict"] == "inconsistent" else 0
