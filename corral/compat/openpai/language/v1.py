"""Validate job files of OpenPAI's protocol v1 (JSON, from its YARN releases) and fill in defaults.

The field names stay v1's; `v1_job` translates them. Comments are ignored, since OpenPAI's own page accepted them.
Numbers may be quoted, as its server accepted them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.openpai.language.protocol import plain
from corral.spec.dialects.field_reader import Fields
from corral.spec.errors import Path, SpecError, describe
from corral.spec.retry_rules import ALWAYS
from corral.spec.yaml_source import Source, parse_source

OBSOLETE: Final = "killAllOnCompletedTaskNumber"
OBSOLETE_WARNING: Final = (
    "killAllOnCompletedTaskNumber has been obsoleted, please use minFailedTaskCount and minSucceededTaskCount instead."
)
"""Text of the answer's `X-Warning` header for files that still set it."""
TOO_MANY_OF_A_ROLE: Final = "minFailedTaskCount or minSucceededTaskCount should not be greater than tasks number."
DIRECTORIES: Final = ("dataDir", "outputDir", "codeDir")
TEXT_UNDER: Final = frozenset({"jobEnvs"})
_OLD_JOB_NAME: Final = re.compile(r"[A-Za-z0-9\-._~]{1,255}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9._~]{1,255}", re.ASCII)
_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBER: Final = re.compile("[-+]?[0-9]{1,10}", re.ASCII)
_COMMENT: Final = re.compile(r'("(?:[^"\\\n]|\\.)*"?|/\*(?!.*?\*/).*)|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""A string or unclosed comment (kept), or a comment.

Unclosed strings and comments match too; otherwise each start inside them would be scanned again.
"""
_NOT_A_LINE: Final = re.compile(r"[^\n]")
_MOST: Final = 2**31 - 1
_MARKS: Final = ("jobName", "taskRoles")
_FOREIGN: Final = frozenset({"apiVersion", "kind", "protocolVersion"})


def is_v1(data: Any) -> bool:
    """Whether data is meant as a job of protocol v1, valid or not."""
    return isinstance(data, dict) and any(mark in data for mark in _MARKS[:1]) and not data.keys() & _FOREIGN


def without_comments(text: str) -> str:
    """JSON text with its comments replaced by blanks, so that all positions stay the same."""
    return _COMMENT.sub(lambda found: found[1] or _NOT_A_LINE.sub(" ", found[0]), text)


def read_v1(text: bytes | str, filename: str = "job.json") -> dict[str, Any]:
    """The job of a protocol v1 file, validated and with its defaults.

    Raises SpecError with every problem.
    """
    told = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return checked_v1(parse_source(without_comments(told), filename, TEXT_UNDER))


def checked_v1(source: Source) -> dict[str, Any]:
    """The job of protocol v1 in a parsed document; see `read_v1`."""
    fields = Fields(source, source.data)
    job: dict[str, Any] = {
        "jobName": _named(fields, "jobName", _OLD_JOB_NAME, "letters, digits, '-', '.' and '_'"),
        "image": _something(fields, "image"),
        **{name: fields.text(name) for name in ("authFile", *DIRECTORIES)},
        "virtualCluster": fields.text("virtualCluster") or "default",
        "gpuType": fields.text("gpuType"),
        "retryCount": _whole(fields, "retryCount", 0, least=ALWAYS),
        "jobEnvs": _variables(fields),
        "extras": _mapping(fields, "extras"),
    }
    if OBSOLETE in fields:
        job[OBSOLETE] = _whole(fields, OBSOLETE, 0, least=-_MOST)
    roles = fields.items("taskRoles")
    if not roles:
        fields.problem(("taskRoles",), "missing; a job has at least one task role")
    job["taskRoles"] = [_role(each) for each in roles]
    names = [role["name"] for role in job["taskRoles"]]
    for at, name in enumerate(names):
        if name in names[:at]:
            fields.problem(("taskRoles", at, "name"), f'the task role "{name}" is already there')
    fields.done()
    if fields.problems:
        raise SpecError(fields.problems)
    found: dict[str, Any] = plain(job)
    return found


def v1_to_protocol(v1: Mapping[str, Any], *, auth: tuple[str, str, str] | None = None) -> dict[str, Any]:
    """Convert a validated v1 job to a job of protocol v2.

    `auth` has the contents of its authFile: registry, user name and password.
    """
    image: dict[str, Any] = {"name": "default", "type": "dockerimage", "uri": v1["image"]}
    protocol: dict[str, Any] = {
        "protocolVersion": 2,
        "name": v1["jobName"],
        "type": "job",
        "prerequisites": [image],
        "jobRetryCount": max(0, v1["retryCount"]),
        "taskRoles": {},
        "defaults": {"virtualCluster": v1["virtualCluster"]},
    }
    if auth is not None:
        registry, user, password = auth
        protocol["secrets"] = {"registry": {"username": user, "password": password}}
        image["auth"] = {
            "username": "<% $secrets.registry.username %>",
            "password": "<% $secrets.registry.password %>",
            "registryuri": registry,
        }
    if v1["extras"]:
        protocol["extras"] = dict(v1["extras"])
    given = {}
    for name, kind in zip(DIRECTORIES, ("data", "output", "script"), strict=True):
        if v1[name]:
            uri = [v1[name]] if kind == "data" else v1[name]
            protocol["prerequisites"].append({"name": "default", "type": kind, "uri": uri})
            given[kind] = "default"
    for role in v1["taskRoles"]:
        protocol["taskRoles"][role["name"]] = {
            "instances": role["taskNumber"],
            "completion": {
                "minFailedInstances": role["minFailedTaskCount"],
                "minSucceededInstances": role["minSucceededTaskCount"] or -1,
            },
            "dockerImage": "default",
            **given,
            "extraContainerOptions": {"shmMB": role["shmMB"]},
            "resourcePerInstance": {
                "cpu": role["cpuNumber"],
                "memoryMB": role["memoryMB"],
                "gpu": role["gpuNumber"],
                "ports": {port["label"]: port["portNumber"] for port in role["portList"]},
            },
            "commands": [role["command"]],
        }
    return protocol


def _role(fields: Fields) -> dict[str, Any]:
    role: dict[str, Any] = {
        "name": _named(fields, "name", _WORD, "letters, digits, '.', '_' and '~'"),
        "taskNumber": _whole(fields, "taskNumber", 1, least=1),
        "cpuNumber": _whole(fields, "cpuNumber", 1),
        "memoryMB": _whole(fields, "memoryMB", 100, least=1),
        "shmMB": _whole(fields, "shmMB", 64),
        "gpuNumber": _whole(fields, "gpuNumber", 0),
        "portList": [_port(each) for each in fields.items("portList")],
        "command": _something(fields, "command"),
        "minFailedTaskCount": _count(fields, "minFailedTaskCount", 1),
        "minSucceededTaskCount": _count(fields, "minSucceededTaskCount", None),
    }
    if role["shmMB"] > role["memoryMB"] and "shmMB" in fields:
        fields.problem(("shmMB",), f"{role['shmMB']} is more than memoryMB, which is {role['memoryMB']}")
    role["shmMB"] = min(role["shmMB"], role["memoryMB"])
    for name in ("minFailedTaskCount", "minSucceededTaskCount"):
        if (role[name] or 0) > role["taskNumber"]:
            fields.problem((name,), TOO_MANY_OF_A_ROLE)
    labels = [port["label"] for port in role["portList"]]
    for at, label in enumerate(labels):
        if label in labels[:at]:
            fields.problem(("portList", at, "label"), f'the port "{label}" is already there')
    fields.done()
    return role


def _port(fields: Fields) -> dict[str, Any]:
    port: dict[str, Any] = {
        "label": _named(fields, "label", _WORD, "letters, digits, '.', '_' and '~'"),
        "beginAt": _whole(fields, "beginAt", 0, most=65_535),
        "portNumber": _whole(fields, "portNumber", 1, most=65_535),
    }
    if port["beginAt"] and port["beginAt"] + port["portNumber"] > 65_536:
        fields.problem(("portNumber",), "the ports end after 65535, the last that there is")
    fields.done()
    return port


def _named(fields: Fields, name: str, pattern: re.Pattern[str], meaning: str) -> str:
    found = fields.text(name, None)
    if name in fields and not pattern.fullmatch(found):
        fields.problem((name,), f"expected {meaning}, 255 at most, got {describe(found)}")
    return found


def _something(fields: Fields, name: str) -> str:
    found = fields.text(name, None)
    if name in fields and not found:
        fields.problem((name,), "expected something, got nothing")
    return found


def _whole(fields: Fields, name: str, default: int, *, least: int = 0, most: int = _MOST) -> int:
    """A whole number, quoted or not, as OpenPAI's server accepted it."""
    value = fields.take(name)
    if value is None:
        if name in fields.data:
            fields.problem((name,), "expected a whole number, got nothing")
        return default
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        fields.problem((name,), f"expected a whole number from {least} to {most}, got {describe(value)}")
        return max(least, default)
    return int(value)


def _count(fields: Fields, name: str, default: int | None) -> int | None:
    """A number of tasks; null disables the condition."""
    if name not in fields.data:
        fields.ignore((name,))
        return default
    return None if fields.take(name) is None else _whole(fields, name, 1, least=1)


def _mapping(fields: Fields, name: str) -> dict[str, Any]:
    return dict(fields.inner(name).data)


def _variables(fields: Fields) -> dict[str, str]:
    inner = fields.inner("jobEnvs")
    found = {}
    for key, value in inner.data.items():
        path: Path = (key,)
        if not _VARIABLE.fullmatch(key):
            inner.problem(path, "expected a variable's name: letters, digits and '_'", at_key=True)
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, dict | list):
            inner.problem(path, f"expected text, got {describe(value)}")
        found[key] = "" if value is None else str(getattr(value, "source", value))
    return found
