"""A sweep from its configuration to its folder: only what is missing is run, then everything is collected."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensphere.config.reading import apply_settings, read
from tokensphere.config.tables import SweepTable
from tokensphere.config.writing import toml
from tokensphere.durable import replace_text
from tokensphere.folder import RunFolder
from tokensphere.meshes.errors import InputError
from tokensphere.origin import origin
from tokensphere.sweep.cluster import Result, is_finished, run_members
from tokensphere.sweep.collection import collect, write_collection
from tokensphere.sweep.members import Member, expand, parse_over

Listener = Callable[[int, int, Result | None], None]


@dataclass(frozen=True)
class Outcome:
    """How a sweep ended: "finished" (failed members are listed) or "interrupted"."""

    status: str
    folder: Path
    members: int
    computed: int
    failed: list[Result]
    seconds: float


def sweep(
    path: Path,
    over: list[str],
    out: Path,
    *,
    settings: list[str] | None = None,
    zipped: bool = False,
    workers: int | None = None,
    threads: int | None = None,
    scheduler: str | None = None,
    listener: Listener = lambda done, total, result: None,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Run the members of a sweep that `out` does not hold yet and collect all of them into out/sweep.nc.

    Lists come from `over` and, where it does not name the key, from the configuration's own table [sweep]. Members draw
    no figures unless its [output] asks for them. `listener` hears the members done, their total and the last result.

    Raises InputError, before anything is run, for whatever is wrong with the configuration of any member.
    """
    began = time.perf_counter()
    raw = apply_settings(read(path), settings or [])
    table = _own_table(raw)
    lists = {**table.over, **parse_over(over)}
    zipped = zipped or table.zip
    members = expand(_without_figures(raw), lists, zipped, path.resolve().parent)
    _check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    root = out / "members"
    missing = [member for member in members if not is_finished(member, RunFolder(root / member.name))]
    table = table.model_copy(update={"over": lists, "zip": zipped})
    text = toml({**raw, "sweep": table.model_dump()})
    replace_text(out / "sweep.toml", text)
    done = len(members) - len(missing)
    listener(done, len(members), None)
    results: list[Result] = []

    def report(result: Result) -> None:
        results.append(result)
        listener(done + len(results), len(members), result)

    if missing:
        run_members(missing, root, workers=workers, threads=threads, scheduler=scheduler, report=report, stop=stop)
    interrupted = len(results) < len(missing)
    if missing or not (out / "sweep.nc").exists():
        _collect(members, root, out, table, text)
    failed = [result for result in results if result.status == "failed"]
    return Outcome(
        "interrupted" if interrupted else "finished",
        out,
        len(members),
        len(results) - len(failed),
        failed,
        time.perf_counter() - began,
    )


def _without_figures(raw: dict[str, Any]) -> dict[str, Any]:
    """Members draw nothing unless the configuration asks for it: `tokensphere report` draws those that matter."""
    output = raw.get("output", {})
    return {**raw, "output": {"figures": False, **output}} if isinstance(output, dict) else raw


def _own_table(raw: dict[str, Any]) -> SweepTable:
    from pydantic import ValidationError

    from tokensphere.config.complaints import complain

    try:
        return SweepTable.model_validate(raw.get("sweep", {}))
    except ValidationError as error:
        raise InputError(complain(error, raw, "sweep")) from None


def _check_folder(out: Path) -> None:
    try:
        if out.is_dir() and any(out.iterdir()) and not (out / "sweep.toml").exists():
            raise InputError(f"{out} holds files but no sweep; choose another --out.")
        if out.exists() and not out.is_dir():
            raise InputError(f"{out} is a file; choose another --out.")
    except OSError as error:
        raise InputError(f"{out} cannot be a sweep folder ({error.strerror}); choose another --out.") from None


def _collect(members: list[Member], root: Path, out: Path, table: SweepTable, text: str) -> None:
    """sweep.nc, figures/*.png and theorem.json."""
    from tokensphere.summary import to_json
    from tokensphere.sweep.figures import draw_sweep
    from tokensphere.sweep.theorem import sweep_theorem
    from tokensphere.validation.phases import Thresholds

    record = origin(threads=0, seed=None)
    attributes = {
        "source": f"tokensphere {record['versions']['tokensphere']}",
        "origin": json.dumps({key: value for key, value in record.items() if key != "threads"}, sort_keys=True),
        "configuration": text,
    }
    thresholds = Thresholds(concentrated=table.concentrated, inside=table.inside, outside=table.outside)
    dataset = collect(members, root, table.zip, thresholds, attributes)
    write_collection(dataset, out / "sweep.nc")
    draw_sweep(dataset, out / "figures")
    replace_text(out / "theorem.json", to_json(sweep_theorem(members, root)))
