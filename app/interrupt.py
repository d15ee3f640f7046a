"""SIGINT and SIGTERM: end at once with status 3, or, inside `deferred()`, once the work comes to a safe point.

Imports nothing heavy: the handlers must stand before anything that takes time to load.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 3
"""Exit status of a run that a signal ended."""

_pending: list[int] = []
_depth: list[None] = []


def install() -> None:
    """Put the handlers in place; only the main thread of a program may."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _handle)


def requested() -> bool:
    """Whether a signal has asked the deferred work to stop."""
    return bool(_pending)


@contextmanager
def deferred() -> Iterator[None]:
    """Inside, the first signal is only noted (see `requested`); a second one ends the program at once."""
    _depth.append(None)
    try:
        yield
    finally:
        _depth.pop()


def _handle(number: int, frame: FrameType | None) -> None:
    if _depth and not _pending:
        _pending.append(number)
        return
    # No clean-up is owed: files are only ever replaced whole, so nothing on disk is half-written.
    name = signal.Signals(number).name
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"tokensphere: {name} received, stopped.\n".encode())
    os._exit(INTERRUPTED)
