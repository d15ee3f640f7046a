"""Trajectories of particle codes: one array layout, refused with the row that breaks it.

    particles.npz: positions (times, n, d) or (n, d), times (times,) or a number, optional weights (n,), labels (n,)
    particles.npy: positions alone; the times come from the caller

Arrays (n, d, times), as other codes write them, are recognised where no other reading is possible.
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tokensphere.meshes.errors import InputError
from tokensphere.meshes.labels import Labels
from tokensphere.validation.particles import UNIT, checked_weights

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LABEL = 1e-6
"""A label of a token must be this close to a label of the run."""

MASS = 1e-6
"""Weights written in single precision still sum to 1 within this; they are rescaled."""


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Tokens of a particle code: times (times,), positions (times, n, d), weights (n,) of sum 1, labels (n,) or None.

    The positions are as the code wrote them: only the first frame is known to lie on the sphere.
    """

    times: Array
    positions: Array
    weights: Array
    labels: Array | None = None

    @property
    def tokens(self) -> int:
        """n."""
        return int(self.positions.shape[1])

    @property
    def effective_tokens(self) -> float:
        """1/Σw²: the equal tokens that carry as much sampling noise."""
        return float(1.0 / np.sum(self.weights**2))

    def sphere_defect(self) -> Array:
        """max_i ||x_i| − 1| at every time."""
        return np.asarray(np.abs(np.linalg.norm(self.positions, axis=-1) - 1.0).max(axis=1))


def load_trajectories(path: str | Path, dimension: int, times: ArrayLike | None = None) -> Trajectories:
    """Read a particle file of tokens in R^dimension; `times` are needed where the file has none.

    Raises InputError for a file that is missing or no numpy file, and as `trajectories`.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            loaded = np.load(stream, allow_pickle=False)
            archive = isinstance(loaded, np.lib.npyio.NpzFile)
            content: dict[str, Any] = dict(loaded) if archive else {"positions": loaded}
    except FileNotFoundError:
        raise InputError(f"there is no particle file {file}; give a .npz with positions and times.") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{file.name} is not a .npz or .npy file of plain numbers; save it with numpy.savez(file, positions=…, "
            "times=…)."
        ) from None
    if "positions" not in content:
        found = ", ".join(sorted(content)) or "nothing"
        raise InputError(
            f"{file.name} holds {found}, but the array positions (times, n, d) is missing; save it with "
            "numpy.savez(file, positions=…, times=…)."
        )
    given = content.get("times", times)
    return trajectories(content["positions"], given, dimension, content.get("weights"), content.get("labels"))


def trajectories(
    positions: ArrayLike,
    times: ArrayLike | None,
    dimension: int,
    weights: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Trajectories:
    """Checked trajectories from plain arrays.

    Raises InputError, naming the row, for NaN or infinities, a shape that is not (times, n, d), times that are missing
    or do not increase, weights without mass 1, labels of another length, and a first frame off the sphere by more than
    UNIT.
    """
    array = _numbers(positions, "positions")
    if times is None:
        raise InputError(
            f"the particle file has positions of shape {array.shape} but no times; add the array times, one "
            "number per frame."
        )
    instants = np.atleast_1d(_numbers(times, "times"))
    frames = _oriented(array, instants, dimension)
    _check_times(instants, len(frames))
    _check_frames(frames, instants)
    checked = _law(weights, frames.shape[1])
    marks = None if labels is None else _numbers(labels, "labels")
    if marks is not None and marks.shape != (frames.shape[1],):
        raise InputError(f"the labels have shape {marks.shape}, but {frames.shape[1]} tokens need one label each.")
    if marks is not None and not np.isfinite(marks).all():
        raise InputError(
            f"the label of token {int(np.argmin(np.isfinite(marks)))} is not finite; give every token one."
        )
    return Trajectories(instants, frames, checked, marks)


def label_indices(labels: Labels, marks: Array) -> Indices:
    """Index of the run's label nearest to each token's label, on the circle modulo 2π.

    Raises InputError naming the first token whose label the run does not have.
    """
    difference = np.abs(marks[:, None] - labels.points)
    if labels.kind == "circle":
        difference = np.minimum(difference % (2 * np.pi), -difference % (2 * np.pi))
    nearest = np.argmin(difference, axis=1)
    far = difference[np.arange(len(marks)), nearest] > LABEL
    if far.any():
        row = int(np.argmax(far))
        raise InputError(
            f"token {row} has the label {marks[row]:.9g}, which is none of the run's {labels.count} labels; "
            "give the tokens labels of the run."
        )
    return np.asarray(nearest, dtype=np.int64)


def _numbers(values: ArrayLike, name: str) -> Array:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiu":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the {name} of the particle file are not real numbers; save them as a float array.") from None


def _oriented(array: Array, times: Array, dimension: int) -> Array:
    """(times, n, d) from any of the layouts known; the number of times and the unit length of tokens decide."""
    if array.ndim == 2 and array.shape[1] == dimension and len(times) == 1:
        return array[None]
    layouts = []
    if array.ndim == 3:
        if array.shape[2] == dimension and array.shape[0] == len(times):
            layouts.append(array)
        if array.shape[1] == dimension and array.shape[2] == len(times):
            layouts.append(array.transpose(2, 0, 1))
    if len(layouts) == 2:
        unit = [bool((np.abs(np.linalg.norm(frames[0], axis=-1) - 1.0) <= UNIT).all()) for frames in layouts]
        layouts = [frames for frames, fits in zip(layouts, unit, strict=True) if fits] or layouts
    if len(layouts) != 1 or layouts[0].shape[1] == 0:
        why = "can be read in two ways" if len(layouts) == 2 else "do not fit"
        raise InputError(
            f"positions of shape {array.shape} with {len(times)} times {why}; give (times, n, {dimension}) "
            f"with one time per frame, or (n, {dimension}) with one time."
        )
    return layouts[0]


def _check_times(times: Array, frames: int) -> None:
    if times.shape != (frames,):
        raise InputError(f"times has shape {times.shape}, but there are {frames} frames; give one time per frame.")
    good = np.isfinite(times) & np.concatenate([[True], np.diff(times) > 0])
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"times[{row}] is {times[row]}, but times must be finite and increase; sort the frames.")


def _check_frames(frames: Array, times: Array) -> None:
    good = np.isfinite(frames).all(axis=-1)
    if not good.all():
        frame, row = (int(index) for index in np.argwhere(~good)[0])
        raise InputError(
            f"token {row} in frame {frame} (time {times[frame]:g}) is not finite; every position must be a "
            "finite vector."
        )
    lengths = np.linalg.norm(frames[0], axis=-1)
    off = np.abs(lengths - 1.0) > UNIT
    if off.any():
        row = int(np.argmax(off))
        raise InputError(
            f"token {row} of the first frame has length {lengths[row]:.9g}, but the tokens must start on the "
            f"unit sphere to {UNIT:g}; normalise the first frame."
        )


def _law(weights: ArrayLike | None, count: int) -> Array:
    if weights is None:
        return checked_weights(None, count)
    masses = _numbers(weights, "weights")
    total = float(masses.sum()) if masses.shape == (count,) and np.isfinite(masses).all() else 1.0
    return checked_weights(masses / total if abs(total - 1.0) <= MASS else masses, count)
