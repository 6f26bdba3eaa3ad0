"""Convert a canonical job to the short form that people edit; reading it back gives the same job."""

from __future__ import annotations

from typing import Any, Final

from corral.kernel.units import format_duration
from corral.spec.job import UnifiedJob

_ORDER: Final = ("name", "framework", "queue", "priority", "labels", "annotations", "tags", "parameters", "roles")
"""The first keys of a short file; the others follow in canonical order."""
_WORDS: Final = (
    ("nodes", "include"), ("code", "uri"), ("network", "rdma"), ("array", "size"), ("compileCache", "share"),
    ("preflight", "checks"),
)  # fmt: skip
"""Fields that may be written as one value, and the key that it stands for."""


def short_form(job: UnifiedJob) -> dict[str, Any]:
    """The shortest document that reads back as `job`, without `targetReplicas`, which only the scheduler writes."""
    document = job.to_document(complete=False)
    spec = document["spec"]
    count = spec.pop("replicaSpec")
    roles = {role["name"]: _role(role) for role in spec.pop("roles")}
    roles[count["role"]] = {"replicas": _replicas(count)} | roles[count["role"]]
    short = document["metadata"] | {"roles": roles} | _job(spec)
    if not job.is_elastic and count["role"] != next(iter(roles)):
        short["countedRole"] = count["role"]
    return {key: short[key] for key in (*_ORDER, *short) if key in short}


def shortened(document: dict[str, Any]) -> dict[str, Any]:
    """The short form of a canonical document; raises SpecError when it is not one."""
    return short_form(UnifiedJob.from_document(document))


def _replicas(count: dict[str, Any]) -> int | dict[str, int]:
    least, most, asked = count["minReplicas"], count["maxReplicas"], count["replicas"]
    if least == most:
        return int(asked)
    return {"min": least, "max": most} | ({"replicas": asked} if asked != most else {})


def _role(canonical: dict[str, Any]) -> dict[str, Any]:
    role = {key: value for key, value in canonical.items() if key != "name"}
    if (command := role.get("command", []))[:2] == ["sh", "-c"] and len(command) == 3:
        role["command"] = command[2]
    if "devices" in (resources := role.get("resources", {})):
        resources["devices"] = _only("count", resources["devices"])
    if "ports" in role and not any(port.get("start") for port in role["ports"]):
        role["ports"] = {port["name"]: port.get("count", 1) for port in role["ports"]}
    if "topology" in role:
        role["topology"] = _topology(role["topology"])
    if "nodes" in role:
        role["nodes"] = _only("include", role["nodes"])
    return _retry(role)


def _job(spec: dict[str, Any]) -> dict[str, Any]:
    job = _retry(spec)
    if "jobType" in job:
        job["framework"] = job.pop("jobType")
    if "topology" in job:
        job["topology"] = _topology(job["topology"])
    if "sharing" in job:
        job["sharing"] = _sharing(job["sharing"])
    for field, key in _WORDS:
        if field in job:
            job[field] = _only(key, job[field])
    if "maxDurationSeconds" in job:
        job["maxDuration"] = format_duration(job.pop("maxDurationSeconds"))
    if "hangAfterSeconds" in job:
        job["hangAfter"] = format_duration(job.pop("hangAfterSeconds"))
    if "deadlineSeconds" in job:
        job["deadline"] = format_duration(job.pop("deadlineSeconds"))
    if "barrier" in job:
        job["barrier"] = _only("enabled", {"enabled": False} | job["barrier"])
    if "storages" in job:
        job["storages"] = [_only("name", each) for each in job["storages"]]
    if "dependsOn" in job:
        job["after"] = [_only("job", dependency) for dependency in job.pop("dependsOn")]
    return job


def _topology(topology: dict[str, Any]) -> Any:
    if "spread" in topology:
        topology = topology | {"spread": _only("level", topology["spread"])}
    return _only("required", topology)


def _sharing(sharing: dict[str, Any]) -> Any:
    if "antiAffinity" in sharing:
        sharing = sharing | {"antiAffinity": _only("tags", sharing["antiAffinity"])}
    return "exclusive" if sharing == {"exclusive": True} else sharing


def _retry(part: dict[str, Any]) -> dict[str, Any]:
    """Replace a retry policy that sets only maxRetries by `retry` and the number."""
    if (policy := part.get("retryPolicy")) is None or policy.keys() != {"maxRetries"}:
        return part
    return {key: value for key, value in part.items() if key != "retryPolicy"} | {"retry": policy["maxRetries"]}


def _only(key: str, value: dict[str, Any]) -> Any:
    """The value of `key` when it is the only key, for fields that may be abbreviated so."""
    return value[key] if value.keys() == {key} else value
