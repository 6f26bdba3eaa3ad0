"""Test that each operation of the SDK names the shape that the OpenAPI document gives its route."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from corral.client import operations
from corral.client.calls import API, Call
from docs.generate import openapi

REFERENCE = "#/components/schemas/"
BYTES = {
    "log",
    "events",
    "enter",
    "enter_by_ssh",
    "reach",
    "storage_file",
    "output_file",
    "profile_file",
    "hang_bundle",
    "what_if_events",
}
"""Operations whose answers are bytes; a WebSocket is no part of the document."""


def _operations() -> Iterator[tuple[str, Callable[..., Call[Any]]]]:
    for room in (getattr(operations, name) for name in operations.__all__):
        for name, operation in vars(room).items():
            if not inspect.isfunction(operation) or operation.__module__ != room.__name__:
                continue
            if str(inspect.signature(operation).return_annotation).startswith("Call["):
                yield name, operation


OPERATIONS = dict(_operations())


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The OpenAPI document."""
    return openapi()


@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - BYTES))
def test_an_operation_returns_what_its_route_answers(name: str, document: dict[str, Any]) -> None:
    operation = OPERATIONS[name]
    said = str(inspect.signature(operation).return_annotation).removeprefix("Call[")[:-1]
    assert said == _answer(_call(operation), document)


def test_a_page_has_the_fields_of_every_page(document: dict[str, Any]) -> None:
    from corral.client.types import Page

    schemas = document["components"]["schemas"]
    pages = [schema for name, schema in schemas.items() if name.startswith("Page_")]
    assert pages
    for page in pages:
        assert set(page["properties"]) == set(page["required"]) == Page.__required_keys__
        assert page["properties"]["items"]["type"] == "array"
        assert page["properties"]["next"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def _call(operation: Callable[..., Call[Any]]) -> Call[Any]:
    """Return the call of an operation with something for each parameter that it needs."""
    values = {
        "str": "x", "int": 1, "float": 1.0, "str | bytes": "x", "Sequence[str]": ["x"], "Record": {},
        "Mapping[str, str]": {}, "Sequence[Mapping[str, Any]]": [{}],
    }  # fmt: skip
    needed = {
        parameter.name: "x/y" if parameter.name == "node" else values[str(parameter.annotation)]
        for parameter in inspect.signature(operation).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }
    return operation(**needed)


def _answer(call: Call[Any], document: dict[str, Any]) -> str:
    """Return the type of a call's answer by the document: the name of its schema, as the SDK writes it."""
    path = call.path.partition("?")[0]
    fitting = [
        methods[call.method.lower()]
        for template, methods in document["paths"].items()
        if call.method.lower() in methods and _fits(template, path)
    ]
    assert len(fitting) == 1, f"{call.method} {path} is one route of the document"
    good = {code: answer for code, answer in fitting[0]["responses"].items() if code < "300"}
    if {"200", "202"} <= good.keys():  # which of the two is the caller's preference
        del good["200" if "prefer" in call.headers else "202"]
    answers = {_named(answer) for answer in good.values()}
    (content,) = answers - {"JobDetail | Trial"}  # a dry run of a submit, which the operation's docstring tells of
    return content


def _fits(template: str, path: str) -> bool:
    pattern = re.sub(r"\{\w+\}", "[^/]+", template)
    return template.startswith(API) and re.fullmatch(pattern, path) is not None


def _named(answer: dict[str, Any]) -> str:
    if "content" not in answer:
        return "None"
    schema = answer["content"]["application/json"]["schema"]
    parts = [part["$ref"].removeprefix(REFERENCE) for part in schema.get("anyOf", [schema]) if "$ref" in part]
    if not parts and schema == {"type": "object"}:
        return "Record"
    return " | ".join(re.sub(r"^Page_(\w+)_$", r"Page[\1]", part) for part in parts)
