"""Read a job file of OpenPAI of either version.

The file is validated as OpenPAI's own format before it becomes a job, so errors name the fields that its author wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from corral.compat.openpai.language.names import ROLES
from corral.compat.openpai.language.protocol import ProtocolError, checked, is_protocol
from corral.compat.openpai.language.secret_masking import fill_in
from corral.compat.openpai.language.translation import OpenPaiJob, to_job
from corral.compat.openpai.language.v1 import TEXT_UNDER, checked_v1, is_v1, without_comments
from corral.compat.openpai.language.v1_job import v1_job
from corral.spec.dialects.dialect import Asked, Document
from corral.spec.errors import Path, Problem, SpecError, did_you_mean, shorten
from corral.spec.yaml_source import Source, parse_source

_COMMENTS: Final = ("//", "/*")
_V1_MARK: Final = '"jobName"'
_FIELDS: Final[dict[str, Path]] = {
    "queue": ("defaults", "virtualCluster"),
    "priority": ("extras", "hivedScheduler", "jobPriorityClass"),
    "retryPolicy": ("jobRetryCount",),
    "pinnedCell": ("extras", "hivedScheduler", "taskRoles"),
    "replicaSpec": ("taskRoles",),
    "roles": ("taskRoles",),
    "storages": ("extras", "storages"),
}
_ROLE_FIELDS: Final[dict[str, Path]] = {
    "image": ("dockerImage",),
    "command": ("commands",),
    "resources": ("resourcePerInstance",),
    "ports": ("resourcePerInstance", "ports"),
    "shm": ("extraContainerOptions", "shmMB"),
    "completion": ("completion",),
    "retryPolicy": ("taskRetryCount",),
    "replicas": ("instances",),
}
_ROLE_CELLS: Final = {"pinnedCell": "pinnedCellId", "affinityGroup": "affinityGroupName"}
"""Fields of a role that the job's extras set."""


def readable(text: str | bytes) -> str | bytes:
    """The text with its comments blanked out, if it is a file of protocol v1, whose JSON may have comments."""
    if isinstance(text, bytes) and _V1_MARK.encode() not in text:  # avoids a decoded copy of large files
        return text
    told = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if _V1_MARK not in told:
        return text
    is_json = told.lstrip("\ufeff \t\r\n").startswith(("{", *_COMMENTS))
    return without_comments(told) if is_json and any(mark in told for mark in _COMMENTS) else text


def is_openpai(data: Any) -> bool:
    """Whether data is meant as a job of OpenPAI, of either version, valid or not."""
    return is_protocol(data) or is_v1(data)


def read_openpai(document: Document, asked: Asked) -> tuple[OpenPaiJob, Source]:
    """The job of a file of OpenPAI, and the source positions of its parts.

    Raises SpecError for an invalid file.
    """
    if isinstance(document, Mapping):
        source = Source(asked.filename, dict(document))
    else:
        source = parse_source(readable(document), asked.filename)
        if is_v1(source.data):  # parsed again, so that variables keep their source text
            source = parse_source(readable(document), asked.filename, TEXT_UNDER)
    old = is_v1(source.data)
    if not old:
        fill_in(source, asked.sealed)
    if asked.name is not None:
        source.data["jobName" if old else "name"] = asked.name
    if asked.parameters:
        _set(source, asked.parameters, old=old)
    try:
        if old:
            return v1_job(checked_v1(source), user=asked.user, fs_uri=asked.fs_uri, folder=asked.folder), source
        return to_job(checked(source), user=asked.user), source
    except ProtocolError as error:
        raise ProtocolError([_placed(each, source) for each in error.problems], error.wire) from None
    except SpecError as error:
        raise SpecError([_placed(each, source) for each in error.problems]) from None


def said_at(document: Mapping[str, Any], path: Path) -> Path:
    """The path in a file of OpenPAI of `path` in the canonical document made of it."""
    match path:
        case ("metadata", "name", *_):
            return ("name",)
        case ("spec", "roles", int(index), *rest):
            role = document["spec"]["roles"][index]["name"]
            name = json.loads(document["metadata"]["annotations"][ROLES]).get(role, role)
            field = str(rest[0]) if rest else ""
            if field in _ROLE_CELLS:
                return ("extras", "hivedScheduler", "taskRoles", name, _ROLE_CELLS[field])
            return ("taskRoles", name, *_ROLE_FIELDS.get(field, ()))
        case ("spec", str(field), *_):
            return _FIELDS.get(field, ())
    return ()


def _set(source: Source, parameters: Mapping[str, str], *, old: bool) -> None:
    given = source.data.get("parameters", {})
    if old or not isinstance(given, dict):
        first = next(iter(parameters))
        raise SpecError([source.problem((), f"--set {first[:60]}: this kind of document has no parameters")])
    unknown = next((name for name in parameters if name not in given), None)
    if unknown is not None:
        said = f"--set {shorten(unknown)}: no such parameter{did_you_mean(unknown, given)}"
        raise SpecError([source.problem((), said)])
    source.data["parameters"] = {**given, **parameters}


def _placed(problem: Problem, source: Source) -> Problem:
    """The problem with its position in the source, unless it has one."""
    return problem if problem.line or not source.values else source.problem(problem.path, problem.message)
