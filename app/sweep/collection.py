"""sweep.nc: one number or curve per member, with the parameters as coordinates."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.config.writing import value_text
from tokensphere.durable import replace_whole
from tokensphere.folder import RunFolder
from tokensphere.meshes.errors import InputError
from tokensphere.records import read_records
from tokensphere.store import read_solution
from tokensphere.sweep.members import Member
from tokensphere.validation.phases import Thresholds, distance_to_eigenspace, read_phases

Array = NDArray[np.float64]

MEANINGS = {
    "finished": "1 where the member is finished, else 0",
    "w2_final": "W2 to the predicted limit at the end",
    "w2_least": "least W2 to the predicted limit",
    "concentration_time": "first time at which the distance to E falls below the threshold",
    "plateau": "distance to E on the metastable plateau",
    "exit_time": "time at which the distance to E rises above the threshold again; inf if it does not",
    "mass_defect": "largest departure of the mass from its start",
    "density_min": "least density",
    "energy_final": "interaction energy at the end",
    "mean_length": "length of the mean vector at the end",
    "time_final": "time reached",
    "steps": "steps taken",
}


def collect(
    members: list[Member], root: Path, zipped: bool, thresholds: Thresholds, attributes: Mapping[str, str]
) -> Any:
    """An xarray.Dataset over the parameters (product) or over `member` (zipped), NaN where a member is missing.

    attributes: where it comes from. Besides one number per member it holds `time` and `w2` at the saves.
    """
    import xarray

    facts = [member_facts(RunFolder(root / member.name), thresholds) for member in members]
    keys = list(members[0].values)
    if zipped:
        dims: tuple[str, ...] = ("member",)
        shape: tuple[int, ...] = (len(members),)
        coordinates: dict[str, Any] = {
            key: ("member", _coordinate([member.values[key] for member in members])) for key in keys
        }
    else:
        axes = {
            key: list({value_text(member.values[key]): member.values[key] for member in members}.values())
            for key in keys
        }
        dims, shape = tuple(keys), tuple(len(values) for values in axes.values())
        coordinates = {key: _coordinate(values) for key, values in axes.items()}
    variables = {
        name: (dims, np.array([fact.get(name, math.nan) for fact in facts]).reshape(shape), {"long_name": meaning})
        for name, meaning in MEANINGS.items()
    }
    curves = _curves(facts, shape)
    variables |= {name: ((*dims, "save"), values, {"long_name": name}) for name, values in curves.items()}
    names = np.array([member.name for member in members]).reshape(shape)
    return xarray.Dataset(
        {**variables, "folder": (dims, names)},
        coords=coordinates,
        attrs={"title": "a sweep of mean-field transformer densities", "Conventions": "CF-1.13", **attributes},
    )


def write_collection(dataset: Any, path: Path) -> None:
    """Replace sweep.nc."""
    replace_whole(path, lambda beside: dataset.to_netcdf(beside, engine="h5netcdf"))


def member_facts(folder: RunFolder, thresholds: Thresholds) -> dict[str, Any]:
    """The numbers of one member; {"finished": 0.0} where it is not finished."""
    if not folder.summary.exists():
        return {"finished": 0.0}
    records = read_records(folder.records)
    facts: dict[str, Any] = {
        "finished": 1.0,
        "w2_final": _at(records, "w2_to_limit", -1),
        "w2_least": _least(records, "w2_to_limit"),
        "mass_defect": float(np.abs(records["mass"] - records["mass"][0]).max()),
        "density_min": _least(records, "density_min"),
        "energy_final": _at(records, "energy", -1),
        "mean_length": float(
            np.linalg.norm([_at(records, f"mean_{axis}", -1) for axis in "xyz" if f"mean_{axis}" in records])
        ),
        "time_final": _at(records, "time", -1),
        "steps": _at(records, "step", -1),
    }
    return facts | _phases(folder, thresholds) | _saved_curves(folder, records)


def _phases(folder: RunFolder, thresholds: Thresholds) -> dict[str, float]:
    """Phases read off the distance to E at the saves, where there is an E and enough saves."""
    import json

    from tokensphere.config.building import build_mesh
    from tokensphere.config.reading import load

    limit = json.loads(folder.summary.read_text(encoding="utf-8"))["limit"]
    if not limit["defined"]:
        return {}
    solution = read_solution(folder.solution)
    mesh = build_mesh(load(folder.configuration).mesh)
    distances = distance_to_eigenspace(mesh, solution.density.values, np.array(limit["basis"]))
    try:
        phases = read_phases(solution.time.values, distances, thresholds)
    except InputError:
        return {}
    return {name: float(getattr(phases, name)) for name in ("concentration_time", "plateau", "exit_time")}


def _saved_curves(folder: RunFolder, records: Mapping[str, Array]) -> dict[str, Array]:
    times = read_solution(folder.solution).time.values
    rows = np.searchsorted(records["time"], times)
    found = {"time": times}
    if "w2_to_limit" in records and (rows < len(records["time"])).all():
        found["w2"] = records["w2_to_limit"][rows]
    return found


def _curves(facts: list[dict[str, Any]], shape: tuple[int, ...]) -> dict[str, Array]:
    length = max((len(fact["time"]) for fact in facts if "time" in fact), default=0)
    curves = {}
    for name in ("time", "w2"):
        rows = np.full((len(facts), length), math.nan)
        for row, fact in zip(rows, facts, strict=True):
            values = fact.get(name, np.empty(0))
            row[: len(values)] = values
        curves[name] = rows.reshape(*shape, length)
    return curves if length else {}


def _coordinate(values: list[Any]) -> Any:
    """Numbers as numbers; matrices and words as texts."""
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    return (
        np.array(values, dtype=float)
        if numeric
        else np.array([value if isinstance(value, str) else value_text(value) for value in values])
    )


def _at(records: Mapping[str, Array], name: str, index: int) -> float:
    return float(records[name][index]) if name in records and len(records[name]) else math.nan


def _least(records: Mapping[str, Array], name: str) -> float:
    values = records.get(name, np.empty(0))
    return float(np.nanmin(values)) if np.isfinite(values).any() else math.nan
