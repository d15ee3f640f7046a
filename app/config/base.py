"""The parts that every table of a configuration shares: strictness and the checked kinds of number and matrix."""

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class Table(BaseModel):
    """A frozen TOML table: unknown keys are refused and no value is turned into another type, except 1 into 1.0."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("it must be a finite number")
    return value


def _positive(value: float) -> float:
    if not value > 0:
        raise ValueError("it must be above 0")
    return value


def _numbers(value: Any) -> Any:
    if not isinstance(value, list) or not value or not all(is_number(entry) for entry in value):
        raise ValueError("it must be a non-empty list of finite numbers such as [0.1, 0.3, 0.4]")
    return [float(entry) for entry in value]


def _matrix(value: Any) -> Any:
    if value == "identity":
        return value
    if not isinstance(value, list) or not value or not all(_is_row(row) for row in value):
        raise ValueError('it must be "identity" or a matrix of finite numbers, row by row, such as [[1, 0], [0, 1]]')
    if len({len(row) for row in value}) != 1:
        raise ValueError("its rows must all have the same length")
    return [[float(entry) for entry in row] for row in value]


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(is_number(entry) for entry in value)


def is_number(value: Any) -> bool:
    """Whether a TOML value is a finite number that a float can hold (true and false are not numbers)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


Finite = Annotated[float, AfterValidator(_finite)]
Positive = Annotated[float, AfterValidator(_finite), AfterValidator(_positive)]
Vector = Annotated[list[float], BeforeValidator(_numbers)]
Matrix = Annotated[list[list[float]] | Literal["identity"], BeforeValidator(_matrix)]
