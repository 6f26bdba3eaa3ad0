"""Translate pydantic's validation errors into messages for document authors, placed where they wrote the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from corral.spec.base import PATTERN_MEANINGS
from corral.spec.errors import MAX_PROBLEMS, Path, Problem, describe, did_you_mean
from corral.spec.yaml_source import Source

_BOUNDS: Final = {
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
    "greater_than": ("gt", "more than"),
    "less_than": ("lt", "less than"),
}
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "dict": "a mapping (key: value)",
    "model": "a mapping (key: value)",
    "mapping": "a mapping (key: value)",
    "list": "a list",
}
_TYPES: Final = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping (key: value)",
}


def problems_of(
    error: ValidationError,
    model: type[BaseModel],
    source: Source,
    relocate: Callable[[Path], Path] = lambda path: path,
) -> list[Problem]:
    """The errors of a document in its author's terms; `relocate` maps the model's paths to the document's."""
    found: dict[tuple[Path, str], Problem] = {}
    for detail in error.errors(include_url=False)[:MAX_PROBLEMS]:
        for path, message, at_key in _explain(dict(detail), model, source, relocate):
            found.setdefault((path, message), source.problem(path, message, at_key=at_key))
    return list(found.values())


def _explain(
    detail: dict[str, Any], model: type[BaseModel], source: Source, relocate: Callable[[Path], Path]
) -> Iterator[tuple[Path, str, bool]]:
    kind: str = detail["type"]
    context: dict[str, Any] = detail.get("ctx") or {}
    at_key = detail["loc"][-1:] == ("[key]",)
    path = relocate(tuple(part for part in detail["loc"] if part != "[key]"))
    if kind == "inconsistent":
        for where, message in context["findings"]:
            place = relocate(where)
            yield place if message.startswith("missing") else source.nearest(place), message, False
    elif kind == "extra_forbidden":
        yield path, f"unknown field{did_you_mean(str(path[-1]), fields_at(model, path[:-1]))}", True
    elif kind == "missing":
        yield path, "missing", False
    else:
        near = source.nearest(path)
        yield near, _sentence(kind, context, detail, model), at_key and near == path


def _sentence(kind: str, context: dict[str, Any], detail: dict[str, Any], model: type[BaseModel]) -> str:
    value = detail.get("input")
    if kind == "refused":
        return str(context["sentence"])
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"expected {words} {context[key]:.15g}, got {describe(value)}"
    if kind == "string_pattern_mismatch":
        meaning = PATTERN_MEANINGS.get(context["pattern"], f"text matching {context['pattern']}")
        return f"expected {meaning}, got {describe(value)}"
    if kind == "literal_error":
        choices = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return f"expected one of {', '.join(choices)}, got {describe(value)}" + _near(value, choices)
    if kind.endswith(("too_short", "too_long")):
        return _length(kind, context, value)
    if kind == "string_unicode":
        return "expected text without broken characters"
    base = kind.split("_", 1)[0]
    if value is None and base == "string":
        return 'expected text, got nothing; write "" if it should be empty'
    if base in _KINDS:
        accepted = _kinds_at(model, detail["loc"]) or [_KINDS[base]]
        return f"expected {' or '.join(accepted)}, got {describe(value)}"
    return str(detail["msg"])


def _near(value: object, choices: list[str]) -> str:
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return hint if "did you mean" in hint else ""


def _length(kind: str, context: dict[str, Any], value: object) -> str:
    things = "characters" if isinstance(value, str) else "entries"
    if kind.endswith("too_short"):
        least = context["min_length"]
        return "expected something, got nothing" if least == 1 else f"expected at least {least} {things}"
    return f"expected at most {context['max_length']} {things}"


def fields_at(model: type[BaseModel], path: Path) -> list[str]:
    """Names of the fields allowed in the mapping at `path`, from the model's JSON schema."""
    root, places = _places(model, path)
    return sorted({name for place in places for flat in _flatten(root, place) for name in flat.get("properties", {})})


def _kinds_at(model: type[BaseModel], path: Path) -> list[str]:
    """The types of value allowed at `path`, in words."""
    root, places = _places(model, path)
    types = [flat.get("type") for place in places for flat in _flatten(root, place)]
    return list(dict.fromkeys(_TYPES[kind] for kind in types if kind in _TYPES))


@lru_cache(maxsize=8)
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


def _places(model: type[BaseModel], path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    root = _schema(model)
    places = [root]
    for part in path:
        places = [inner for place in places for inner in _step(root, place, part)]
    return root, places


def _step(root: dict[str, Any], place: dict[str, Any], part: str | int) -> Iterator[dict[str, Any]]:
    for flat in _flatten(root, place):
        if isinstance(part, int):
            inner = flat.get("items")
        else:
            by_pattern = next(iter(flat.get("patternProperties", {}).values()), None)
            inner = flat.get("properties", {}).get(part) or flat.get("additionalProperties") or by_pattern
        if isinstance(inner, dict):
            yield inner


def _flatten(root: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema itself, the one it refers to, or each of its alternatives."""
    if "$ref" in place:
        yield from _flatten(root, root["$defs"][place["$ref"].rsplit("/", 1)[-1]])
    for alternative in (*place.get("anyOf", ()), *place.get("oneOf", ()), *place.get("allOf", ())):
        yield from _flatten(root, alternative)
    if "type" in place:
        yield place
