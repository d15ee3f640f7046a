"""solution.nc: the density at every finished save, whole at any moment.

A killed process must leave a file that opens. So a save is never appended to the file that readers see but to a spare
twin, forced to disk and exchanged with it; the twin then lags one save behind and catches up at the next. That costs
the writing of two saves a save, whatever their number. At the end `finish` writes the file once more in one piece, so
that its bytes do not depend on how often the run was interrupted. HDF5 does not survive a disk that fills up under it
(it crashes at exit), so space is reserved before it writes.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.durable import replace_whole, reserve, sync
from tokensphere.layout import Layout, file_image
from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]

OVERHEAD = 65536
"""Bytes that HDF5 may add for its own bookkeeping in one append."""


def append_save(path: Path, layout: Layout, index: int, time: float, density: Array) -> None:
    """Add save number `index` with its time and density (cells,) or (labels, cells); a save already there is kept."""
    spare = _spare(path)
    if not path.exists():
        image = file_image(layout, np.array([time]), density)
        replace_whole(path, lambda beside: _write(beside, image))
        return
    with _reading(path) as file:
        have = len(file["time"])
        if have > index:
            return
        missing = slice(saves_in(spare) if spare.exists() else have, None)
        times, densities = file["time"][missing], file["density"][missing]
    if not spare.exists():
        shutil.copyfile(path, spare)
    _append(spare, np.append(times, time), np.concatenate([densities, density[None]]))
    sync(spare)
    _exchange(path, spare)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def finish(path: Path, layout: Layout) -> None:
    """Write the file once more in one piece and remove the spare."""
    replace_whole(path, lambda beside: _rewrite(path, beside, layout))
    _spare(path).unlink(missing_ok=True)


def forget_spare(path: Path) -> None:
    """Drop a spare that a killed process may have left torn."""
    _spare(path).unlink(missing_ok=True)


def saves_in(path: Path) -> int:
    """Number of finished saves in the file; 0 where there is none."""
    if not path.exists():
        return 0
    with _reading(path) as file:
        return len(file["time"])


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """The open HDF5 file; raises InputError where it cannot be read."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError) as error:
        raise InputError(f"{path} is damaged and cannot be continued ({error}); start anew with --force.") from None


def read_solution(path: Path) -> Any:
    """The saves as an xarray.Dataset, loaded into memory."""
    import xarray

    try:
        with xarray.open_dataset(path, engine="h5netcdf", decode_times=False) as dataset:
            return dataset.load()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the folder of a run.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as netCDF ({error}); give the folder of a run.") from None


@dataclass(frozen=True, eq=False)
class Saves:
    """The plain arrays of a solution.nc.

    times (saves,); densities (saves, cells), or (saves, labels, cells) with label_points and label_weights (labels,).
    """

    times: Array
    densities: Array
    label_points: Array | None
    label_weights: Array | None


def read_saves(path: Path) -> Saves:
    """The saves without their metadata; spares the import of xarray, which takes longer than the reading.

    Raises InputError like read_solution.
    """
    import h5py

    try:
        with h5py.File(path, "r") as file:
            times, densities, *labels = (
                np.asarray(file[name][()], dtype=np.float64) if name in file else None
                for name in ("time", "density", "label", "label_weight")
            )
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the folder of a run.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read as netCDF ({error}); give the folder of a run.") from None
    if times is None or densities is None:
        raise InputError(f"{path} holds no time or no density; give the folder of a run.")
    return Saves(times, densities, *labels)


def _spare(path: Path) -> Path:
    return path.with_name(f".{path.stem}.spare{path.suffix}")


def _exchange(path: Path, spare: Path) -> None:
    old = spare.with_suffix(".old")
    old.unlink(missing_ok=True)
    try:
        os.link(path, old)
    except OSError:  # a file system without hard links: the next save copies the file anew
        os.replace(spare, path)
    else:
        os.replace(spare, path)
        os.replace(old, spare)
    sync(path.parent)


def _append(path: Path, times: Array, densities: Array) -> None:
    """Lengthen the unlimited dimension: time is its scale, and time and density are the variables along it."""
    import h5py

    reserve(path, densities.nbytes + OVERHEAD)
    with h5py.File(path, "r+") as file:
        have = len(file["time"])
        for name, values in (("time", times), ("density", densities)):
            file[name].resize(have + len(times), axis=0)
            file[name][have:] = values


def _rewrite(path: Path, target: Path, layout: Layout) -> None:
    """All saves in one piece, one of them in memory at a time."""
    import h5py

    with h5py.File(path, "r") as file:
        times, densities = file["time"][()], file["density"]
        _write(target, file_image(layout, times, densities[0]))
        reserve(target, densities.size * densities.dtype.itemsize + OVERHEAD)
        with h5py.File(target, "r+") as copy:
            for index in range(1, len(times)):
                copy["density"][index] = densities[index]
