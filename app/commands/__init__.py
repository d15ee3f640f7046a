"""The commands: each reads its options, calls one function of the library and turns the answer into a status."""

import difflib
import logging
import sys
from typing import Annotated, Any, TextIO

import typer

from tokensphere.commands.check import check
from tokensphere.commands.compare import compare
from tokensphere.commands.report import report
from tokensphere.commands.run import run
from tokensphere.commands.sweep import sweep
from tokensphere.commands.validate import validate

BAD_INPUT = 2

app = typer.Typer(
    add_completion=True,
    pretty_exceptions_enable=False,
    help="The mean-field transformer equation solved for a density on the sphere, and its theorems tested in numbers.",
    epilog="Status: 0 all holds, 1 a check falls short, 2 bad input, 3 interrupted with a checkpoint written.",
)
for command in (run, check, validate, compare, sweep, report):
    app.command()(command)


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Log in detail, with the place of a failure.")] = False,
) -> int | None:
    """Options of every command."""
    _show_logs(debug)
    if version:
        from tokensphere import __version__

        sys.stdout.write(f"tokensphere {__version__}\n")
    elif context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")
    return 0


class _Sentences(logging.Formatter):
    """Log records without tracebacks: where a failure happened is for --debug."""

    def formatException(self, ei: Any) -> str:
        return ""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # what another formatter may have left
        return super().format(record).rstrip()


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to whatever sys.stderr is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _show_logs(debug: bool) -> None:
    handler = _Stderr()
    form = "%(name)s: %(message)s"
    handler.setFormatter(logging.Formatter(form) if debug else _Sentences(form))
    log = logging.getLogger("tokensphere")
    log.handlers[:] = [handler]
    log.setLevel(logging.DEBUG if debug else logging.INFO)


def application(arguments: list[str]) -> int:
    """Run the command line on these arguments and return its status; what is wrong with them is one sentence."""
    try:
        status = app(arguments, prog_name="tokensphere", standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):  # neither typer's nor click's
            raise
        sys.stderr.write(f"tokensphere: {_sentence(error)}\n")
        return BAD_INPUT
    return int(status or 0)


def _sentence(error: Any) -> str:
    text = " ".join(str(error.format_message()).split()).rstrip(".")
    known = getattr(error, "possibilities", None) or []
    context = getattr(error, "ctx", None)
    if getattr(error, "option_name", None) and not known and context is not None:
        names = [name for parameter in context.command.params for name in parameter.opts]
        known = difflib.get_close_matches(error.option_name, names, n=1)
    if known and "ossible option" not in text and "id you mean" not in text:
        text += f" (did you mean {known[0]}?)"
    path = getattr(context, "command_path", "tokensphere")
    return f"{text}; {path} --help shows what is allowed."
