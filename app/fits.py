"""HEALPix maps in FITS and .npy files, in and out, in both orders; inside tokensphere maps are always nested."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

import tokensphere
from tokensphere.durable import replace_whole
from tokensphere.meshes.errors import InputError
from tokensphere.meshes.rings import check_order, from_nested, to_nested

Array = NDArray[np.float64]


def write_map(path: str | Path, values: ArrayLike, order: str = "ring") -> None:
    """Write a nested map (cells,) to a FITS file whose header names the order; healpy reads it in either one.

    Raises InputError for an unknown order or a length that is not 12·nside².
    """
    import healpy

    target, density = Path(path), np.asarray(values, dtype=np.float64)
    nside = _nside(density, "the map")
    check_order(order)
    ordered = from_nested(density, nside, order)
    replace_whole(
        target,
        lambda beside: healpy.write_map(
            str(beside),
            ordered,
            nest=order == "nested",
            dtype=np.float64,
            overwrite=True,
            column_names=["DENSITY"],
            extra_header=[("CREATOR", f"tokensphere {tokensphere.__version__}")],
        ),
    )


def read_map(path: str | Path, order: str | None = None) -> Array:
    """The map of a FITS or .npy file in nested order.

    A FITS header names its own order, which `order` may only confirm; an .npy file has none, so it must be given.
    Raises InputError for a file that holds no HEALPix map or an order that is unknown, missing or contradicted.
    """
    source = Path(path)
    if order is not None:
        check_order(order)
    if not source.is_file():
        raise InputError(f"{source} does not exist; give a HEALPix map in a FITS or .npy file.")
    return _from_numpy(source, order) if source.suffix == ".npy" else _from_fits(source, order)


def _from_numpy(path: Path, order: str | None) -> Array:
    try:
        values = np.asarray(np.load(path, allow_pickle=False), dtype=np.float64)
    except (OSError, ValueError, EOFError, TypeError) as error:
        raise InputError(f"{path} cannot be read as an array ({' '.join(str(error).split())[:80]}).") from None
    if order is None:
        raise InputError(f'{path} does not say in which order its pixels are; set order = "ring" or "nested".')
    nside = _nside(values, str(path))
    return to_nested(values, nside, order)


def _from_fits(path: Path, order: str | None) -> Array:
    import healpy

    try:
        values, header = healpy.read_map(str(path), nest=None, h=True, dtype=np.float64)
    except Exception as error:  # astropy and healpy raise whatever they stumble over in a foreign file
        raise InputError(
            f"{path} cannot be read as a HEALPix FITS map "
            f"({' '.join(str(error).split())[:80] or type(error).__name__})."
        ) from None
    ordering = str(dict(header).get("ORDERING", "")).strip().upper()
    found = {"RING": "ring", "NESTED": "nested", "NEST": "nested"}.get(ordering)
    if found is None:
        raise InputError(
            f"{path} has the ordering {ordering or 'none'} in its header, but a map is in RING or NESTED order."
        )
    if order is not None and order != found:
        raise InputError(f'order = "{order}" was given, but the header of {path} says "{found}"; leave order out.')
    values = np.asarray(values, dtype=np.float64)
    return to_nested(values, _nside(values, str(path)), found)


def _nside(values: Array, name: str) -> int:
    nside = round(float(np.sqrt(values.size / 12))) if values.ndim == 1 else 0
    if nside < 1 or 12 * nside**2 != values.size:
        raise InputError(f"{name} has shape {values.shape}, but a HEALPix map has 12·nside² values.")
    return nside
