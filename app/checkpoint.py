"""The state of a march on disk: everything that the next step depends on, so that going on is bitwise.

A checkpoint is one HDF5 file, written beside and renamed. Arrays are datasets with checksums, numbers and texts
attributes; dataclasses, mappings and tuples are groups. It also holds the resolved configuration, the plan of save
times and a digest of the initial density, which a resumed run compares with its own.
"""

import hashlib
import importlib
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.durable import replace_whole
from tokensphere.meshes.errors import InputError

FORMAT = 1


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A march's state with what identifies its run.

    state: the frozen State that `march` yielded. configuration: the resolved TOML text. plan: all save times of the
    run. initial: digest of the initial density. origin: versions, platform, threads, seed, commit. seconds: spent
    marching so far. resumed: how often the run was taken up again.
    """

    state: Any
    configuration: str
    plan: NDArray[np.float64]
    initial: str
    origin: dict[str, Any]
    seconds: float = 0.0
    resumed: int = 0


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint at `path`; the old one is whole until the new one is."""
    replace_whole(path, lambda beside: _write(beside, checkpoint))


def read_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`; raises InputError where the file is damaged or from another format."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format") != FORMAT:
                raise InputError(
                    f"{path} is a checkpoint of format {file.attrs.get('format')}, but this version reads "
                    f"format {FORMAT}; resume with the version that wrote it, or start anew with --force."
                )
            checkpoint = _unpack(file["checkpoint"])
    except (OSError, KeyError, ValueError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is damaged and cannot be resumed from ({_reason(error)}); solution.nc and records.csv "
            "are untouched: put an earlier copy back, or start anew with --force."
        ) from None
    if not isinstance(checkpoint, Checkpoint):
        raise InputError(f"{path} holds no run; start anew with --force.")
    return checkpoint


def digest(array: NDArray[np.float64]) -> str:
    """SHA-256 of an array's shape and bytes."""
    return hashlib.sha256(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) < 80 else text[:77] + "..."


def _write(path: Path, checkpoint: Checkpoint) -> None:
    """Made in memory and then written, because HDF5 does not survive a disk that fills up under it."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        file.attrs["format"] = FORMAT
        _pack(file, "checkpoint", checkpoint)
    path.write_bytes(buffer.getbuffer())


def _pack(group: Any, name: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        group.create_dataset(name, data=value).attrs["crc32"] = _crc32(value)
    elif isinstance(value, bool | int | float | str | None | np.generic):
        plain = value.item() if isinstance(value, np.generic) else value
        # Python writes a float as the shortest text that reads back as the same bits, NaN and infinities included.
        group.attrs[name] = json.dumps(plain)
    else:
        _pack_group(group.create_group(name, track_order=True), value)


def _pack_group(group: Any, value: Any) -> None:
    if is_dataclass(value):
        group.attrs["#class"] = f"{type(value).__module__}:{type(value).__qualname__}"
        members = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    elif isinstance(value, Mapping):
        group.attrs["#class"] = "dict"
        members = dict(value)
    elif isinstance(value, tuple | list):
        group.attrs["#class"] = type(value).__name__
        members = {str(index): entry for index, entry in enumerate(value)}
    else:
        raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")
    group.attrs["#names"] = json.dumps(list(members))
    for name, member in members.items():
        _pack(group, name, member)


def _unpack(group: Any) -> Any:
    members = {name: _member(group, name) for name in json.loads(group.attrs["#names"])}
    kind = group.attrs["#class"]
    if kind == "dict":
        return members
    if kind in ("tuple", "list"):
        return list(members.values()) if kind == "list" else tuple(members.values())
    module, _, name = kind.partition(":")
    if not module.startswith("tokensphere."):
        raise ValueError(f"it names the foreign class {kind}")
    return getattr(importlib.import_module(module), name)(**members)


def _member(group: Any, name: str) -> Any:
    if name in group.attrs:
        return json.loads(group.attrs[name])
    member = group[name]
    if "#class" in member.attrs:
        return _unpack(member)
    value = member[()]
    if "crc32" in member.attrs and member.attrs["crc32"] != _crc32(value):
        raise ValueError(f"{name} does not fit its checksum")
    return value


def _crc32(array: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(array).ravel().data)
