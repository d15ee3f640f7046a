"""summary.json: what a run found, in numbers and verdicts."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokensphere.checkpoint import Checkpoint
from tokensphere.config import Config
from tokensphere.decay import fit_decay
from tokensphere.durable import replace_text
from tokensphere.folder import RunFolder
from tokensphere.layout import Layout
from tokensphere.meshes.errors import InputError
from tokensphere.pde.attention import Attention
from tokensphere.records import read_records
from tokensphere.task import Task

Array = NDArray[np.float64]
Records = Mapping[str, Array]


def layout_of(task: Task, checkpoint: Checkpoint) -> Layout:
    """What solution.nc says about itself: enough to run it again."""
    attributes = {
        "title": "mean-field transformer density",
        "source": f"tokensphere {checkpoint.origin['versions'].get('tokensphere')}",
        "configuration": checkpoint.configuration,
        "origin": json.dumps(checkpoint.origin, sort_keys=True),
    }
    labels = None if task.labels is None else (task.labels.points, task.labels.weights)
    return Layout(task.mesh.kind, task.mesh.resolution, labels, attributes)


def write_summary(
    task: Task,
    folder: RunFolder,
    config: Config,
    checkpoint: Checkpoint,
    seconds: Mapping[str, float],
    compressions: Mapping[int, float] | None = None,
) -> None:
    """Write summary.json: its presence says that the march is over and its outputs are complete.

    compressions: sup div v of those saves at which this march has passed, by their number.
    """
    from tokensphere.joint_facts import joint_facts
    from tokensphere.refining import refined_numbers
    from tokensphere.theorem_facts import theorem_facts

    records = read_records(folder.records)
    limit = limit_facts(task.attention, records, config.solver.metric)
    checked = hypotheses(task, config)
    document = {
        "status": "finished",
        "configuration": config.model_dump(exclude_none=True),
        "configuration_sha256": hashlib.sha256(checkpoint.configuration.encode()).hexdigest(),
        "origin": checkpoint.origin,
        "seed": config.initial.seed,
        "threads": checkpoint.origin["threads"],
        "resumed": checkpoint.resumed,
        "run": _run_facts(checkpoint, records),
        "limit": limit,
        "hypotheses": checked,
        "theorem": theorem_facts(task, folder, records, checked, config.solver.metric, compressions),
        "joint": joint_facts(task, folder),
        "fits": _fits(records),
        "refined": refined_numbers(config) if config.output.refine else None,
        # "march" is the whole loop, over all resumptions; the parts are those of the last one.
        "timings": {**seconds, "march": checkpoint.seconds},
    }
    replace_text(folder.summary, to_json(document))


def to_json(document: Any) -> str:
    """JSON text of plain data, arrays and dataclasses; what JSON has no word for (NaN, infinities) becomes null."""
    from tokensphere.validation.plain import plain

    return json.dumps(plain(document, finite=True), indent=2, ensure_ascii=False) + "\n"


def limit_facts(attention: Attention | None, records: Records, metric: str) -> dict[str, Any]:
    """The predicted limit Π♯ρ0 and how far the run ended from it, or the reason why there is none."""
    from tokensphere.validation.projection import Projection

    if attention is None:
        return {"defined": False, "reason": "a joint law has no limit Π♯ρ0"}
    try:
        projection = Projection(attention)
    except InputError as error:
        return {"defined": False, "reason": str(error)}
    if projection.gap == 0:
        return {"defined": False, "reason": "the spectral gap of VBᵀ is 0, so nothing is selected"}
    return {
        "defined": True,
        "metric": metric,
        "gap": projection.gap,
        "multiplicity": projection.multiplicity,
        "basis": projection.basis,
        "w2_to_limit": _last(records, "w2_to_limit"),
        "w2_least": _least(records, "w2_to_limit"),
        "w2_floor": _last(records, "w2_floor"),
    }


def hypotheses(task: Task, config: Config) -> list[Any]:
    """H1 to H3 for a density under an attention head; none for a joint law."""
    if task.attention is None:
        return []
    from tokensphere.checking import judge

    return list(judge(config, task.mesh, task.attention, task.density))


def _run_facts(checkpoint: Checkpoint, records: Records) -> dict[str, Any]:
    state = checkpoint.state
    return {
        "time": state.time,
        "steps": state.step,
        "transport_steps": state.substeps,
        "field_evaluations": state.evaluations,
        "rejected_steps": state.rejected,
        "saves": len(checkpoint.plan),
        "mass_defect": float(np.max(np.abs(records["mass"] - records["mass"][0]))) if "mass" in records else None,
        "density_min": _least(records, "density_min"),
    }


def _fits(records: Records) -> dict[str, Any]:
    if "w2_to_limit" not in records or not np.isfinite(records["w2_to_limit"]).any():
        return {}
    fit = fit_decay(records["time"], records["w2_to_limit"], records.get("w2_floor", 0.0))
    return {"w2_decay": None if fit is None else asdict(fit)}


def _last(records: Records, name: str) -> float | None:
    return float(records[name][-1]) if name in records and len(records[name]) else None


def _least(records: Records, name: str) -> float | None:
    return float(np.nanmin(records[name])) if name in records and np.isfinite(records[name]).any() else None
