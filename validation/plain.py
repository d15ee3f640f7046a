"""Records as plain data: what JSON and tables are made of."""

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np


def plain(value: Any, *, finite: bool = False) -> Any:
    """Nested containers, dataclasses, arrays and numpy numbers as dicts, lists and Python numbers.

    A complex number becomes [real, imaginary]. With ``finite``, numbers that are not finite become None, for which JSON
    has a word.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {key: plain(entry, finite=finite) for key, entry in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): plain(entry, finite=finite) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), finite=finite)
    if isinstance(value, list | tuple):
        return [plain(entry, finite=finite) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item(), finite=finite)
    if isinstance(value, complex):
        return [plain(value.real, finite=finite), plain(value.imag, finite=finite)]
    if finite and isinstance(value, float) and not math.isfinite(value):
        return None
    return value
