"""Translate a validated job of protocol v2 to the canonical document.

Values with a canonical field go there. The protocol itself, without its secrets, is kept in an annotation: the
framework reads OpenPAI's own fields from it, and the API returns it as it was.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import quote

from corral.compat.openpai.language.command_template import as_text, fill, render
from corral.compat.openpai.language.hived import HivedTerms, RoleTerms, hived_terms, job_cell
from corral.compat.openpai.language.names import (
    JOB_TYPE,
    NAME,
    PORTS,
    PROTOCOL,
    REGISTRIES,
    REGISTRIES_FILE,
    ROLES,
    SECRET_PREFIX,
    SECRETS_FOLDER,
    USER,
    VERSION,
    dns_label,
    dns_labels,
)
from corral.compat.openpai.language.protocol import ProtocolError, by_name
from corral.spec.completion_rules import reachable
from corral.spec.errors import Path, Problem, SpecError, describe
from corral.spec.job import API_VERSION, KIND
from corral.spec.job_parts import MAX_REPLICAS
from corral.spec.own_file import MASK
from corral.spec.retry_rules import ALWAYS, retry_policy, task_retry_policy

DEFAULT_QUEUE: Final = "default"
DEFAULT_SHM_MB: Final = 512
ALWAYS_THERE: Final = ("ssh", "http")
"""Labels of ports of which every task has at least one."""
_MOST_SECRETS: Final = 99
_DOCKER_HUB: Final = "https://index.docker.io/v1/"
_OF_DOCKER_HUB: Final = frozenset({"", "docker.io", "index.docker.io", "registry-1.docker.io", "hub.docker.com"})
_LONGEST_NAME: Final = 63
_TOLD: Final = {
    "running": "started",
    "succeeded": "succeeded",
    "failed": "failed",
    "stopped": "stopped",
    "retried": "retried",
}
"""Flags of `jobStatusChangeNotification`, and what each means."""


@dataclass(frozen=True, slots=True)
class OpenPaiJob:
    """A job of OpenPAI, translated."""

    document: dict[str, Any]
    """The canonical document; it contains no secret."""
    secrets: dict[str, str]
    """The protocol's own secrets by name; nested ones are named `outer.inner`."""
    protocol: dict[str, Any]
    """The rendered protocol, its secrets masked."""


def to_job(protocol: Mapping[str, Any], *, user: str = "") -> OpenPaiJob:
    """Translate a validated protocol to the job of `user`.

    Raises ProtocolError for values that OpenPAI's schema accepts but no job can have.
    """
    _check_roles(protocol)
    rendered, terms = render(protocol), hived_terms(protocol)
    secrets = dict(_flat(protocol.get("secrets", {}))) if isinstance(protocol.get("secrets"), dict) else {}
    if len(secrets) > _MOST_SECRETS:
        _refuse(("secrets",), f"{len(secrets)} secrets; a job has at most {_MOST_SECRETS}")
    if registries := docker_config(protocol):
        secrets[REGISTRIES] = registries
    masked = mask(protocol)
    names = dns_labels(rendered["taskRoles"])
    ports = dns_labels(label for role in rendered["taskRoles"].values() for label in _ports(role))
    cell = job_cell(protocol, terms)
    roles = [
        {"name": names[name], **_role(role, rendered, terms.of(name), ports, cell), **_secrets(secrets)}
        for name, role in rendered["taskRoles"].items()
    ]
    annotations = {
        NAME: protocol["name"],
        VERSION: "2",
        ROLES: _json({label: name for name, label in names.items()}),
        PORTS: _json({name: label for label, name in ports.items()}),
        PROTOCOL: _json(masked),
    }
    if user:
        annotations[USER] = user
    spec = {"jobType": JOB_TYPE, **_standing(protocol, terms, cell), **_course(protocol)}
    spec["replicaSpec"] = {"role": roles[0]["name"], "replicas": roles[0].pop("replicas")}
    spec["roles"] = roles
    metadata = {"name": job_label(protocol["name"]), "annotations": annotations}
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    return OpenPaiJob(document, secrets, {**rendered, **mask(rendered)})


