"""Validate job files of OpenPAI's protocol v2, accepting and refusing exactly those that OpenPAI does.

Files that OpenPAI's validator accepts but that describe no job (`gpu: -3`) pass here too; `translation` refuses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from corral.compat.openpai.language.json_schema import ELSEWHERE, MERGED, NOTHING, Rule, told, violations
from corral.spec.errors import Path, Problem, SpecError, describe
from corral.spec.yaml_source import Source, parse_source

PREREQUISITE_TYPES: Final = ("script", "output", "data", "dockerimage")
_REFERENCES: Final = ("script", "output", "data", "dockerImage")
"""Fields of a task role that name one prerequisite of the type of the same name."""
_NAMED: Final = "^[a-zA-Z0-9_-]+$"
_VARIABLE: Final = "^[a-zA-Z_][a-zA-Z0-9_]*$"
_TEXT: Final[Rule] = {"type": "string"}
_WHOLE: Final[Rule] = {"type": "integer"}
_MAPPING: Final[Rule] = {"type": "object"}
_TEXTS: Final[Rule] = {"type": "array", "items": _TEXT}
_COUNT: Final[Rule] = {"type": ("integer", "null")}

_HEAD: Final[dict[str, Rule]] = {
    "protocolVersion": {"enum": ("2", 2)},
    "name": {"type": "string", "pattern": _NAMED, "maxLength": 255},
    "version": {"type": ("string", "number")},
    "contributor": _TEXT,
    "description": _TEXT,
}


def _one_of(*values: str) -> Rule:
    return {"type": "string", "enum": values}


_EXTENDED: Final[dict[str, Rule]] = {"plugin": _TEXT, "require": _TEXTS}
_FILES: Final[Rule] = {
    MERGED: True,
    "type": "object",
    "properties": {**_HEAD, "type": _one_of("script", "output"), **_EXTENDED, "uri": _TEXT},
    "required": ("name", "type"),
}
_DATA: Final[Rule] = {
    MERGED: True,
    "type": "object",
    "properties": {**_HEAD, "type": _one_of("data"), **_EXTENDED, "uri": _TEXTS},
    "required": ("name", "type"),
}
_IMAGE: Final[Rule] = {
    MERGED: True,
    "type": "object",
    "properties": {
        **_HEAD,
        "type": _one_of("dockerimage"),
        "auth": {
            "type": "object",
            "properties": {"username": _TEXT, "password": _TEXT, "registryuri": _TEXT},
        },
        "uri": _TEXT,
    },
    "required": ("name", "type", "uri"),
    "additionalProperties": False,
}
_ROLE: Final[Rule] = {
    "type": "object",
    "properties": {
        "protocolVersion": {"enum": ("2", 2), ELSEWHERE: "base.json#/properties/protocolVersion"},
        "instances": {"type": "integer", "minimum": 1},
        "completion": {
            "type": "object",
            "properties": {"minFailedInstances": _COUNT, "minSucceededInstances": _COUNT},
            "additionalProperties": False,
        },
        "taskRetryCount": _WHOLE,
        "prerequisites": _TEXTS,
        "dockerImage": _TEXT,
        "data": _TEXT,
        "output": _TEXT,
        "script": _TEXT,
        "extraContainerOptions": {
            "type": "object",
            "properties": {"shmMB": _WHOLE, "additionalProperties": NOTHING},
        },
        "resourcePerInstance": {
            "type": "object",
            "properties": {
                "cpu": _WHOLE,
                "memoryMB": _WHOLE,
                "gpu": _WHOLE,
                "ports": {
                    "minProperties": 1,
                    "patternProperties": {_VARIABLE: _WHOLE},
                    "additionalProperties": False,
                },
            },
            "required": ("cpu", "memoryMB", "gpu"),
            "additionalProperties": False,
        },
        "commands": {"type": "array", "minItems": 1, "items": _TEXT},
    },
    "required": ("dockerImage", "resourcePerInstance", "commands"),
    "additionalProperties": False,
}
_DEPLOYED: Final[Rule] = {
    "type": "object",
    "properties": {
        "preCommands": {"type": "array", "minItems": 1, "items": _TEXT},
        "postCommands": {"type": "array", "minItems": 1, "items": _TEXT},
    },
    "additionalProperties": False,
}
_REFERRED: Final[dict[str, Rule]] = {
    name: {**rule, ELSEWHERE: f"base.json#/properties/{name}"} for name, rule in _HEAD.items()
}
_JOB: Final[Rule] = {
    "type": "object",
    "required": ("protocolVersion", "name", "type", "taskRoles"),
    "properties": {
        **{name: _REFERRED[name] for name in ("protocolVersion", "name")},
        "type": _one_of("job"),
        **{name: _REFERRED[name] for name in ("version", "contributor", "description")},
        "prerequisites": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "oneOf": (_FILES, _DATA, _IMAGE)},
        },
        "parameters": _MAPPING,
        "secrets": _MAPPING,
        "jobRetryCount": {"type": "integer", "minimum": 0},
        "taskRoles": {
            "minProperties": 1,
            "patternProperties": {_VARIABLE: _ROLE},
            "additionalProperties": False,
        },
        "deployments": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ("name", "taskRoles"),
                "properties": {
                    "protocolVersion": {**_HEAD["protocolVersion"], ELSEWHERE: "base.json#/properties/protocolVersion"},
                    "name": {**_HEAD["name"], ELSEWHERE: "base.json#/properties/name"},
                    "taskRoles": {
                        "minProperties": 1,
                        "patternProperties": {_VARIABLE: _DEPLOYED},
                        "additionalProperties": False,
                    },
                },
            },
        },
        "defaults": {"type": "object", "properties": {"deployment": _TEXT}},
        "extras": _MAPPING,
    },
    "additionalProperties": False,
}


class ProtocolError(SpecError):
    """A job file that OpenPAI refuses; `wire` is the message that OpenPAI answers."""

    def __init__(self, problems: list[Problem], wire: str) -> None:
        super().__init__(problems)
        self.wire = wire


def is_protocol(data: Any) -> bool:
    """Whether data is meant as a job of protocol v2, valid or not."""
    return isinstance(data, dict) and "protocolVersion" in data and not data.keys() & {"apiVersion", "kind"}


def read_protocol(text: bytes | str, filename: str = "job.yaml") -> dict[str, Any]:
    """The job of a protocol v2 file, validated and with its defaults.

    Raises SpecError for text that is not YAML within the bounds, ProtocolError for a job that OpenPAI refuses.
    """
    return checked(parse_source(text, filename))


def checked(source: Source) -> dict[str, Any]:
    """The job of protocol v2 in a parsed document; see `read_protocol`."""
    protocol: Any = plain(source.data, source.grouped)
    broken = violations(_JOB, protocol)
    if broken:
        problems = [source.problem(each.path, each.message) for each in broken]
        raise ProtocolError(problems, told(broken))
    for path, message in _faults(protocol):
        raise ProtocolError([source.problem(path, message)], message)
    roles = protocol["taskRoles"]
    if isinstance(roles, dict):
        protocol["taskRoles"] = {name: {"instances": 1} | role for name, role in roles.items()}
    return dict(protocol)


def plain(value: Any, grouped: Mapping[Path, int] | None = None, path: Path = ()) -> Any:
    """A document's value with numbers as in JavaScript: a float without a fraction is an integer.

    `grouped` has the numbers written as `1_000`, by path.
    """
    if isinstance(value, dict):
        return {key: plain(inner, grouped, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner, grouped, (*path, index)) for index, inner in enumerate(value)]
    if grouped and path in grouped:
        return grouped[path]
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(value)
    return int(value) if isinstance(value, int) else value


def by_name(items: Any) -> dict[str, Any]:
    """A list of mappings keyed by their names; a mapping is returned unchanged."""
    if isinstance(items, dict):
        return items
    return {each["name"]: each for each in items or ()}


def _faults(protocol: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Errors beyond the schema, in the order in which OpenPAI checks them."""
    there: dict[str, set[str]] = {kind: set() for kind in PREREQUISITE_TYPES}
    for index, item in enumerate(protocol.get("prerequisites", ())):
        name, kind = item["name"], item["type"]
        if name in there[kind]:
            yield ("prerequisites", index, "name"), f"Duplicate {kind} prerequisites {name}."
        there[kind].add(name)
    deployments: set[str] = set()
    used = protocol.get("defaults", {}).get("deployment")
    for index, item in enumerate(protocol.get("deployments", ())):
        if item["name"] in deployments:
            yield ("deployments", index, "name"), f"Duplicate deployments {item['name']}."
        deployments.add(item["name"])
        if item["name"] == used and not isinstance(item["taskRoles"], dict | list):
            shown = describe(item["taskRoles"])
            yield ("deployments", index, "taskRoles"), f"expected a mapping of task roles, got {shown}"
    roles = protocol["taskRoles"]
    if roles is None or isinstance(roles, str):
        yield ("taskRoles",), f"expected a mapping of task roles, got {describe(roles)}"
    for name, role in roles.items() if isinstance(roles, dict) else ():
        yield from _missing(("taskRoles", name), role, there)
    chosen = protocol.get("defaults", {})
    name = chosen.get("deployment", "")
    if "deployment" in chosen and not (isinstance(name, str) and name in deployments):
        shown = name if isinstance(name, str) else json.dumps(name)
        yield ("defaults", "deployment"), f"Default deployment {shown} does not exist."


def _missing(path: Path, role: Mapping[str, Any], there: Mapping[str, set[str]]) -> Iterator[tuple[Path, str]]:
    """References of a task role to prerequisites that do not exist."""
    for field in _REFERENCES:
        if field in role and role[field] not in there[field.lower()]:
            yield (*path, field), f"Prerequisite {role[field]} does not exist."
    for index, name in enumerate(role.get("prerequisites", ())):
        if not any(name in names for names in there.values()):
            yield (*path, "prerequisites", index), f"Prerequisite {name} does not exist."
