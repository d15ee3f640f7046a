"""A configuration written as TOML again."""

import json
import math
from typing import Any

from tokensphere.config.tables import Config


def to_toml(config: Config) -> str:
    """The resolved configuration as TOML: every default in place, absent tables left out; reads back as the same."""
    return toml(config.model_dump(exclude_none=True))


def toml(document: dict[str, Any]) -> str:
    """A nested dictionary of TOML values as TOML text."""
    return "\n".join(_lines(document, "")).lstrip("\n") + "\n"


def _lines(table: dict[str, Any], path: str) -> list[str]:
    plain = {key: value for key, value in table.items() if not _is_table(value) and not _is_tables(value)}
    lines = [f"{_key(key)} = {value_text(value)}" for key, value in plain.items()]
    for key, value in table.items():
        name = f"{path}.{_key(key)}" if path else _key(key)
        if _is_table(value):
            lines += ["", f"[{name}]", *_lines(value, name)]
        elif _is_tables(value):
            for part in value:
                lines += ["", f"[[{name}]]", *_lines(part, name)]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text).replace("\x7f", "\\u007f")


def value_text(value: Any) -> str:
    """One TOML value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if value != value else "inf" if value > 0 else "-inf")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(value_text(entry) for entry in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {value_text(entry)}" for key, entry in value.items()) + "}"
    return _string(value) if isinstance(value, str) else str(value)
