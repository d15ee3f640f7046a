"""The folder of a run: what is in it, when it may be written, and how it is cleared."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tokensphere.meshes.errors import InputError
from tokensphere.records import Records


@dataclass(frozen=True)
class RunFolder:
    """Names of the files of a run."""

    path: Path

    @property
    def configuration(self) -> Path:
        """config.toml, the resolved configuration."""
        return self.path / "config.toml"

    @property
    def solution(self) -> Path:
        """solution.nc, the density at every finished save."""
        return self.path / "solution.nc"

    @property
    def records(self) -> Path:
        """records.csv, one row per step."""
        return self.path / "records.csv"

    @property
    def summary(self) -> Path:
        """summary.json, written last: a folder that has one holds a finished run."""
        return self.path / "summary.json"

    @property
    def checkpoint(self) -> Path:
        """checkpoint.h5, the last good state."""
        return self.path / "checkpoint.h5"

    @property
    def figures(self) -> Path:
        """figures/*.png."""
        return self.path / "figures"

    @property
    def report(self) -> Path:
        """report.html."""
        return self.path / "report.html"

    def open_records(self) -> Records:
        """records.csv, ready to be appended to."""
        return Records(self.records)


def check_free(folder: RunFolder, force: bool, resume: bool) -> None:
    """Refuse, before anything is written, a folder that holds something else or a run that nobody gave up.

    Raises InputError for a path that is a file or cannot be written, a folder with files that are not a run's, and a
    run where neither `force` nor `resume` was given.
    """
    path = folder.path
    try:
        parent = next(place for place in (path, *path.absolute().parents) if place.exists())
    except OSError as error:
        raise InputError(f"{path} cannot be a run folder ({error.strerror}); choose another --out.") from None
    if not parent.is_dir():
        raise InputError(f"{path} cannot be a run folder because {parent} is a file; choose another --out.")
    if not path.exists() or all(entry.name.startswith(".new-") for entry in path.iterdir()):
        return
    if not folder.configuration.exists():
        raise InputError(f"{path} holds files but no run; choose another --out, tokensphere will not write there.")
    if not force and not resume:
        raise InputError(
            f"{path} already holds a run; give --resume to go on, --force to replace it, or another --out."
        )


@contextmanager
def locked(folder: RunFolder) -> Iterator[None]:
    """Keep a second process out of the folder; the lock goes with the process, however it ends.

    Raises InputError where another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    handle = os.open(folder.path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            f"{folder.path} is being written by another process; wait for it or choose another --out."
        ) from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(handle)


def clear(folder: RunFolder) -> None:
    """Remove a run's files and nothing else."""
    files = ("configuration", "solution", "records", "summary", "checkpoint", "report")
    for path in (getattr(folder, name) for name in files):
        path.unlink(missing_ok=True)
    for hidden in (*folder.path.glob(".solution.*"), *folder.path.glob(".new-*")):
        hidden.unlink(missing_ok=True)
    shutil.rmtree(folder.figures, ignore_errors=True)
