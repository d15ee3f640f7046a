"""The netCDF4 layout of solution.nc: dimensions, coordinates and the CF-1.13 HEALPix grid mapping."""

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def file_image(layout: Layout, times: Array, first: Array) -> bytes:
    """The bytes of a file with room for all `times` and the density of the first, (cells,) or (labels, cells)."""
    import h5netcdf

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.dimensions = {"time": None, "cell": layout.cells}
        file.attrs.update({"Conventions": "CF-1.13", **layout.attributes})
        file.resize_dimension("time", len(times))
        _variable(file, "time", ("time",), times, long_name="time of the equation", units="1")
        attributes = _grid(file, layout)
        if layout.labels is not None:
            attributes |= _labels(file, layout.labels, attributes.get("coordinates", ""))
        names = ("time", "cell") if layout.labels is None else ("time", "label", "cell")
        density = file.create_variable("density", names, "f8", chunks=(1, *first.shape))
        density[:1] = first[None]
        density.attrs.update(attributes)
    return buffer.getvalue()


def _labels(file: Any, labels: tuple[Array, Array], coordinates: str) -> dict[str, str]:
    """Write the labels; returns the attributes that tie the density to them."""
    points, weights = labels
    file.dimensions["label"] = len(points)
    _variable(file, "label", ("label",), points, long_name="label", units="1")
    _variable(file, "label_weight", ("label",), weights, long_name="mass of the label, summing to 1", units="1")
    return {
        "coordinates": f"label_weight {coordinates}".strip(),
        "comment": "conditional densities: every slice integrates to 1 over the sphere",
    }


def _grid(file: Any, layout: Layout) -> dict[str, str]:
    """Write the grid; returns the attributes that tie the density to it."""
    index = np.arange(layout.cells, dtype=np.int64)
    meaning = {"cell_methods": "cell: mean"}
    if layout.kind == "circle":
        _variable(file, "cell", ("cell",), index, long_name="cell of the circle", units="1")
        angles = (2 * np.pi / layout.cells) * (index + 0.5)
        _variable(file, "angle", ("cell",), angles, long_name="angle of the cell's middle", units="radian")
        return {**meaning, "long_name": "density per radian", "units": "rad-1", "coordinates": "angle"}
    _variable(file, "cell", ("cell",), index, standard_name="healpix_index", units="1")
    mapping = file.create_variable("healpix", (), "i4", data=np.int32(0))
    mapping.attrs["grid_mapping_name"] = "healpix"
    mapping.attrs["indexing_scheme"] = "nested"
    mapping.attrs["refinement_level"] = np.int32(layout.resolution.bit_length() - 1)
    return {**meaning, "long_name": "density per steradian", "units": "sr-1", "grid_mapping": "healpix"}


def _variable(file: Any, name: str, dimensions: tuple[str, ...], values: Any, **attributes: str) -> None:
    variable = file.create_variable(name, dimensions, values.dtype, data=values)
    variable.attrs.update(attributes)
