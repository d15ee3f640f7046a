"""Files that are only ever seen whole: written beside, forced to disk, then renamed over the old one."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tokensphere.pde.errors import DiskFullError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def replace_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, then put it in place at once; on any failure the old file stays."""
    beside = path.with_name(f".new-{path.name}")
    try:
        write(beside)
        sync(beside)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def replace_text(path: Path, text: str) -> None:
    """`replace_whole` for a text."""
    replace_whole(path, lambda beside: _write(beside, text))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def reserve(path: Path, extra: int) -> None:
    """Lengthen a file by bytes that the disk has granted; OSError where it does not."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if hasattr(os, "posix_fallocate"):
            try:
                os.posix_fallocate(file.fileno(), end, extra)
                return
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                    raise
        file.write(bytes(extra))


def sync(path: Path) -> None:
    """Force a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise
    finally:
        os.close(handle)


@contextmanager
def disk_guard(folder: Path, time: float, step: int) -> Iterator[None]:
    """Turn a full disk or quota into a DiskFullError; HDF5 reports it as an OSError or RuntimeError with the number
    in its message."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if getattr(error, "errno", None) in _FULL or any(f"errno = {number}," in str(error) for number in _FULL):
            raise DiskFullError(
                f"{folder} can take no more, free some space and go on with --resume,", time=time, step=step
            ) from error
        raise
