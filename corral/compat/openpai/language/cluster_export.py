"""Recognise the files of an OpenPAI cluster's export by their content, under any name.

They are lists of Kubernetes objects (`kubectl get secrets -n pai-user-v2 -o yaml`), saved answers of the REST API, and
`paictl`'s files. Unrecognised files are listed, so that none is overlooked.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from corral.spec.errors import Problem, SpecError
from corral.spec.hived.configuration import is_hived
from corral.spec.yaml_source import parse_sources

_USERS: Final = ("pai-user-v2", "pai-user")
_GROUPS: Final = "pai-group"
_TOKENS: Final = "pai-user-token"
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_HASH: Final = re.compile(r"[0-9a-f]{128}")
_MOST_FILES: Final = 200_000


@dataclass(slots=True)
class ExportedUser:
    """An account of the cluster."""

    name: str
    email: str = ""
    groups: tuple[str, ...] = ()
    admin: bool = False
    password_hash: str = ""
    """The 64-byte hash that OpenPAI derived, in hex; "" when it was not exported."""
    extension: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ExportedGroup:
    """A group and its grants."""

    name: str
    description: str = ""
    external_name: str = ""
    queues: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()
    admin: bool = False
    extension: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ExportedJob:
    """A job: its file and its state."""

    user: str
    name: str
    text: str
    state: str = ""
    """OpenPAI's state in capitals; "" when no list of jobs has it."""


@dataclass(slots=True)
class Export:
    """All recognised contents of the export, by type."""

    layout: dict[str, Any] | None = None
    services: dict[str, Any] | None = None
    hived: dict[str, Any] | None = None
    users: dict[str, ExportedUser] = field(default_factory=dict)
    groups: dict[str, ExportedGroup] = field(default_factory=dict)
    tokens: list[tuple[str, str]] = field(default_factory=list)
    """(user, token text)."""
    tokens_exported: bool = False
    volumes: dict[str, dict[str, Any]] = field(default_factory=dict)
    claims: dict[str, dict[str, Any]] = field(default_factory=dict)
    storages: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Storages in the REST API's form, by name."""
    jobs: list[ExportedJob] = field(default_factory=list)
    states: dict[tuple[str, str], str] = field(default_factory=dict)
    """States of jobs, by user and name."""
    unknown: list[tuple[str, str]] = field(default_factory=list)
    """Unrecognised files, each with the reason."""


def read_export(files: Mapping[str, bytes]) -> Export:
    """Recognise the files of a folder, given by their paths within it.

    Raises SpecError for more than 200,000 files.
    """
    if len(files) > _MOST_FILES:
        raise SpecError([Problem(f"there are {len(files)} files; {_MOST_FILES} can be taken at once")])
    found = Export()
    for path in sorted(files):
        if not path.endswith(_SUFFIXES):
            found.unknown.append((path, "it is neither YAML nor JSON"))
            continue
        try:
            known = _read(found, path, files[path])
        except (SpecError, _Malformed) as error:
            found.unknown.append((path, str(error).splitlines()[0]))
        else:
            if not known:
                found.unknown.append((path, "it is nothing of an OpenPAI cluster that is known here"))
    for job in found.jobs:
        job.state = found.states.get((job.user, job.name), "")
    return found


class _Malformed(Exception):
    """A part of a file does not have the form that its type has."""


def _read(found: Export, path: str, text: bytes) -> bool:
    known = False
    for data in _parsed(path, text):
        known = _take(found, path, data, text) or known
    return known


def _parsed(path: str, text: bytes) -> list[Any]:
    """The documents of a file; JSON is read without bounds, because lists of thousands of jobs come as JSON."""
    if path.endswith(".json"):
        try:
            return [json.loads(text)]
        except (ValueError, RecursionError):
            raise _Malformed("it is no JSON") from None
    return [source.data for source in parse_sources(text, path) if source.data is not None]


def _take(found: Export, path: str, data: Any, text: bytes) -> bool:
    if isinstance(data, list):
        taken = [_take_answer(found, each) for each in data if isinstance(each, dict)]
        return bool(taken) and all(taken)
    if not isinstance(data, dict):
        return False
    if "kind" in data and ("items" in data or "metadata" in data):
        items = data["items"] if isinstance(data.get("items"), list) else [data]
        taken = [_take_object(found, each) for each in items if isinstance(each, dict)]
        return all(taken)
    if "protocolVersion" in data or ("jobName" in data and isinstance(data.get("taskRoles"), list)):
        user, name = _whose(path, data)
        found.jobs.append(ExportedJob(user, name, text.decode(errors="replace")))
        return True
    if "machine-list" in data or "machine-sku" in data:
        found.layout = data
        return True
    if is_hived(data) and "hivedscheduler" not in data:
        found.hived = data
        return True
    if any(name in data for name in ("rest-server", "hivedscheduler", "authentication", "webportal")) or (
        isinstance(data.get("cluster"), dict) and "common" in data["cluster"]
    ):
        found.services = data
        return True
    if isinstance(data.get("storages"), list):
        return _take(found, path, data["storages"], text)
    if "totalCount" in data and isinstance(data.get("data"), list):
        return _take(found, path, data["data"], text)
    return _take_answer(found, data)


