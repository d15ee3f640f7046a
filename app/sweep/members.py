"""Which runs a sweep consists of."""

import hashlib
import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokensphere.config import Config, parse
from tokensphere.config.reading import put, toml_value
from tokensphere.config.writing import value_text
from tokensphere.meshes.errors import InputError
from tokensphere.resuming import flat

LONGEST_NAME = 80
MOST = 100_000


@dataclass(frozen=True)
class Member:
    """One run of a sweep: the folder name that its parameters give it, their values, and its configuration."""

    name: str
    values: dict[str, Any]
    config: Config


def parse_over(texts: list[str]) -> dict[str, list[Any]]:
    """{"attention.beta": [10, 20]} from texts such as "attention.beta=10,20"; matrices may stand among the values.

    Raises InputError for a text without a key, without values, or with a key that was given before.
    """
    over: dict[str, list[Any]] = {}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise InputError(f"--over {text} was given, but it must be KEY=LIST, such as attention.beta=10,20,40.")
        if key.strip() in over:
            raise InputError(f"--over {key.strip()} was given twice; put all its values into one list.")
        over[key.strip()] = [toml_value(part.strip()) for part in _split(values)]
    return over


def expand(raw: dict[str, Any], over: dict[str, list[Any]], zipped: bool, folder: Path | None = None) -> list[Member]:
    """The members of a sweep over raw tables: the product of the lists, or, zipped, their values in step.

    Raises InputError for no or empty lists, lists of different lengths to zip, repeated values, and, before anything
    has run, for a member whose configuration is wrong.
    """
    _check_lists(over, zipped)
    rows = list(zip(*over.values(), strict=True)) if zipped else list(itertools.product(*over.values()))
    members = [_member(raw, dict(zip(over, row, strict=True)), folder) for row in rows]
    names = [member.name for member in members]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the sweep holds {twice} twice; give each value once.")
    return members


def _check_lists(over: dict[str, list[Any]], zipped: bool) -> None:
    if not over:
        raise InputError("a sweep needs at least one --over KEY=LIST, or a table [sweep] with over.")
    for key, values in over.items():
        if not values:
            raise InputError(f"the sweep has no values for {key}; give a list such as {key}=1,2.")
    lengths = {key: len(values) for key, values in over.items()}
    if zipped and len(set(lengths.values())) > 1:
        raise InputError(
            "--zip needs lists of one length, but there are "
            + ", ".join(f"{length} of {key}" for key, length in lengths.items())
            + "."
        )
    count = 1
    for length in lengths.values():
        count = length if zipped else count * length
    if count > MOST:
        raise InputError(f"the sweep would have {count} members, but at most {MOST} are allowed; split it.")


def _member(raw: dict[str, Any], values: dict[str, Any], folder: Path | None) -> Member:
    document = tomllib.loads("") | {key: value for key, value in raw.items() if key != "sweep"}
    document = _copied(document)
    for key, value in values.items():
        put(document, key, value)
    config = parse(document, folder)
    resolved = flat(config.model_dump(exclude_none=True))
    values = {key: resolved.get(key, value) for key, value in values.items()}
    return Member(_name(values), values, config)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(entry) for key, entry in value.items()}
    return [_copied(entry) for entry in value] if isinstance(value, list) else value


def _name(values: dict[str, Any]) -> str:
    """A folder name that says the parameters, so that a longer sweep finds the runs of a shorter one."""
    text = ",".join(f"{key}={value_text(value)}" for key, value in values.items())
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "=,.+-_") else "" for c in text)
    if plain == text and len(text) <= LONGEST_NAME:
        return text
    return f"{plain[: LONGEST_NAME - 11]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for index, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "[{":
            depth += 1
        elif c in "]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [part for part in [*parts, text[start:]] if part.strip()]
