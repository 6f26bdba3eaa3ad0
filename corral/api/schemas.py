"""The schemas of the OpenAPI document: those of the API's structs, and those of the canonical job document.

The types of the portal and of the SDK are generated from them.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from corral.model.records import JOB_DOCUMENT

_BOUNDS: Final = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
REFERENCE: Final = "#/components/schemas/{name}"
Schemas = dict[str, dict[str, Any]]


def schemas_of(kinds: Iterable[Any], asked: Any) -> Schemas:
    """Return the schemas of the structs `kinds` and of all that they contain, by name.

    `asked` is the part of the OpenAPI document that describes requests. A field with a default may be left out of a
    request. An answer has every field, because msgspec encodes defaults.
    """
    _, built = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    _describe_fields(kinds, built)
    requests = _reached(asked, built)
    for name, schema in built.items():
        _mend(schema)
        if name not in requests and "properties" in schema:
            schema["required"] = list(schema["properties"])
            for field in schema["properties"].values():
                field.pop("default", None)
    documents = _job_document()
    assert not documents.keys() & built.keys(), "a struct has the name of a part of the job document"
    return dict(sorted((built | documents).items()))


def _mend(value: Any) -> None:
    """Remove the indentation of docstrings, and the type beside the reference that `JobDocument` adds to it.

    A whole bound is written as an integer: `typing` keeps one of two equal annotations, whichever was imported first.
    """
    if isinstance(value, dict):
        for bound in _BOUNDS & value.keys():
            if isinstance(value[bound], float) and value[bound].is_integer():
                value[bound] = int(value[bound])
        if isinstance(value.get("description"), str):
            value["description"] = inspect.cleandoc(value["description"])
        if "$ref" in value:
            value.pop("type", None)
        for inner in value.values():
            _mend(inner)
    elif isinstance(value, list):
        for inner in value:
            _mend(inner)


def _job_document() -> Schemas:
    """Return the schemas of the canonical job document and of its parts, whose names begin with `Job`."""
    from corral.spec.schema import canonical_schema  # the start of the server does not need it

    whole = canonical_schema()
    parts = whole.pop("$defs")
    del whole["$schema"], whole["title"]
    names = {name: name if name.startswith("Job") else f"Job{name}" for name in parts}
    places = {f"#/$defs/{name}": REFERENCE.format(name=new) for name, new in names.items()}
    renamed: Schemas = _with_places({JOB_DOCUMENT: whole} | {names[name]: part for name, part in parts.items()}, places)
    return renamed


def _with_places(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_places(inner, places) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_places(inner, places) for inner in value]
    return places.get(value, value) if isinstance(value, str) else value


def _reached(value: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Return the names of all schemas that `value` refers to, directly or not."""
    found: set[str] = set()
    waiting = list(_references(value))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schemas.get(name, {}))
    return found


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(target := value.get("$ref"), str):
            yield target.rsplit("/", 1)[-1]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _references(inner)


def _describe_fields(kinds: Iterable[Any], schemas: Schemas) -> None:
    """Give each field the docstring below it as its description."""
    for struct in _structs(kinds):
        fields = schemas.get(struct.__name__, {}).get("properties", {})
        encoded = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
        for base in struct.__mro__[: struct.__mro__.index(msgspec.Struct)]:
            for name, text in _docstrings(base).items():
                fields.get(encoded[name], {}).setdefault("description", text)


def _structs(kinds: Iterable[Any]) -> Iterator[type[msgspec.Struct]]:
    """Yield every struct class that `kinds` contain."""
    seen: set[int] = set()
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(kinds))
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, msgspec.Struct) and id(node) not in seen:
            seen.add(id(node))
            if isinstance(node, msgspec.inspect.StructType):
                yield getattr(node.cls, "__origin__", node.cls)
            waiting += (getattr(node, name) for name in node.__struct_fields__ if name != "cls")


def _docstrings(struct: type) -> dict[str, str]:
    """Return the docstring of each field that the body of a class declares."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(struct)))
    except (OSError, TypeError):
        return {}
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for declared, below in pairwise(body):
        if isinstance(declared, ast.AnnAssign) and isinstance(declared.target, ast.Name):
            said = below.value if isinstance(below, ast.Expr) else None
            if isinstance(said, ast.Constant) and isinstance(said.value, str):
                found[declared.target.id] = inspect.cleandoc(said.value)
    return found