def to_protocol(document: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol that a canonical document was made from, its secrets masked.

    Raises SpecError when it was not made from one.
    """
    annotations = document.get("metadata", {}).get("annotations", {})
    try:
        protocol = json.loads(annotations[PROTOCOL])
    except (KeyError, ValueError):
        protocol = None
    if not isinstance(protocol, dict):
        raise SpecError([Problem("this job was not made from a file of OpenPAI", ("metadata", "annotations"))])
    return protocol


def rendered_protocol(document: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol of `to_protocol`, rendered.

    Templates are filled in, prerequisites and deployments are by name, and each role has its `entrypoint`.
    """
    return render(to_protocol(document))


def job_label(name: str) -> str:
    """The DNS label of an OpenPAI job's name.

    A name that is not a label gets a hash as suffix, so that `A_b` and `a-b` are two jobs.
    """
    label = dns_label(name)
    if label == name:
        return name
    mark = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{label[: _LONGEST_NAME - len(mark) - 1].rstrip('-')}-{mark}"


def mask(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol without its secrets and without passwords of registries."""
    masked = dict(protocol)
    if "secrets" in masked:
        masked["secrets"] = MASK
    given = masked.get("prerequisites")
    if isinstance(given, list):
        masked["prerequisites"] = [_without_password(each) for each in given]
    elif isinstance(given, dict):
        images = {name: _without_password(each) for name, each in given.get("dockerimage", {}).items()}
        masked["prerequisites"] = {**given, "dockerimage": images}
    return masked


def secret_name(name: str) -> str:
    """The name of a protocol's own secret among those of the job."""
    return f"{SECRET_PREFIX}{name}"


def asked_storages(protocol: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """The job's storages, each with its mountPath; [] for the user's defaults, None for no storages."""
    extras = protocol.get("extras", {})
    if isinstance(given := extras.get("storages"), list):
        names = [(each["name"], each.get("mountPath")) for each in given if isinstance(each, dict) and "name" in each]
    elif (old := _teamwise(extras)) is not None:
        names = [(each, None) for each in old if isinstance(each, str)]
    else:
        return None
    return [{"name": str(name), "mountPath": str(path or f"/mnt/{name}")} for name, path in names]


def plugins(protocol: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The requested runtime plug-ins; malformed entries, which OpenPAI accepts, are dropped."""
    given = protocol.get("extras", {}).get("com.microsoft.pai.runtimeplugin")
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def is_gang(protocol: Mapping[str, Any]) -> bool:
    """Whether all tasks of the job start together."""
    return protocol.get("extras", {}).get("gangAllocation") not in (False, "false")


def told_events(protocol: Mapping[str, Any]) -> list[str]:
    """The changes that `jobStatusChangeNotification` asks to be told, in the words of the canonical document."""
    asked = protocol.get("extras", {}).get("jobStatusChangeNotification")
    return [word for flag, word in _TOLD.items() if asked.get(flag) is True] if isinstance(asked, dict) else []


def registry_auth(protocol: Mapping[str, Any], image: str) -> dict[str, str]:
    """The registry login of a dockerimage prerequisite, with its secrets filled in; {} for an open one."""
    given = render(protocol)["prerequisites"]["dockerimage"].get(image, {}).get("auth") or {}
    values = {"$secrets": protocol.get("secrets", {})}
    return {key: fill(as_text(value), values) for key, value in given.items()}


def public_keys(extension: Mapping[str, Any]) -> str:
    """The public keys in the `extension` of an OpenPAI account, one per line."""
    kept = extension.get("sshKeys")
    values = [each.get("value") for each in kept if isinstance(each, dict)] if isinstance(kept, list) else []
    return "\n".join(" ".join(each.split()) for each in values if isinstance(each, str) and each.strip())


def docker_config(protocol: Mapping[str, Any]) -> str:
    """Logins of the registries of the task roles' images, as Docker's `config.json`.

    "" when all of them are open.
    """
    logins = {}
    for image in dict.fromkeys(role["dockerImage"] for role in protocol["taskRoles"].values()):
        auth = registry_auth(protocol, image)
        user, password = auth.get("username", ""), auth.get("password", "")
        if user and password and password != MASK and "<%" not in user + password:
            login = base64.b64encode(f"{user}:{password}".encode()).decode()
            logins[_registry(auth.get("registryuri", ""))] = {"username": user, "password": password, "auth": login}
    return _json({"auths": logins}) if logins else ""


def _registry(uri: str) -> str:
    """The host of a registry as Docker knows it."""
    host = uri.strip().split("://", 1)[-1].split("/", 1)[0]
    return _DOCKER_HUB if host in _OF_DOCKER_HUB else host


def _teamwise(extras: Mapping[str, Any]) -> list[Any] | None:
    """The storages that the older `teamwise_storage` plug-in names; None without it."""
    for each in plugins({"extras": extras}):
        if each.get("plugin") == "teamwise_storage":
            parameters = each.get("parameters")
            names = parameters.get("storageConfigNames") if isinstance(parameters, dict) else None
            return names if isinstance(names, list) else []
    return None


def _check_roles(protocol: Mapping[str, Any]) -> None:
    """Refuse values that OpenPAI's schema accepts but no task can have."""
    roles = protocol["taskRoles"]
    if not isinstance(roles, dict) or not roles:
        _refuse(("taskRoles",), f"a job has at least one task role, got {describe(roles)}")
    images = by_name([each for each in protocol.get("prerequisites", ()) if each["type"] == "dockerimage"])
    for name, role in roles.items():
        path: Path = ("taskRoles", name)
        for field, amount in role["resourcePerInstance"].items():
            if isinstance(amount, int) and amount < 0:
                _refuse((*path, "resourcePerInstance", field), f"{field} should be >= 0, got {amount}")
        ports = role["resourcePerInstance"].get("ports", {})
        if not isinstance(ports, dict) or any(count < 0 for count in ports.values()):
            _refuse((*path, "resourcePerInstance", "ports"), "ports should be labels, each with how many")
        if role.get("extraContainerOptions", {}).get("shmMB", 0) < 0:
            _refuse((*path, "extraContainerOptions", "shmMB"), "shmMB should be >= 0")
        if role["dockerImage"] not in images:
            _refuse((*path, "dockerImage"), f"Prerequisite {role['dockerImage']} does not exist.")
    total = sum(role.get("instances", 1) for role in roles.values())
    if total > MAX_REPLICAS:
        _refuse(("taskRoles",), f"{total} tasks in all; a job has at most {MAX_REPLICAS}")


def _standing(protocol: Mapping[str, Any], terms: HivedTerms, cell: str) -> dict[str, Any]:
    """Queue, priority and preemption of the job; `cell` is the pinned cell of all its roles."""
    queue = protocol.get("defaults", {}).get("virtualCluster")
    standing: dict[str, Any] = {"queue": as_text(queue) if queue else DEFAULT_QUEUE, "priority": terms.priority}
    if terms.lazy_preemption:
        standing["lazyPreemption"] = True
    if cell:
        standing["pinnedCell"] = cell
    return standing


def _course(protocol: Mapping[str, Any]) -> dict[str, Any]:
    """Retries, barrier, gang, network and storages of the job."""
    course: dict[str, Any] = {"retryPolicy": retry_policy(protocol.get("jobRetryCount", 0))}
    if is_gang(protocol):
        course["barrier"] = {"enabled": True}
    else:
        course["gang"] = False
    options = [role.get("extraContainerOptions", {}) for role in protocol["taskRoles"].values()]
    if any(each.get("infiniband") for each in options):
        course["network"] = {"rdma": "required"}
    storages = asked_storages(protocol)
    if storages is not None:
        course["storages"] = storages or [{"name": ""}]
    if events := told_events(protocol):
        course["notifications"] = {"events": events}
    return course


def _role(
    role: Mapping[str, Any], rendered: Mapping[str, Any], terms: RoleTerms, ports: Mapping[str, str], cell: str
) -> dict[str, Any]:
    """One task role without name and secrets; `cell` is the pinned cell of the whole job."""
    asked, instances = role["resourcePerInstance"], role.get("instances", 1)
    shared = role.get("extraContainerOptions", {}).get("shmMB", DEFAULT_SHM_MB)
    return {
        "replicas": instances,
        "image": rendered["prerequisites"]["dockerimage"][role["dockerImage"]]["uri"],
        "command": ["bash", "-c", role["entrypoint"]],
        "resources": {
            "cpu": str(asked["cpu"]),
            "memory": f"{asked['memoryMB']}Mi" if asked["memoryMB"] else "0",
            "devices": _devices(asked["gpu"], terms),
        },
        "shm": f"{shared}Mi" if shared else "",
        "ports": [{"name": ports[label], "count": count} for label, count in _ports(role).items()],
        "completion": _completion(role.get("completion", {}), instances),
        "retryPolicy": task_retry_policy(max(role.get("taskRetryCount", 0), ALWAYS), gang=is_gang(rendered)),
        **_place(terms, cell),
    }


def _place(terms: RoleTerms, cell: str) -> dict[str, str]:
    """The affinity group of the tasks, and their pinned cell unless the whole job has one."""
    said = {"pinnedCell": "" if cell else terms.pinned_cell, "affinityGroup": terms.affinity_group}
    return {field: name for field, name in said.items() if name}


def _devices(count: int, terms: RoleTerms) -> dict[str, Any]:
    return {"count": count, "model": terms.sku_type} if terms.sku_type and count else {"count": count}


def _completion(given: Mapping[str, Any], instances: int) -> dict[str, int]:
    """The numbers of ended tasks that end the job; as in OpenPAI, 0 and null mean the default."""
    failed = given.get("minFailedInstances") or 1
    succeeded = given.get("minSucceededInstances") or instances
    return {"minFailed": reachable(failed), "minSucceeded": reachable(succeeded)}


def _ports(role: Mapping[str, Any]) -> dict[str, int]:
    """The number of ports per label of a task, including those of ALWAYS_THERE."""
    asked = role["resourcePerInstance"].get("ports", {})
    counts = {label: count for label, count in asked.items() if count}
    return {**counts, **{label: 1 for label in ALWAYS_THERE if label not in counts}}


def _secrets(secrets: Mapping[str, str]) -> dict[str, Any]:
    """The protocol's own secrets as files that the runtime keeps in memory; it never gets those of registries."""
    files = [{"name": secret_name(each), "file": f"{SECRETS_FOLDER}{quote(each, safe='')}"} for each in secrets]
    for each in files:
        if each["name"] == secret_name(REGISTRIES):
            each["file"] = REGISTRIES_FILE
    return {"secrets": files} if files else {}


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """The secrets by the names that templates use."""
    for key, inner in value.items():
        name = f"{above}{key}"
        if isinstance(inner, list):
            inner = {str(index): each for index, each in enumerate(inner)}
        if isinstance(inner, dict):
            yield from _flat(inner, f"{name}.")
        elif inner is not None:
            yield name, as_text(inner)


def _without_password(prerequisite: dict[str, Any]) -> dict[str, Any]:
    auth = prerequisite.get("auth")
    if not isinstance(auth, dict) or "password" not in auth:
        return prerequisite
    if is_template(auth["password"]):
        return prerequisite
    return {**prerequisite, "auth": {**auth, "password": MASK}}


def is_template(password: Any) -> bool:
    """Whether a registry's password only refers to one of the job's secrets."""
    text = str(password).strip()
    return text.startswith("<%") and text.endswith("%>") and text.count("<%") == 1


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _refuse(path: Path, message: str) -> NoReturn:
    raise ProtocolError([Problem(message, path)], message)
