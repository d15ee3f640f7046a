"""Options that several commands share."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="The configuration.", show_default=False)]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
Out = Annotated[Path | None, typer.Option("--out", help="Folder to write; runs/<config name> if left out.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Lay a value over the configuration, repeatable.")
]
Threads = Annotated[int | None, typer.Option("--threads", help="Threads for every parallel part; all if left out.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's checkpoint stands.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing run.")]


def say(text: str) -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def say_json(document: Any) -> None:
    """One JSON document on stdout."""
    from tokensphere.summary import to_json

    sys.stdout.write(to_json(document))
    sys.stdout.flush()


def check_threads(count: int | None) -> None:
    """Refuse a number of threads that is not one."""
    from tokensphere.meshes.errors import InputError

    if count is not None and count < 1:
        raise InputError(
            f"--threads {count} was given, but it must be at least 1; leave it out to use every processor."
        )
