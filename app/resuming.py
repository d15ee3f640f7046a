"""Going on with a run: whether it is still the same run, and the save times of the longer one."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.checkpoint import Checkpoint
from tokensphere.config.tables import Config
from tokensphere.config.writing import value_text
from tokensphere.meshes.errors import InputError

Array = NDArray[np.float64]

FREE = ("time", "output", "sweep")
"""Tables that do not shape the trajectory; of [time] only a later end is accepted."""


def check_same_run(folder: Path, checkpoint: Checkpoint, config: Config, initial: str) -> None:
    """Refuse, showing each difference, to go on with another mesh, attention, kernel, start or solver.

    initial: digest of the initial density; it stands for the file a start was read from. Raises InputError.
    """
    before, now = flat(tomllib.loads(checkpoint.configuration)), flat(config.model_dump(exclude_none=True))
    keys = [key for key in {**before, **now} if key.split(".")[0] not in FREE and key != "initial.path"]
    changed = [
        f"{key} was {_shown(before, key)} and is now {_shown(now, key)}"
        for key in keys
        if before.get(key) != now.get(key)
    ]
    if not changed and initial != checkpoint.initial:
        changed = ["the initial density is another one (its file has changed)"]
    changed += _changed_times(before, now)
    if changed:
        raise InputError(
            f"{folder} holds a run of another configuration: {'; '.join(changed)}; set it back, start anew with "
            "--force, or choose another --out."
        )


def extended_plan(plan: Array, config: Config) -> Array:
    """The save times of a run whose end may have been moved later: all that it had, then the new ones after them.

    The times up to the old end stay, so that every step up to there is the same whether or not the run is extended.
    """
    later = np.array([time for time in config.save_times if time > plan[-1]])
    return np.concatenate([plan, later])


def flat(tables: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Nested tables as {"attention.beta": …}."""
    found: dict[str, Any] = {}
    for key, value in tables.items():
        name = f"{path}.{key}" if path else key
        found.update(flat(value, name) if isinstance(value, dict) else {name: value})
    return found


def _changed_times(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    if now["time.end"] < before["time.end"]:
        return [f"time.end was {before['time.end']} and is now {now['time.end']}, but it may only grow"]
    if now["time.end"] == before["time.end"] and now["time.saves"] != before["time.saves"]:
        return [
            f"time.saves was {before['time.saves']} and is now {now['time.saves']}, but it may only change with a "
            "later time.end"
        ]
    return []


def _shown(tables: dict[str, Any], key: str) -> str:
    text = value_text(tables[key]) if key in tables else "absent"
    return text if len(text) <= 60 else text[:57] + "..."
