"""How far a run has come: a bar on a terminal or in a notebook, one plain line now and then elsewhere."""

import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Update = Callable[[float, int], None]
log = logging.getLogger("tokensphere")

BETWEEN_LINES = 10.0
"""Seconds between plain lines."""


@contextmanager
def progress(end: float, start: float = 0.0, quiet: bool = False) -> Iterator[Update]:
    """Yields `update(time, step)`; shows simulated time, step and steps per second."""
    if quiet:
        yield lambda now, step: None
    elif sys.stderr.isatty() or "ipykernel" in sys.modules:
        with _bar(end, start) as update:
            yield update
    else:
        yield _lines(end)


@contextmanager
def _bar(end: float, start: float) -> Iterator[Update]:
    from tqdm.auto import tqdm

    layout = "t = {n:.4g}/{total:.4g} {bar} {percentage:3.0f}%{postfix} [{elapsed}<{remaining}]"
    # A terminal that does not know its size (0 by 0) would get no bar at all.
    size = {} if shutil.get_terminal_size((0, 0)).columns else {"ncols": 80, "nrows": 24}
    with tqdm(total=end, initial=start, bar_format=layout, leave=True, mininterval=0.2, **size) as bar:
        clock = _Rate()

        def update(now: float, step: int) -> None:
            bar.set_postfix_str(f"step {step}, {clock.steps_per_second(step):.3g} steps/s", refresh=False)
            bar.update(now - bar.n)

        yield update


@contextmanager
def count_progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yields `update(done, total)`; shows how many are done and the time left."""
    start: list[tuple[float, int]] = []
    terminal = sys.stderr.isatty()

    def update(done: int, total: int) -> None:
        start[:] = start or [(time.monotonic(), done)]
        elapsed, fresh = time.monotonic() - start[0][0], done - start[0][1]
        left = f", about {elapsed / fresh * (total - done):.0f} s left" if fresh and done < total else ""
        text = f"{done} of {total} {what}{left}"
        sys.stderr.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
        sys.stderr.flush()

    yield update
    if terminal and start:
        sys.stderr.write("\n")


def _lines(end: float) -> Update:
    clock = _Rate()
    last = [time.monotonic()]

    def update(now: float, step: int) -> None:
        if time.monotonic() - last[0] >= BETWEEN_LINES or now >= end:
            last[0] = time.monotonic()
            rate = clock.steps_per_second(step)
            speed = f", {rate:.3g} steps/s" if rate else ""
            sys.stderr.write(f"t = {now:.6g} of {end:.6g}, step {step}{speed}\n")
            sys.stderr.flush()

    return update


class _Rate:
    """Steps per second since the first update."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def steps_per_second(self, step: int) -> float:
        now = time.monotonic()
        if self._first is None:
            self._first = now, step
        elapsed = now - self._first[0]
        return (step - self._first[1]) / elapsed if elapsed > 0 else 0.0
