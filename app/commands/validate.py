"""`tokensphere validate`."""

from typing import Annotated, Any, Literal

import typer

from tokensphere.commands.options import Json, Threads, check_threads, say, say_json

SHORTFALL = 1
COLUMNS = {"case": 56, "resolution": 12, "error": 10, "order": 7, "bound": 10, "holds": 5}


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
    from tokensphere.validation import cases

    if threads is not None:
        set_threads(threads)
    if not json:
        say(_line(COLUMNS))
    rows = cases.run_cases(level, report=lambda row: None if json else say(_line(vars(row))))
    if json:
        say_json([{name: getattr(row, name) for name in COLUMNS} for row in rows])
    return 0 if rows and all(row.holds for row in rows) else SHORTFALL


def _line(values: Any) -> str:
    """One row of the table, from a mapping of column names; the heading is made of the names themselves."""
    heading = values is COLUMNS
    cells = [(name if heading else _text(values[name])).ljust(width) for name, width in COLUMNS.items()]
    return "  ".join(cells).rstrip()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "holds" if value else "FAILS"
    if value is None or (isinstance(value, float) and value != value):
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
