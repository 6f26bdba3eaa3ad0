"""Validate data against a JSON Schema with the same errors as OpenPAI's validator, which its clients show as they are.

Only the keywords that OpenPAI's schema uses are supported. All errors are found, not only the first. `dataPath` and
`schemaPath` are written as Ajv 6 writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from corral.spec.errors import Path

Rule = Mapping[str, Any]
_MOST: Final = 1000
"""Maximum violations reported; a small file may have a hundred thousand, each with a long message."""
ELSEWHERE: Final = "$elsewhere"
"""In a rule: OpenPAI's schema path of it, when it is outside the rule that refers to it."""
NOTHING: Final[Rule] = {"false schema": True}
"""A rule that no value matches: a field that must be absent."""
MERGED: Final = "$merged"
"""In an alternative: OpenPAI builds it with `$merge`, so its failure is reported once more."""
_UNESCAPED: Final = "-_.!~*'()"
"""Characters besides letters and digits that JavaScript does not escape in a URI component."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a document violates."""

    keyword: str
    path: Path
    data_path: str
    schema_path: str
    params: Mapping[str, Any]
    message: str

    def to_document(self) -> dict[str, Any]:
        """The error in OpenPAI's form."""
        return {
            "keyword": self.keyword,
            "dataPath": self.data_path,
            "schemaPath": self.schema_path,
            "params": dict(self.params),
            "message": self.message,
        }


def told(violations: Iterable[Violation]) -> str:
    """The errors as the JSON text that OpenPAI answers."""
    return json.dumps([each.to_document() for each in violations], separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    data: str
    schema: str

    def field(self, name: str, below: str) -> _Place:
        written = f".{name}" if re.fullmatch("[A-Za-z_$][A-Za-z0-9_$]*", name, re.ASCII) else f"[{_quoted(name)}]"
        return _Place((*self.path, name), self.data + written, f"{self.schema}/{below}")

    def named(self, name: str, below: str) -> _Place:
        return _Place((*self.path, name), f"{self.data}[{_quoted(name)}]", f"{self.schema}/{below}")

    def item(self, index: int) -> _Place:
        return _Place((*self.path, index), f"{self.data}[{index}]", f"{self.schema}/items")

    def within(self, below: str) -> _Place:
        return _Place(self.path, self.data, f"{self.schema}/{below}")

    def broken(self, keyword: str, params: Mapping[str, Any], message: str, blamed: Path = ()) -> Violation:
        return Violation(keyword, self.path + blamed, self.data, f"{self.schema}/{keyword}", params, message)


def violations(rule: Rule, value: Any) -> list[Violation]:
    """The violations of `rule` in `value`, in OpenPAI's order; at most _MOST."""
    return list(islice(_check(rule, value, _Place((), "", "#")), _MOST))


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _is(kind: str, value: Any) -> bool:
    if kind == "null":
        return value is None
    if kind == "boolean":
        return isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[kind])


def _check(rule: Rule, value: Any, at: _Place) -> Iterator[Violation]:
    if ELSEWHERE in rule:
        at = _Place(at.path, at.data, rule[ELSEWHERE])
    if rule is NOTHING:
        yield at.broken("false schema", {}, "boolean schema is false")
    kinds = rule.get("type", ())
    kinds = (kinds,) if isinstance(kinds, str) else kinds
    if kinds and not any(_is(kind, value) for kind in kinds):
        wanted = ",".join(kinds)
        yield at.broken("type", {"type": wanted}, f"should be {wanted}")
    elif isinstance(value, str):
        yield from _text(rule, value, at)
    elif isinstance(value, dict):
        yield from _mapping(rule, value, at)
    elif isinstance(value, list):
        yield from _items(rule, value, at)
    elif _is("number", value):
        yield from _number(rule, value, at)
    if "enum" in rule and not any(type(each) is type(value) and each == value for each in rule["enum"]):
        yield at.broken("enum", {"allowedValues": list(rule["enum"])}, "should be equal to one of the allowed values")
    if "oneOf" in rule:
        yield from _one_of(rule["oneOf"], value, at)


def _text(rule: Rule, value: str, at: _Place) -> Iterator[Violation]:
    if len(value) > rule.get("maxLength", len(value)):
        limit = rule["maxLength"]
        yield at.broken("maxLength", {"limit": limit}, f"should NOT be longer than {limit} characters")
    if len(value) < rule.get("minLength", 0):
        limit = rule["minLength"]
        yield at.broken("minLength", {"limit": limit}, f"should NOT be shorter than {limit} characters")
    if "pattern" in rule and not _matches(rule["pattern"], value):
        pattern = rule["pattern"]
        yield at.broken("pattern", {"pattern": pattern}, f'should match pattern "{pattern}"')


def _number(rule: Rule, value: float, at: _Place) -> Iterator[Violation]:
    if value < rule.get("minimum", value):
        limit = rule["minimum"]
        params = {"comparison": ">=", "limit": limit, "exclusive": False}
        yield at.broken("minimum", params, f"should be >= {limit}")


def _items(rule: Rule, value: list[Any], at: _Place) -> Iterator[Violation]:
    if len(value) < rule.get("minItems", 0):
        limit = rule["minItems"]
        yield at.broken("minItems", {"limit": limit}, f"should NOT have fewer than {limit} items")
    if "items" in rule:
        for index, each in enumerate(value):
            yield from _check(rule["items"], each, at.item(index))


def _mapping(rule: Rule, value: dict[str, Any], at: _Place) -> Iterator[Violation]:
    if len(value) < rule.get("minProperties", 0):
        limit = rule["minProperties"]
        yield at.broken("minProperties", {"limit": limit}, f"should NOT have fewer than {limit} properties")
    known = rule.get("properties", {})
    required = rule.get("required", ())
    yield from (_lacking(name, at) for name in required if name not in value and name not in known)
    patterns = rule.get("patternProperties", {})
    if rule.get("additionalProperties") is False:
        for name in value:
            if name not in known and not any(_matches(pattern, name) for pattern in patterns):
                message = "should NOT have additional properties"
                yield at.broken("additionalProperties", {"additionalProperty": name}, message, (name,))
    for name, inner in known.items():
        if name in required and name not in value:
            yield _lacking(name, at)  # Ajv reports it where it would check the value
        elif name in value:
            yield from _check(inner, value[name], at.field(name, f"properties/{name}"))
    for pattern, inner in patterns.items():
        for name in value:
            if _matches(pattern, name):
                below = f"patternProperties/{quote(pattern, safe=_UNESCAPED)}"
                yield from _check(inner, value[name], at.named(name, below))


def _lacking(name: str, at: _Place) -> Violation:
    return at.broken("required", {"missingProperty": name}, f"should have required property '{name}'", (name,))


def _one_of(rules: Iterable[Rule], value: Any, at: _Place) -> Iterator[Violation]:
    """The violations of every alternative, unless exactly one matches."""
    told_here: list[Violation] = []
    passing = []
    for index, rule in enumerate(rules):
        branch = at.within(f"oneOf/{index}")
        found = list(islice(_check(rule, value, branch), _MOST))
        if found and rule.get(MERGED):
            found.append(branch.broken("$merge", {"keyword": "$merge"}, 'should pass "$merge" keyword validation'))
        told_here += found
        if not found:
            passing.append(index)
    if len(passing) != 1:
        yield from told_here
        params = {"passingSchemas": passing or None}
        yield at.broken("oneOf", params, "should match exactly one schema in oneOf")


def _matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches; patterns here are anchored at both ends."""
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text, re.ASCII) is not None