def _take_answer(found: Export, data: dict[str, Any]) -> bool:
    """Take one item in the REST API's form."""
    if isinstance(data.get("groupname"), str):
        extension = data.get("extension") if isinstance(data.get("extension"), dict) else {}
        _add_group(found, data["groupname"], data, extension or {})
    elif isinstance(data.get("username"), str) and ("grouplist" in data or "virtualCluster" in data):
        _add_user(found, data, admin=data.get("admin") is True or data.get("admin") == "true")
    elif isinstance(data.get("username"), str) and isinstance(data.get("name"), str) and "state" in data:
        found.states[data["username"], data["name"]] = str(data["state"]).upper()
    elif isinstance(data.get("name"), str) and ("volumeName" in data or "share" in data):
        found.storages[data["name"]] = {**found.storages.get(data["name"], {}), **data}
    else:
        return False
    return True


def _take_object(found: Export, data: dict[str, Any]) -> bool:
    """Take one Kubernetes object."""
    meta = data.get("metadata")
    kind, meta = data.get("kind"), meta if isinstance(meta, dict) else {}
    name, namespace = str(meta.get("name", "")), meta.get("namespace")
    if kind == "PersistentVolume":
        found.volumes[name] = data
    elif kind == "PersistentVolumeClaim":
        found.claims[name] = data
    elif kind in ("Secret", None) and isinstance(data.get("data"), dict):
        values = {key: _plain(str(value)) for key, value in data["data"].items()}
        return _take_secret(found, namespace, name, values)
    else:
        return False
    return True


def _take_secret(found: Export, namespace: Any, name: str, values: dict[str, str]) -> bool:
    if namespace == _TOKENS:
        found.tokens_exported = True
        found.tokens += [(_unhex(name), token) for token in values.values()]
    elif "groupname" in values and namespace in (None, _GROUPS):
        _add_group(found, values["groupname"], values, _object(values.get("extension", "{}")))
    elif "username" in values and namespace in (None, *_USERS):
        whole: dict[str, Any] = dict(values)
        for key, empty in (("grouplist", "[]"), ("extension", "{}")):
            if key in values:
                whole[key] = _json(values[key] or empty)
        _add_user(found, whole, admin=values.get("admin") == "true")
    else:
        return False
    return True


def _add_user(found: Export, data: Mapping[str, Any], *, admin: bool) -> None:
    name = data["username"]
    before = found.users.get(name) or ExportedUser(name)
    groups = data.get("grouplist")
    clusters = data.get("virtualCluster")
    if not isinstance(groups, list):  # accounts of YARN releases list virtual clusters
        groups = [each for each in clusters.split(",") if each] if isinstance(clusters, str) else []
        for group in groups:
            found.groups.setdefault(group, ExportedGroup(group, queues=(group,)))
    password, extension, email = data.get("password"), data.get("extension"), data.get("email")
    found.users[name] = ExportedUser(
        name,
        email if isinstance(email, str) and email else before.email,
        tuple(str(each) for each in groups) or before.groups,
        admin or before.admin,
        password if isinstance(password, str) and _HASH.fullmatch(password) else before.password_hash,
        extension if isinstance(extension, dict) and extension else before.extension,
    )


def _add_group(found: Export, name: str, data: Mapping[str, Any], extension: dict[str, Any]) -> None:
    acls = extension.get("acls")
    acls = acls if isinstance(acls, dict) else {}
    found.groups[name] = ExportedGroup(
        name,
        str(data.get("description") or ""),
        str(data.get("externalName") or ""),
        _names(acls.get("virtualClusters")),
        _names(acls.get("storageConfigs")),
        acls.get("admin") is True,
        {key: value for key, value in extension.items() if key != "acls"},
    )


def group_of(data: Mapping[str, Any]) -> ExportedGroup | None:
    """A group as the services configuration describes it."""
    if not isinstance(data.get("groupname"), str):
        return None
    found = Export()
    extension = data.get("extension")
    _add_group(found, data["groupname"], data, extension if isinstance(extension, dict) else {})
    return found.groups[data["groupname"]]


def _whose(path: str, data: Mapping[str, Any]) -> tuple[str, str]:
    """User and name of a job: from `USER~NAME.yaml` or `USER/NAME.yaml`, else the name in the file alone."""
    stem = posixpath.splitext(posixpath.basename(path))[0]
    name = str(data.get("name") or data.get("jobName") or stem)
    user, mark, rest = stem.partition("~")
    if mark:
        return user, rest or name
    folder = posixpath.basename(posixpath.dirname(path))
    return ("" if folder in ("", "jobs") else folder), name


def _names(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _plain(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise _Malformed("a Secret in it is not what kubectl prints") from None


def _unhex(name: str) -> str:
    try:
        return bytes.fromhex(name).decode()
    except ValueError:
        raise _Malformed(f"the Secret {name[:100]} has no user's name in hex") from None


def _object(text: str) -> dict[str, Any]:
    data = _json(text)
    return data if isinstance(data, dict) else {}


def _json(text: str) -> Any:
    try:
        return json.loads(text or "null")
    except (ValueError, RecursionError):
        raise _Malformed("a Secret in it has a field that is no JSON") from None


def finished(state: str) -> bool:
    """Whether a job has ended, by OpenPAI's name of its state."""
    return state in ("SUCCEEDED", "FAILED", "STOPPED")


def lines(found: Export) -> Iterator[str]:
    """The counts of users, groups, tokens, storages and jobs found, one line each."""
    counted = (
        ("users", len(found.users)),
        ("groups", len(found.groups)),
        ("tokens", len(found.tokens)),
        ("storages", len(found.claims) or len(found.storages)),
        ("jobs", len(found.jobs)),
    )
    yield from (f"{number} {what}" for what, number in counted if number)
