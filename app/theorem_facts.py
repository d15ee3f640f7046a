"""The part of summary.json in which the theorem speaks of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.folder import RunFolder
from tokensphere.meshes.errors import InputError
from tokensphere.pde.errors import NumericalError
from tokensphere.store import read_saves
from tokensphere.task import Task

Array = NDArray[np.float64]


def theorem_facts(
    task: Task,
    folder: RunFolder,
    records: Mapping[str, Array],
    checked: Sequence[Any],
    metric: str = "chordal",
    known: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Bound, phases, regularity and terminal state of a finished run under an attention head; a reason for other runs.

    metric: of the recorded distance. known: sup div v at the saves where the march has just computed it; at the others
    the field is evaluated. A run whose saves cannot be judged keeps its summary: the reason stands where the
    facts would.
    """
    if task.attention is None:
        return {"reason": "the theorem is about a density under an attention head, not about a joint law"}
    from tokensphere.validation.assessment import assess_run

    solution = read_saves(folder.solution)
    distances = None
    if "w2_to_limit" in records:
        distances = (records["time"], records["w2_to_limit"], records["w2_floor"])
    try:
        compressions = _compressions(task, solution.densities, known or {})
        return assess_run(
            task.mesh,
            task.attention,
            solution.times,
            solution.densities,
            list(checked),
            distances,
            compressions,
            metric=metric,
        )
    except (InputError, NumericalError) as error:
        return {"reason": str(error)}


def _compressions(task: Task, densities: Array, known: Mapping[int, float]) -> Array:
    """sup div v at the saves (saves,)."""
    from tokensphere.validation.lipschitz import largest_compression

    return np.array(
        [
            known[k] if k in known else largest_compression(task.mesh, task.flow.field(density).speeds)
            for k, density in enumerate(densities)
        ]
    )
