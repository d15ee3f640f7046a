"""The command line's entry: signal handlers first, then the commands, and one sentence for whatever goes wrong."""

import gc
import os
import sys
from typing import NoReturn

from tokensphere import interrupt

SHORTFALL, BAD_INPUT = 1, 2


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 all holds, 1 a check falls short, 2 bad input, 3 interrupted."""
    interrupt.install()
    # pydantic would read the metadata of every installed package in search of its own plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Imports and arrays make few cycles: looking for them every 700 objects is a tenth of the time of a start.
    gc.set_threshold(1_000_000, 50, 50)
    sys.exit(status(sys.argv[1:] if arguments is None else arguments))


def status(arguments: list[str]) -> int:
    """The exit status of the command line with these arguments; whatever goes wrong becomes one sentence on stderr."""
    try:
        from tokensphere.commands import application

        return application(arguments)
    except Exception as error:
        return _explain(error)


def _explain(error: Exception) -> int:
    import logging

    from tokensphere.meshes.errors import InputError
    from tokensphere.pde.errors import NumericalError

    if isinstance(error, InputError):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, NumericalError):
        return _say(str(error), SHORTFALL)
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()  # the reader of our output has gone, which is its right
        return SHORTFALL
    if isinstance(error, MemoryError):
        return _say("the machine's memory is exhausted; use a coarser mesh or fewer labels", SHORTFALL)
    logging.getLogger("tokensphere").debug("unexpected failure", exc_info=error)
    sentence = " ".join(f"{type(error).__name__}: {error}".split())
    return _say(f"unexpected failure ({sentence}); tokensphere --debug … shows where", SHORTFALL)


def _say(sentence: str, status: int) -> int:
    sys.stderr.write(f"tokensphere: {' '.join(sentence.split())}\n")
    return status
