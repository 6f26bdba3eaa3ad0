"""Translate a Framework of FrameworkLauncher, which ran on YARN, to a canonical job.

There is no application master, so the descriptor's fields about it are ignored.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from corral.compat.openpai.language.names import DEFAULT_FILES, NAME, PORTS, ROLES, USER, dns_labels
from corral.compat.openpai.language.translation import job_label
from corral.spec.errors import Path, Problem, SpecError
from corral.spec.job import API_VERSION, KIND
from corral.spec.retry_rules import MOST_RETRIES, retry_policy

JOB_TYPE: Final = "frameworklauncher"
_OF_LAUNCHER: Final = "launcher.corral.dev/"
DESCRIPTOR: Final = f"{_OF_LAUNCHER}descriptor"
"""The whole FrameworkDescriptor as JSON text."""
ADDRESS: Final = f"{_OF_LAUNCHER}address"
"""The address of the launcher's REST API that tasks are given."""
ROOT: Final = "/Launcher"
"""The folder of FrameworkLauncher's own files on the default file system."""
_ZIP: Final = ".zip"
_THIS_MACHINE: Final = "file://"


@dataclass(frozen=True)
class Cluster:
    """Inputs of the translation besides the descriptor."""

    fs_uri: str = ""
    """The file system of locations that name none."""
    address: str = ""
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    """The GPU type of each node, as an administrator configured it."""


def launcher_job(name: str, descriptor: Mapping[str, Any], user: str, cluster: Cluster) -> dict[str, Any]:
    """The canonical document of the Framework `name` of `user`, from its validated descriptor.

    Raises SpecError when no job can express it.
    """
    platform = descriptor["platformSpecificParameters"]
    wanted = {role: said for role, said in descriptor["taskRoles"].items() if said["taskNumber"]}
    if not wanted:
        raise _refused(("taskRoles",), "no role has a task; a job needs at least one")
    roles = dns_labels(wanted)
    labels = dns_labels(
        label for said in wanted.values() for label in said["taskService"]["resource"]["portDefinitions"]
    )
    made = [_role(roles[role], said, platform, labels, cluster) for role, said in wanted.items()]
    first = made[0]
    spec: dict[str, Any] = {
        "jobType": JOB_TYPE,
        "exitTable": JOB_TYPE,
        "queue": platform["queue"],
        "gang": platform["gangAllocation"],
        "retryPolicy": _retries(descriptor["retryPolicy"]),
        "replicaSpec": {"role": first["name"], "replicas": first.pop("replicas")},
        "roles": made,
        "inputs": _inputs(wanted, cluster.fs_uri),
    }
    if platform["antiaffinityAllocation"] or _fixed_ports_twice(wanted):
        spec["sharing"] = {"oneTaskPerNode": True}
    annotations = {
        NAME: name,
        USER: user,
        ROLES: json.dumps({label: role for role, label in roles.items()}),
        PORTS: json.dumps({corral: label for label, corral in labels.items()}),
        DESCRIPTOR: json.dumps(descriptor, ensure_ascii=False, separators=(",", ":")),
        ADDRESS: cluster.address,
        DEFAULT_FILES: cluster.fs_uri,
    }
    metadata = {"name": job_label(name), "annotations": annotations}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _role(
    name: str, said: Mapping[str, Any], platform: Mapping[str, Any], labels: Mapping[str, str], cluster: Cluster
) -> dict[str, Any]:
    service, policy = said["taskService"], said["applicationCompletionPolicy"]
    asked = service["resource"]
    own = said["platformSpecificParameters"]
    devices: dict[str, Any] = {"count": asked["gpuNumber"], "kind": "gpu" if asked["gpuNumber"] else ""}
    if asked["gpuAttribute"]:
        devices["bitmap"] = f"{asked['gpuAttribute']:#x}"
    resources = {
        "cpu": str(asked["cpuNumber"]),
        "memory": f"{asked['memoryMB']}Mi" if asked["memoryMB"] else "0",
        "disk": f"{asked['diskMB']}Mi" if asked["diskMB"] else "0",
        "devices": devices,
    }
    role: dict[str, Any] = {
        "name": name,
        "replicas": said["taskNumber"],
        "command": ["bash", "-c", _script(service)],
        "resources": resources,
        "ports": [
            {"name": labels[label], "count": port["count"], "start": port["start"]}
            for label, port in asked["portDefinitions"].items()
            if port["count"]
        ],
        "completion": {
            "minFailed": policy["minFailedTaskCount"] or -1,
            "minSucceeded": policy["minSucceededTaskCount"] or -1,
        },
        "retryPolicy": _retries(said["taskRetryPolicy"]),
    }
    if label := own["taskNodeLabel"] or platform["taskNodeLabel"]:
        role["nodes"] = {"expressions": [{"key": label, "operator": "Exists"}]}
    if sort := own["taskNodeGpuType"] or platform["taskNodeGpuType"]:
        _on_gpus_of(role, sort, cluster)
    return role


