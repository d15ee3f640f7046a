"""Named failures of a march: each says when, where, how fast, and what is still safe.

A march raises them with what it knows (time, step, cell and its centre, local Courant number); whoever owns the
run's files adds the path of the last good checkpoint with `with_checkpoint` before the sentence reaches a user.
"""

import math
from collections.abc import Sequence
from typing import Any, Self

from tokensphere.meshes.errors import InputError


def longitude_latitude(center: Sequence[float]) -> tuple[float, float | None]:
    """Longitude in [0, 360) and latitude in degrees of a unit vector; on the circle the angle and None."""
    longitude = math.degrees(math.atan2(center[1], center[0])) % 360.0
    if len(center) == 2:
        return longitude, None
    return longitude, math.degrees(math.asin(max(-1.0, min(1.0, center[2]))))


class NumericalError(RuntimeError):
    """A guard of the march has fired; the last good state is untouched.

    Attributes: `what` (one clause), `time`, `step` (the step that failed), `cell` and its `center` (d,) where one cell
    is to blame, `courant` (dt · outflow / area there), `checkpoint` (path of the last good checkpoint).
    """

    def __init__(
        self,
        what: str,
        *,
        time: float = math.nan,
        step: int = -1,
        cell: int | None = None,
        center: Sequence[float] | None = None,
        courant: float | None = None,
        checkpoint: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.time = float(time)
        self.step = int(step)
        self.cell = None if cell is None else int(cell)
        self.center = None if center is None else tuple(float(c) for c in center)
        self.courant = None if courant is None else float(courant)
        self.checkpoint = checkpoint

    @property
    def longitude(self) -> float | None:
        """Longitude of the cell in degrees (on the circle its angle), None where no cell is to blame."""
        return None if self.center is None else longitude_latitude(self.center)[0]

    @property
    def latitude(self) -> float | None:
        """Latitude of the cell in degrees, None on the circle or where no cell is to blame."""
        return None if self.center is None else longitude_latitude(self.center)[1]

    def with_checkpoint(self, path: str | None) -> Self:
        """The same failure, naming the last good checkpoint."""
        self.checkpoint = path
        return self

    def facts(self) -> dict[str, Any]:
        """When and where it happened, by name; None for what is not known."""
        names = ("time", "step", "cell", "longitude", "latitude", "courant", "checkpoint")
        return {"kind": type(self).__name__, **{name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        parts = [f"{self.what} at time {self.time:.10g}, step {self.step}"]
        if self.cell is not None:
            parts.append(f"cell {self.cell}")
        if self.longitude is not None:
            parts.append(f"longitude {self.longitude:.4f}°")
        if self.latitude is not None:
            parts.append(f"latitude {self.latitude:.4f}°")
        if self.courant is not None:
            parts.append(f"local Courant number {self.courant:.3g}")
        sentence = ", ".join(parts)
        return sentence if self.checkpoint is None else f"{sentence}; the last good checkpoint is {self.checkpoint}"

    def __reduce__(self) -> tuple[object, ...]:
        """Keyword-only arguments survive pickling, so that a failed sweep member can be reported."""
        return _rebuild, (type(self), self.what, {name: getattr(self, name) for name in _FIELDS})


_FIELDS = ("time", "step", "cell", "center", "courant", "checkpoint")


def _rebuild(kind: type[NumericalError], what: str, fields: dict[str, object]) -> NumericalError:
    return kind(what, **fields)  # type: ignore[arg-type]


class NonFiniteError(NumericalError):
    """A stage, velocity or attention integral holds a NaN or an infinity; the step was rejected."""


class MassDefectError(NumericalError):
    """The total mass has left its initial value by more than round-off allows."""


class NegativeDensityError(NumericalError):
    """A cell average is below zero, which the scheme excludes by proof: a fault in the code or in memory."""


class StalledStepError(NumericalError):
    """The step size has fallen below what can advance the time."""


class DiskFullError(NumericalError):
    """The run folder can take no more: what was on disk before is untouched."""


class PredictedMemoryError(InputError, MemoryError):
    """The run would need more memory than is available; raised before anything is allocated."""
