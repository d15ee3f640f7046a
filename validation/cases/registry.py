"""Whole-run scenarios with a known answer: what `tokensphere validate` runs and prints."""

from __future__ import annotations

import importlib
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter

import numpy as np

from tokensphere.meshes.errors import InputError

log = logging.getLogger(__name__)

LEVELS = ("quick", "full")


@dataclass(frozen=True)
class Row:
    """One measured number and what it must satisfy.

    error is what was measured, bound what it may be (or, for an order, must reach), order the observed order of
    convergence where one exists, holds the verdict. Rows are what `validate --json` prints.
    """

    case: str
    resolution: int | str | None
    error: float
    order: float | None
    bound: float
    holds: bool

    def as_dict(self) -> dict[str, object]:
        """The row as plain values, NaN and infinity as None, for JSON."""
        row = asdict(self)
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()
        }


CaseFunction = Callable[[], list[Row]]


@dataclass(frozen=True)
class Case:
    """A named scenario; "quick" ones run at every level, "full" ones only at level full."""

    name: str
    level: str
    run: CaseFunction
    summary: str


_REGISTRY: dict[str, Case] = {}


def case(name: str, level: str = "quick") -> Callable[[CaseFunction], CaseFunction]:
    """Decorator that registers a function returning rows. Raises InputError for a second case of the same name."""
    if level not in LEVELS:
        raise InputError(f"case level {level!r} is unknown; use 'quick' or 'full'.")

    def register(function: CaseFunction) -> CaseFunction:
        known = _REGISTRY.get(name)
        if known is not None and known.run.__qualname__ != function.__qualname__:
            raise InputError(f"a case named {name!r} exists already; choose another name.")
        _REGISTRY[name] = Case(name, level, function, (function.__doc__ or "").strip().split("\n")[0])
        return function

    return register


def cases(topics: Sequence[str]) -> dict[str, Case]:
    """All cases of the topics, modules of tokensphere.validation.cases, in the order of registration."""
    for topic in topics:
        importlib.import_module(f"tokensphere.validation.cases.{topic}")
    return dict(_REGISTRY)


def select(known: dict[str, Case], level: str, names: Sequence[str] | None) -> list[Case]:
    """Cases of a level, or those named (whatever their level). Raises InputError for an unknown level or name."""
    if level not in LEVELS:
        raise InputError(f"level {level!r} is unknown; use 'quick' or 'full'.")
    if names is None:
        return [each for each in known.values() if level == "full" or each.level == "quick"]
    for name in names:
        if name not in known:
            raise InputError(f"there is no case {name!r}; the cases are {', '.join(sorted(known))}.")
    return [known[name] for name in names]


def run(chosen: Sequence[Case], report: Callable[[Row], None] | None = None) -> list[Row]:
    """Rows of the cases, in order. A case that raises becomes a row that does not hold: the others still run."""
    rows: list[Row] = []
    for each in chosen:
        started = perf_counter()
        try:
            found = each.run()
        except Exception as failure:
            # One broken scenario must not hide the others; its row says that it failed.
            log.exception("case %s failed: %s", each.name, failure)
            found = [Row(each.name, "failed", math.nan, None, math.nan, False)]
        log.info("case %s: %.1f s", each.name, perf_counter() - started)
        for row in found:
            if report is not None:
                report(row)
        rows.extend(found)
    return rows


def fitted_order(resolutions: Sequence[float], errors: Sequence[float]) -> float:
    """Least-squares slope of −log(error) against log(resolution)."""
    slope = np.polynomial.polynomial.polyfit(np.log(resolutions), np.log(errors), 1)[1]
    return -float(slope)


def pair_orders(resolutions: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Order between neighbouring resolutions."""
    return [
        fitted_order([resolutions[i], resolutions[i + 1]], [errors[i], errors[i + 1]]) for i in range(len(errors) - 1)
    ]


def below(case_name: str, resolution: int | str | None, error: float, bound: float) -> Row:
    """A row that holds when error ≤ bound (a NaN never holds)."""
    return Row(case_name, resolution, float(error), None, float(bound), bool(error <= bound))


def order_row(case_name: str, resolutions: Sequence[int], errors: Sequence[float], least: float, pair: float) -> Row:
    """A row that holds when the fitted order reaches `least` and every neighbouring pair reaches `pair`.

    Its error is that of the finest resolution; bound is the least order.
    """
    order = fitted_order(resolutions, errors)
    holds = order >= least and all(each >= pair for each in pair_orders(resolutions, errors))
    return Row(case_name, f"{resolutions[0]}…{resolutions[-1]}", float(errors[-1]), order, least, bool(holds))
