"""Validation cases by topic: each module registers whole-run scenarios with a known answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tokensphere.validation.cases.registry import Case, Row, cases, run, select

TOPICS: tuple[str, ...] = (
    "transport",
    "fields",
    "integral",
    "theorem",
    "terminal",
    "joint",
    "joint_maximisers",
    "survival",
    "particles",
)
"""Modules of this package that register cases; add yours here."""


def all_cases() -> dict[str, Case]:
    """Every case of every topic by name."""
    return cases(TOPICS)


def run_cases(
    level: str = "quick", names: Sequence[str] | None = None, report: Callable[[Row], None] | None = None
) -> list[Row]:
    """Rows of all cases of a level, or of the named ones; `report` is called with each row as it comes.

    Raises InputError for an unknown level or name.
    """
    return run(select(all_cases(), level, names), report)


__all__ = ["TOPICS", "Case", "Row", "all_cases", "run_cases"]
