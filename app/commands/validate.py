"""`tokensphere validate`."""

from typing import Annotated, Any, Literal

import typer

from tokensphere.commands.options import Json, Threads, check_threads, say, say_json

SHORTFALL = 1
HEADINGS = ("case", "resolution", "error", "order", "bound", "holds")


def validate(
    level: Annotated[
        Literal["quick", "full"], typer.Option("--level", help="quick takes under two minutes.")
    ] = "quick",
    threads: Threads = None,
    json: Json = False,
) -> int:
    """Compare the solver with exact solutions: error, observed order, bound and verdict of every case."""
    check_threads(threads)
    from tokensphere.pde.threads import set_threads
    from tokensphere.validation.cases import run_cases

    if threads is not None:
        set_threads(threads)
    rows = list(run_cases(level))
    if json:
        say_json([{name: getattr(row, name) for name in HEADINGS} for row in rows])
    else:
        for line in table([[_text(getattr(row, name)) for name in HEADINGS] for row in rows]):
            say(line)
    return 0 if rows and all(row.holds for row in rows) else SHORTFALL


def table(rows: list[list[str]]) -> list[str]:
    """Rows of texts under the headings, in columns."""
    lines = [list(HEADINGS), *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "holds" if value else "FAILS"
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