def _on_gpus_of(role: dict[str, Any], sort: str, cluster: Cluster) -> None:
    """Restrict a role to one type of GPU: by configured nodes if any have it, else by device model."""
    known = [node for node, has in cluster.gpu_types.items() if has in sort.split(",")]
    if known:
        role.setdefault("nodes", {})["include"] = known
    elif role["resources"]["devices"]["count"]:
        role["resources"]["devices"]["model"] = sort


def _retries(policy: Mapping[str, Any]) -> dict[str, Any]:
    return retry_policy(min(policy["maxRetryCount"], MOST_RETRIES), fancy=policy["fancyRetryPolicy"])


def _script(service: Mapping[str, Any]) -> str:
    """The entry point, preceded by commands that unpack its zipped sources into folders of the same name."""
    lines = []
    for place in service["sourceLocations"]:
        name = posixpath.basename(place.rstrip("/"))
        if name.endswith(_ZIP):
            lines.append(_unpacked(name))
    return "\n".join([*lines, service["entryPoint"]])


def _unpacked(name: str) -> str:
    word = "'" + name.replace("'", "'\\''") + "'"
    kept = "'." + name.replace("'", "'\\''") + ".packed'"
    unzip = f"unzip -q {kept} -d {word} 2>/dev/null || python3 -m zipfile -e {kept} {word}"
    return f"if [ -f {word} ]; then mv -- {word} {kept} && mkdir -- {word} && {{ {unzip}; }} || exit 1; fi"


def _inputs(roles: Mapping[str, Any], fs_uri: str) -> list[dict[str, str]]:
    """The sources of all services; each is fetched under its own name into the working folder."""
    found: dict[str, str] = {}
    for role, said in roles.items():
        for at, place in enumerate(said["taskService"]["sourceLocations"]):
            path: Path = ("taskRoles", role, "taskService", "sourceLocations", at)
            uri = _uri(path, place, fs_uri)
            name = posixpath.basename(uri.rstrip("/"))
            if not name or name in (".", ".."):
                raise _refused(path, f"{place[:200]} has no name that it could be kept under")
            if found.setdefault(name, uri) != uri:
                raise _refused(path, f"another source is called {name[:200]}; give one of them another name")
    return [{"uri": uri, "path": name} for name, uri in found.items()]


def _uri(path: Path, place: str, fs_uri: str) -> str:
    if "://" in place:
        return place
    if not place.startswith("/"):
        raise _refused(path, f"{place[:200]} is neither a URI nor an absolute path on the default file system")
    return (fs_uri.rstrip("/") if fs_uri else _THIS_MACHINE) + place


def _fixed_ports_twice(roles: Mapping[str, Any]) -> bool:
    """Whether two tasks need the same port number, and therefore different nodes."""
    taken: set[int] = set()
    for said in roles.values():
        for port in said["taskService"]["resource"]["portDefinitions"].values():
            if not port["start"]:
                continue
            numbers = set(range(port["start"], port["start"] + port["count"]))
            if said["taskNumber"] > 1 or taken & numbers:
                return True
            taken |= numbers
    return False


def _refused(path: Path, why: str) -> SpecError:
    return SpecError([Problem(why, path, filename="FrameworkDescriptor")])
