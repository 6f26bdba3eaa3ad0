"""Build the detail view of a job from stored data alone, so that it works without control."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from corral.model.messages import told_apart
from corral.model.placement import TaskPlacement, in_rank_order
from corral.model.receipts import ReceiptView
from corral.model.records import JobSummary, TaskRecord, rfc3339, rfc3339_or_none
from corral.model.runs import WorkReport
from corral.model.store_writes import JobRecord
from corral.model.views import (
    JobDetail,
    JobStatus,
    PlacementRecord,
    ReasonsView,
    ReasonView,
    RoleView,
    WorkView,
)

PLACEMENT_LIMIT: Final = 2000
"""Most tasks whose placement a job's detail lists."""
HIDDEN: Final = "(hidden)"
_JOB: Final = re.compile(r"\bjob ([0-9a-z]{13})\b")


def job_detail(
    record: JobRecord,
    tasks: list[TaskRecord],
    *,
    hide: bool,
    members: Sequence[TaskPlacement] = (),
    receipts: tuple[ReceiptView, ...] = (),
    allowed: tuple[str, ...] = (),
) -> JobDetail:
    """The detail view of a job; `members` are all its tasks in topology order.

    `hide` blanks the values of its environment and parameters.
    """
    document = document_of(record, hide=hide)
    spec = document.get("spec", {})
    summary = {name: getattr(record.summary, name) for name in record.summary.__struct_fields__}
    return JobDetail(
        **summary,
        document=document,
        status=JobStatus(record.run.placements),
        attempt=record.run.attempt,
        roles=tuple(_role(role, spec.get("replicaSpec", {}), record) for role in spec.get("roles", ())),
        placement=placement_records(document, tasks[:PLACEMENT_LIMIT], members),
        reasons=stored_reasons(record),
        links=_links(record),
        retries_left=_retries_left(spec.get("retryPolicy", {}), record),
        notes=record.run.notes,
        suspended=record.run.suspended,
        checkpointed_at=rfc3339_or_none(record.run.checkpointed_at),
        work=work_view(record.run.report),
        waited_seconds=_waited(record),
        waiting_since=rfc3339_or_none(_waits_since(record)),
        receipts=receipts,
        allowed=allowed,
        depends_on=tuple(need["job"] for need in spec.get("dependsOn", ())),
    )


def document_of(record: JobRecord, *, hide: bool) -> dict[str, Any]:
    """The canonical document with the job's current replicas, and the targets that the scheduler set."""
    document: dict[str, Any] = msgspec.json.decode(record.doc)
    counted = document["spec"]["replicaSpec"]
    if (count := record.run.roles.get(counted["role"])) is not None:
        counted["replicas"] = count.target
    counted["targetReplicas"] = record.run.targets
    if hide:
        hide_environment(document)
    return document


def work_view(report: WorkReport | None) -> WorkView | None:
    """What the program said of its work, as the API shows it; waits are one task's, not the job's."""
    if report is None:
        return None
    said = {name: getattr(report, name) for name in report.__struct_fields__ if name != "waited"}
    return WorkView(**said | {"at": rfc3339(report.at)})


def stored_reasons(record: JobRecord) -> ReasonsView | None:
    """Why the job waits, as control last stored it."""
    waiting = record.summary.waiting
    if waiting is None:
        return None
    return ReasonsView(ReasonView(waiting.code, waiting.message), (), waiting.ahead, waiting.possible)


def reasons_view(answer: dict[str, Any]) -> ReasonsView:
    """Control's answer (`corral.model.plan.Reasons` as JSON) as the API shows it."""
    return ReasonsView(
        msgspec.convert(answer["binding"], ReasonView),
        tuple(msgspec.convert(other, ReasonView) for other in answer.get("others", ())),
        answer.get("ahead", 0),
        answer.get("possible", True),
    )


def jobs_named(messages: Iterable[str]) -> tuple[str, ...]:
    """The ids of the jobs that messages mention, each once."""
    return tuple(dict.fromkeys(found for message in messages for found in _JOB.findall(message)))


def by_name(message: str, jobs: Iterable[JobSummary]) -> str:
    """The message with the names of jobs in place of their ids; jobs of one name are told apart."""
    for job, called in told_apart({each.id: (each.user, each.name) for each in jobs}).items():
        message = message.replace(job, called)
    return message


def placement_records(
    document: dict[str, Any], tasks: Sequence[TaskRecord], members: Sequence[TaskPlacement]
) -> tuple[PlacementRecord, ...]:
    """Placements of those tasks that have a node, with their ranks among all `members` (in topology order)."""
    ordered = in_rank_order(members, document["spec"]["roles"][0]["name"])
    ranks = {(place.role, place.index): rank for rank, place in enumerate(ordered)}
    return tuple(placement_record(task, ranks.get((task.role, task.index))) for task in tasks if task.node)


def placement_record(task: TaskRecord, rank: int | None = None) -> PlacementRecord:
    """The placement of a task."""
    return PlacementRecord(
        task.role, task.index, task.node, task.devices, task.host, task.ports, task.state, rank, task.share
    )  # fmt: skip


def hide_environment(document: dict[str, Any]) -> None:
    """Blank the values of the environment and the parameters, in place."""
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
        failed=count.faulty,
        stopped=max(0, count.stopped),
        elastic=least < most,
        min_replicas=least,
        max_replicas=most,
    )


def _waited(record: JobRecord) -> float:
    """Seconds of the waits that are over; for a job that started before waits were counted, its first wait."""
    run = record.run
    if run.waited or run.attempt or run.started_at is None:
        return round(run.waited, 3)
    return round(max(0.0, run.started_at - record.created_at), 3)


def _waits_since(record: JobRecord) -> float | None:
    """When the present wait began; a job that control has not processed yet waits since its submission."""
    run = record.run
    if run.waits_since is None and not run.roles and not run.suspended and record.live:
        return record.created_at
    return run.waits_since


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
