"""records.csv: one row per step, appended as the run goes."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tokensphere.meshes.errors import InputError


class Records:
    """Appends rows to records.csv; rows of steps that are already there are left as they are.

    A resumed march repeats bitwise the steps between its checkpoint and the moment it was killed, so their rows need
    not be written again. A number is written as the shortest text that reads back as the same float.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.last_step = _mend(path)
        self._file: io.TextIOWrapper | None = None

    def append(self, row: Mapping[str, float]) -> None:
        """Add a row with a `step` later than those on disk."""
        if row["step"] <= self.last_step:
            return
        if self._file is None:
            new = not self._path.exists()
            # Every row goes to the operating system at once, so that it survives a kill of this process.
            self._file = open(self._path, "a", encoding="utf-8", newline="", buffering=1)  # noqa: SIM115
            if new:
                self._file.write(",".join(row) + "\n")
        self._file.write(",".join(_text(value) for value in row.values()) + "\n")
        self.last_step = int(row["step"])

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def read_records(path: Path) -> dict[str, NDArray[np.float64]]:
    """The columns of records.csv; empty where there is no file. Raises InputError where it is not one."""
    if not path.exists():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if None not in row.values()]
        names = list(rows[0]) if rows else []
        return {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}
    except (ValueError, csv.Error) as error:
        raise InputError(f"{path} is not a table of numbers ({error}); give the folder of a run.") from None


def _text(value: float) -> str:
    """Whole numbers without a point; a quantity that is not defined stays empty."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    return "" if value != value else repr(float(value))


def _mend(path: Path) -> int:
    """Cut off a row that a killed process left torn and return the last whole row's step, -1 where there is none."""
    if not path.exists():
        return -1
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with path.open("r+b") as file:
            file.truncate(whole)
    if whole == 0:
        path.unlink()
        return -1
    steps = read_records(path).get("step")
    return -1 if steps is None or not len(steps) else int(steps[-1])
