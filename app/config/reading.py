"""From a TOML file and `--set` to a checked configuration; whatever is wrong is said in one sentence."""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tokensphere.config.complaints import complain
from tokensphere.config.tables import Config
from tokensphere.meshes.errors import InputError


def load(path: Path, settings: list[str] | None = None) -> Config:
    """The configuration of a TOML file, with `key=value` settings laid over it.

    Raises InputError for a file that cannot be read, text that is not TOML, unknown keys and values out of bounds.
    """
    return parse(apply_settings(read(path), settings or []), path.resolve().parent)


def read(path: Path) -> dict[str, Any]:
    """The raw tables of a TOML file; raises InputError for a file that is missing or not TOML."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; give the path of a TOML file.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text (byte {error.start}), but a configuration is a TOML file."
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); give the path of a TOML file.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}.") from None
    except (RecursionError, ValueError):
        raise InputError(f"{path} is not valid TOML: its values are nested too deeply or too long.") from None


def apply_settings(raw: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """The raw tables with `table.key=value` settings laid over them; a value is TOML, or else a bare string."""
    document = deepcopy(raw)
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not all(key.strip().split(".")):
            raise InputError(f"--set {setting} was given, but it must be key=value, such as attention.beta=50.")
        put(document, key.strip(), toml_value(text.strip()))
    return document


def put(document: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key in nested tables, making the tables on the way; numbers index into lists of tables."""
    *parents, last = key.split(".")
    table: Any = document
    for depth, name in enumerate(parents):
        if isinstance(table, list) and name.isdecimal() and int(name) < len(table):
            table = table[int(name)]
        elif isinstance(table, dict):
            table = table.setdefault(name, {})
        if not isinstance(table, dict | list):
            raise InputError(f"{key} was set, but {'.'.join(parents[: depth + 1])} is a value and not a table.")
    if not isinstance(table, dict):
        raise InputError(f"{key} was set, but {'.'.join(parents)} is a list; name one of its tables by number.")
    table[last] = value


def toml_value(text: str) -> Any:
    """A TOML value, or the text itself where it is none (so that strings need no quotes on the command line)."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return _number_or_text(text)
    return document["value"] if set(document) == {"value"} else text


def _number_or_text(text: str) -> Any:
    """Numbers that TOML does not write this way, such as .5 and 2., or the text."""
    try:
        return float(text)
    except ValueError:
        return text


def parse(raw: dict[str, Any], folder: Path | None = None) -> Config:
    """The checked configuration of raw tables; relative paths in it are taken from `folder`.

    Raises InputError with one sentence: the key, what was given, what is allowed, and the nearest known key.
    """
    try:
        config = Config.model_validate(_absolute_paths(raw, folder))
    except ValidationError as error:
        raise InputError(complain(error, raw)) from None
    except (RecursionError, OverflowError):
        raise InputError("the configuration holds values nested too deeply or numbers too large to use.") from None
    return config


def _absolute_paths(raw: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    initial = raw.get("initial")
    if folder is None or not isinstance(initial, dict) or not isinstance(initial.get("path"), str):
        return raw
    return {**raw, "initial": {**initial, "path": str(folder / initial["path"])}}
