"""A solution as an xarray.Dataset with the names, coordinates and attributes of solution.nc."""

from typing import Any

import numpy as np

from tokensphere.meshes.mesh import Floats, Mesh


def dataset(mesh: Mesh, times: Floats, densities: Floats, labels: Any = None) -> Any:
    """density (time, cell) or (time, label, cell) as an xarray.Dataset.

    On the sphere it carries the CF-1.13 grid mapping of HEALPix in nested order, on the circle the angle of each cell.
    labels, of a joint law, has points and weights (labels,).
    """
    import xarray

    joint = labels is not None
    cells = np.arange(mesh.cells, dtype=np.int64)
    per = "sr" if mesh.dimension == 3 else "rad"
    long = "steradian" if mesh.dimension == 3 else "radian"
    coordinates: dict[str, Any] = {
        "time": ("time", times, {"long_name": "time of the equation", "units": "1"}),
        "cell": ("cell", cells, {"standard_name": "healpix_index", "units": "1"} if mesh.dimension == 3 else {}),
    }
    if mesh.dimension == 3:
        mapping = {
            "grid_mapping_name": "healpix",
            "indexing_scheme": "nested",
            "refinement_level": mesh.resolution.bit_length() - 1,
        }
        coordinates["healpix"] = ((), np.int32(0), mapping)
    else:
        angle = (2 * np.pi / mesh.cells) * (cells + 0.5)
        coordinates["angle"] = ("cell", angle, {"long_name": "angle of the cell's middle", "units": "radian"})
    if joint:
        coordinates["label"] = ("label", labels.points, {"long_name": "label", "units": "1"})
        coordinates["label_weight"] = ("label", labels.weights, {"long_name": "mass of the label, summing to 1"})
    attributes = {"long_name": f"density per {long}", "units": f"{per}-1", "cell_methods": "cell: mean"}
    if mesh.dimension == 3:
        attributes["grid_mapping"] = "healpix"
    names = ("time", "label", "cell") if joint else ("time", "cell")
    return xarray.Dataset({"density": (names, densities, attributes)}, coordinates, {"Conventions": "CF-1.13"})
