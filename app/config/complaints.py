"""What pydantic found wrong, said in one sentence with the nearest known key or value."""

import difflib
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from tokensphere.config.tables import Config
from tokensphere.config.writing import value_text

_RULES = {
    "int_type": "it must be a whole number",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "bool_type": "it must be true or false",
    "string_type": "it must be a text in quotes",
    "list_type": "it must be a list",
    "dict_type": "it must be a table",
    "model_type": "it must be a table",
    "model_attributes_type": "it must be a table",
    "dict_attributes_type": "it must be a table",
    "too_short": "it needs more entries",
    "too_long": "it has too many entries",
}


def complain(error: ValidationError, raw: dict[str, Any], table: str | None = None) -> str:
    """The first thing wrong, unknown keys before all others (a misspelt key also makes another one missing).

    table: the table of `raw` that was validated, where it was not the whole document.
    """
    found = error.errors(include_url=False)
    first = next((entry for entry in found if entry["type"] == "extra_forbidden"), found[0])
    kind, context = first["type"], first.get("ctx", {})
    location = first["loc"] if table is None else (table, *first["loc"])
    path = _strip_tags(location, raw, keep_last=kind == "missing")
    key = dotted(path)
    if kind == "extra_forbidden":
        return _unknown_key(key, location)
    if kind == "missing":
        return f"{key} is missing; " + _expected(location)
    if kind == "union_tag_not_found":
        close = difflib.get_close_matches("kind", [str(name) for name in first["input"]], n=1, cutoff=0.6)
        if close:
            return f"{key}.{close[0]} is not a known key (did you mean kind?); it is one of {_choices_of(location)}."
        return f"{key}.kind is missing; it must be one of {_choices_of(location)}."
    if kind == "union_tag_invalid":
        return _not_among(f"{key}.kind", context["tag"], _kinds(location))
    if kind == "literal_error":
        return _not_among(key, first["input"], _literals(location) or [str(context.get("expected"))])
    rule = str(context["error"]) if kind == "value_error" else _RULES.get(kind, first["msg"].lower())
    if kind == "value_error" and isinstance(first["input"], dict):
        return f"{f'[{key}]: ' if key else ''}{rule}."
    return f"{key} = {shown(first['input'])} was given, but {rule}."


def shown(value: Any) -> str:
    """A TOML value, cut short."""
    text = value_text(value)
    return text if len(text) <= 60 else text[:57] + "..."


def dotted(path: list[str | int]) -> str:
    """('initial', 'components', 0, 'mean') as initial.components[0].mean."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(name: str, known: list[str]) -> str:
    """' (did you mean …?)' or nothing."""
    close = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def _unknown_key(key: str, location: tuple[str | int, ...]) -> str:
    name, table = str(location[-1]), _model_at(location[:-1])
    siblings, tag = list(table.model_fields), _tag(table)
    guess = nearest(name, siblings) or _nearest_elsewhere(name, key)
    kind = "" if tag is None else f' where kind = "{tag}"'
    return f"{_short(key)} is not a known key{kind}{guess}; allowed here: {', '.join(siblings)}."


def _nearest_elsewhere(name: str, key: str) -> str:
    elsewhere = {path.rsplit(".", 1)[-1]: path for path in _all_keys(Config, "") if path != key}
    close = difflib.get_close_matches(name.lower(), list(elsewhere), n=1, cutoff=0.6)
    return f" (did you mean {elsewhere[close[0]]}?)" if close else ""


def _not_among(key: str, given: Any, allowed: list[str]) -> str:
    return f"{key} = {shown(given)} was given, but it must be one of {_quoted(allowed)}{nearest(str(given), allowed)}."


def _expected(location: tuple[str | int, ...]) -> str:
    table = _model_at(location[:-1])
    return (
        f"give it in {f'[{location[0]}]' if len(location) > 1 else 'a table of its own'} "
        f"(keys here: {', '.join(table.model_fields)})."
    )


def _short(key: str) -> str:
    return key if len(key) <= 60 else key[:57] + "..."


def _quoted(values: list[str]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _choices_of(location: tuple[str | int, ...]) -> str:
    return _quoted(_kinds(location))


def _strip_tags(location: tuple[str | int, ...], raw: Any, keep_last: bool) -> list[str | int]:
    """Pydantic's location without the union tags that no file contains; the last part is kept where it is missing."""
    path: list[str | int] = []
    here = raw
    for depth, part in enumerate(location):
        if isinstance(here, dict) and part in here:
            here = here[str(part)]
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            here = here[part]
        elif not (keep_last and depth == len(location) - 1):
            continue
        path.append(part)
    return path


def _members(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, unions, lists and Annotated opened."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [member for part in get_args(annotation) for member in _members(part)]
    if origin is list:
        return _members(get_args(annotation)[0])
    return [annotation]


def _models(annotation: Any) -> list[type[BaseModel]]:
    return [member for member in _members(annotation) if isinstance(member, type) and issubclass(member, BaseModel)]


def _tag(model: type[BaseModel]) -> str | None:
    field = model.model_fields.get("kind")
    return None if field is None else str(get_args(field.annotation)[0])


def _walk(location: tuple[str | int, ...]) -> tuple[list[type[BaseModel]], Any]:
    """The models that may stand at a location of pydantic's, and the annotation of its last field."""
    models: list[type[BaseModel]] = [Config]
    annotation: Any = Config
    for part in location:
        if isinstance(part, int):
            continue
        tagged = [model for model in models if _tag(model) == part]
        if tagged and len(models) > 1:
            models = tagged
            continue
        field = next((model.model_fields[part] for model in models if part in model.model_fields), None)
        if field is None:
            break
        annotation, models = field.annotation, _models(field.annotation) or models
    return models, annotation


def _model_at(location: tuple[str | int, ...]) -> type[BaseModel]:
    return _walk(location)[0][0]


def _kinds(location: tuple[str | int, ...]) -> list[str]:
    return [tag for tag in map(_tag, _walk(location)[0]) if tag is not None]


def _literals(location: tuple[str | int, ...]) -> list[str]:
    annotation = _walk(location)[1]
    return [
        str(value) for member in _members(annotation) if get_origin(member) is Literal for value in get_args(member)
    ]


def _all_keys(model: type[BaseModel], path: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        key = f"{path}.{name}" if path else name
        yield key
        for part in _models(field.annotation):
            yield from _all_keys(part, key)
