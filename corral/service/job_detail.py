"""Why: the page of one job is put together from what is stored alone, so it works when nothing else does."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from corral.model.records import TaskRecord
from corral.model.views import JobDetail, PlacementRecord, ReasonsView, ReasonView, RoleView
from corral.model.writes import JobRecord

PLACEMENT_LIMIT: Final = 2000
"""How many tasks' places a job's detail has."""
HIDDEN: Final = "(hidden)"


def job_detail(record: JobRecord, tasks: list[TaskRecord], *, hide: bool) -> JobDetail:
    """Everything about a job; `hide` blanks the values of its environment."""
    document = msgspec.json.decode(record.doc)
    if hide:
        hide_environment(document)
    spec = document.get("spec", {})
    summary = {name: getattr(record.summary, name) for name in record.summary.__struct_fields__}
    return JobDetail(
        **summary,
        document=document,
        attempt=record.run.attempt,
        roles=tuple(_role(role, spec.get("replicaSpec", {}), record) for role in spec.get("roles", ())),
        placement=tuple(placement_record(task) for task in tasks if task.node)[:PLACEMENT_LIMIT],
        reasons=stored_reasons(record),
        links=_links(record),
        retries_left=_retries_left(spec.get("retryPolicy", {}), record),
        depends_on=tuple(need["job"] for need in spec.get("dependsOn", ())),
    )


def stored_reasons(record: JobRecord) -> ReasonsView | None:
    """Why the job waits, as control last wrote it."""
    waiting = record.summary.waiting
    if waiting is None:
        return None
    return ReasonsView(ReasonView(waiting.code, waiting.message), (), waiting.ahead, waiting.possible)


def placement_record(task: TaskRecord) -> PlacementRecord:
    """Where a task runs."""
    return PlacementRecord(task.role, task.index, task.node, task.devices, task.host, task.ports, task.state)


def hide_environment(document: dict[str, Any]) -> None:
    """Blank what only the owner may read."""
    for role in document.get("spec", {}).get("roles", ()):
        role["env"] = dict.fromkeys(role.get("env", {}), HIDDEN)
    if parameters := document.get("spec", {}).get("parameters"):
        document["spec"]["parameters"] = dict.fromkeys(parameters, HIDDEN)


def _role(role: dict[str, Any], counted: dict[str, Any], record: JobRecord) -> RoleView:
    name = role["name"]
    is_counted = counted.get("role") == name
    replicas = counted.get("replicas", 1) if is_counted else role.get("replicas", 0)
    least = counted.get("minReplicas", replicas) if is_counted else replicas
    most = counted.get("maxReplicas", replicas) if is_counted else replicas
    count = record.run.roles.get(name)
    if count is None:
        return RoleView(name, replicas, replicas, elastic=least < most, min_replicas=least, max_replicas=most)
    return RoleView(
        name,
        replicas,
        count.target,
        total=count.total,
        waiting=max(0, count.total - count.running - count.succeeded - count.failed),
        running=count.running,
        succeeded=count.succeeded,
        failed=count.failed,
        elastic=least < most,
        min_replicas=least,
        max_replicas=most,
    )


def _links(record: JobRecord) -> dict[str, str]:
    base = f"/api/v3/jobs/{record.id}"
    links = {name: f"{base}/{name}" for name in ("tasks", "events", "logs", "explain")}
    if record.array_parent:
        links["array"] = f"/api/v3/jobs?tag=array:{record.array_parent}"
    return links


def _retries_left(policy: dict[str, Any], record: JobRecord) -> int | None:
    most: int = policy.get("maxRetries", 0)
    if most == -1:
        return None
    return max(0, most - record.run.retries.accountable)
