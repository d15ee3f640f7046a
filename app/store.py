"""solution.nc: the density at every finished save, whole at any moment, in netCDF4 with CF-1.13 HEALPix grid mapping.

A killed process must leave a file that opens. So a save is never appended to the file that readers see but to a spare
twin, forced to disk and exchanged with it; the twin then lags one save behind and catches up at the next. That costs
two appends a save whatever the number of saves. At the end `finish` writes the file once more in one piece, so that
its bytes do not depend on how often the run was interrupted.
"""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.durable import replace_whole, sync
from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layout:
    """What solution.nc says about itself besides time and density.

    kind: "healpix" or "circle". resolution: nside or cells. labels: points (labels,) and weights (labels,) of a joint
    law, or None. attributes: global attributes (configuration, origin, …) as texts.
    """

    kind: str
    resolution: int
    labels: tuple[Array, Array] | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return 12 * self.resolution**2 if self.kind == "healpix" else self.resolution


def append_save(path: Path, layout: Layout, index: int, time: float, density: Array) -> None:
    """Add save number `index` with its time and density (cells,) or (labels, cells); a save already there is kept."""
    spare = _spare(path)
    if not path.exists():
        replace_whole(path, lambda beside: _create(beside, layout, [time], density[None]))
        return
    if saves_in(path) > index:
        return
    if not spare.exists():
        shutil.copyfile(path, spare)
    _catch_up(spare, path)
    _append(spare, np.array([time]), density[None])
    sync(spare)
    _exchange(path, spare)


def finish(path: Path, layout: Layout) -> None:
    """Write the file once more in one piece and remove the spare."""
    replace_whole(path, lambda beside: _rewrite(path, beside, layout))
    _spare(path).unlink(missing_ok=True)


def forget_spare(path: Path) -> None:
    """Drop a spare that a killed process may have left torn."""
    _spare(path).unlink(missing_ok=True)


def saves_in(path: Path) -> int:
    """Number of finished saves in the file; 0 where there is none."""
    import h5py

    if not path.exists():
        return 0
    try:
        with h5py.File(path, "r") as file:
            return int(file["time"].shape[0])
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


def _catch_up(spare: Path, path: Path) -> None:
    import h5py

    have = saves_in(spare)
    with h5py.File(path, "r") as file:
        times, densities = file["time"][have:], file["density"][have:]
    if len(times):
        _append(spare, times, densities)


def _append(path: Path, times: Array, densities: Array) -> None:
    import h5netcdf

    with h5netcdf.File(path, "r+") as file:
        have = file.dimensions["time"].size
        file.resize_dimension("time", have + len(times))
        file.variables["time"][have:] = times
        file.variables["density"][have:] = densities


def _rewrite(path: Path, target: Path, layout: Layout) -> None:
    import h5py

    with h5py.File(path, "r") as file:
        times, densities = file["time"], file["density"]
        _create(target, layout, times[:1], densities[:1], list(times[:]))
        with h5py.File(target, "r+") as copy:
            for index in range(1, len(times)):  # one save at a time: memory stays that of one save
                copy["density"][index] = densities[index]


def _create(path: Path, layout: Layout, times: Any, densities: Array, all_times: list[float] | None = None) -> None:
    """A new file with the first densities; `all_times` reserves room for more of them."""
    import h5netcdf

    room = list(times) if all_times is None else all_times
    joint = layout.labels is not None
    names = ("time", "label", "cell") if joint else ("time", "cell")
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"time": None, "cell": layout.cells}
        file.attrs.update({"Conventions": "CF-1.13", **layout.attributes})
        file.resize_dimension("time", len(room))
        _variable(
            file,
            "time",
            ("time",),
            np.asarray(room, dtype=np.float64),
            {"long_name": "time of the equation", "units": "1"},
        )
        if layout.labels is not None:
            file.dimensions["label"] = len(layout.labels[0])
            _variable(file, "label", ("label",), layout.labels[0], {"long_name": "label", "units": "1"})
            _variable(
                file,
                "label_weight",
                ("label",),
                layout.labels[1],
                {"long_name": "mass of the label, summing to 1", "units": "1"},
            )
        attributes = _grid(file, layout)
        if joint:
            attributes["coordinates"] = " ".join(["label_weight", attributes.get("coordinates", "")]).strip()
            attributes["comment"] = "conditional densities: every slice integrates to 1 over the sphere"
        density = file.create_variable("density", names, "f8", chunks=(1, *densities.shape[1:]))
        density[: len(densities)] = densities
        density.attrs.update(attributes)


def _grid(file: Any, layout: Layout) -> dict[str, str]:
    """Write the grid; returns the attributes that tie the density to it."""
    index = np.arange(layout.cells, dtype=np.int64)
    if layout.kind == "circle":
        _variable(file, "cell", ("cell",), index, {"long_name": "cell of the circle", "units": "1"})
        _variable(
            file,
            "angle",
            ("cell",),
            (2 * np.pi / layout.cells) * (index + 0.5),
            {"long_name": "angle of the cell's middle", "units": "radian"},
        )
        return {
            "long_name": "density per radian",
            "units": "rad-1",
            "coordinates": "angle",
            "cell_methods": "cell: mean",
        }
    _variable(file, "cell", ("cell",), index, {"standard_name": "healpix_index", "units": "1"})
    mapping = file.create_variable("healpix", (), "i4", data=np.int32(0))
    mapping.attrs.update(
        {
            "grid_mapping_name": "healpix",
            "indexing_scheme": "nested",
            "refinement_level": np.int32(layout.resolution.bit_length() - 1),
        }
    )
    return {
        "long_name": "density per steradian",
        "units": "sr-1",
        "grid_mapping": "healpix",
        "cell_methods": "cell: mean",
    }


def _variable(file: Any, name: str, dimensions: tuple[str, ...], values: Any, attributes: dict[str, Any]) -> None:
    variable = file.create_variable(name, dimensions, values.dtype, data=values)
    variable.attrs.update(attributes)
