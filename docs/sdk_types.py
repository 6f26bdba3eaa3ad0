"""Generate `corral/client/schema.py`, the types of the SDK's answers, from the OpenAPI document."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

HEADER = '"""The shapes of the API\'s answers, generated from the OpenAPI document; `make docs` writes them anew."""'
OPTIONS = (
    *("--input-file-type", "openapi", "--openapi-scopes", "schemas"),
    *("--output-model-type", "typing.TypedDict", "--target-python-version", "3.11", "--no-use-closed-typed-dict"),
    *("--enum-field-as-literal", "all", "--use-union-operator", "--use-standard-collections"),
    *("--use-schema-description", "--use-field-description", "--use-single-line-docstring"),
    *("--formatters", "builtin", "--disable-timestamp", "--custom-file-header", HEADER),
)
PAGE = "Page_"
"""How the names of pages begin; `corral.client.types` has one type for all of them."""
_SAID = ("$ref", "type", "description", "enum", "const", "anyOf", "items", "additionalProperties", "required")
"""What a type can say of a schema; bounds and patterns are left out."""


def module(document: dict[str, Any]) -> str:
    """Return the text of the module for an OpenAPI document."""
    schemas = document["components"]["schemas"]
    wanted = {name: _plain(schemas[name]) for name in _answered(document) if not name.startswith(PAGE)}
    given = {key: document[key] for key in ("openapi", "info")}
    given |= {"paths": {}, "components": {"schemas": wanted}}
    text = _run("datamodel_code_generator", *OPTIONS, text=json.dumps(given))
    return _run("ruff", "format", "--stdin-filename", "corral/client/schema.py", "-", text=text)


def _answered(document: dict[str, Any]) -> list[str]:
    """Return the names of the schemas that answers refer to, directly or not."""
    schemas = document["components"]["schemas"]
    found: set[str] = set()
    waiting = [
        name
        for methods in document["paths"].values()
        for operation in methods.values()
        for name in _references(operation["responses"])
    ]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schemas[name])
    return sorted(found)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target.rsplit("/", 1)[-1]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _plain(schema: Any) -> Any:
    """Return a schema without what no type can say, so that the generator makes no alias for a bounded text."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _plain(value) for key, value in schema.items() if key in _SAID}
    if "properties" in schema:
        kept["properties"] = {name: _plain(value) for name, value in schema["properties"].items()}
    if kept.get("additionalProperties") is False:
        del kept["additionalProperties"]
    values = schema.get("patternProperties", {})
    if len(values) == 1:
        kept["additionalProperties"] = _plain(next(iter(values.values())))
    return kept


def _run(program: str, *arguments: str, text: str) -> str:
    """Return what a Python program makes of `text`."""
    command = [sys.executable, "-W", "ignore", "-m", program, *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
