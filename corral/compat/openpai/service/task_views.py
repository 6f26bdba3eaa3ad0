"""Views of a job's tasks and of their attempts, present and past, for OpenPAI's clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.terms import (
    attempt_word,
    end_word,
    exit_spec_view,
    launched,
    milliseconds,
    openpai_code,
    ports_view,
    state_word,
)
from corral.compat.openpai.records.views import Hived, RoleLines, RoleStanding, TaskAttempt, TaskDetail, TaskLine
from corral.compat.openpai.service.views import Shown
from corral.kernel.ids import AttemptId, attempt_id
from corral.model.runs import TaskRun
from corral.runtime.error_block import told_code

_INDEXES: Final = msgspec.json.Decoder(tuple[int, ...])
_PORTS: Final = msgspec.json.Decoder(dict[str, tuple[int, ...]])


def roles_of_tasks(job: Shown, tasks: Sequence[TaskRun]) -> dict[str, RoleLines]:
    """The task roles of a job's present attempt; before control processes the job, those of its document."""
    run = job.record.run
    if not tasks and not run.roles:
        at = job.record.created_at
        tasks = [TaskRun(role, each, created_at=at) for role, count in job.replicas.items() for each in range(count)]
    lines: dict[str, list[TaskLine]] = {role: [] for role in job.roles}
    for task in tasks:
        lines.setdefault(task.role, []).append(_task_line(job, task))
    return _role_lines(job, lines)


def roles_of_rows(job: Shown, rows: Sequence[Any]) -> dict[str, RoleLines]:
    """The task roles of a past attempt, from its tasks' attempts (ordered by role, index and number)."""
    latest: dict[tuple[str, int], Any] = {}
    tries: dict[tuple[str, int], list[Any]] = {}
    for row in rows:
        latest[row.role, row.index] = row
        tries.setdefault((row.role, row.index), []).append(row)
    lines: dict[str, list[TaskLine]] = {role: [] for role in job.roles}
    for (role, index), row in latest.items():
        runs = tries[role, index]
        kept = msgspec.structs.asdict(task_attempt(job, row))
        line = TaskLine(
            **kept,
            task_index=index,
            task_uid=_uid(job, row.job_attempt, role, index),
            task_state=end_word(row.code),
            retries=len(runs) - 1,
            accountable_retries=len(runs) - 1,
            created_time=milliseconds(runs[0].started_at),
            launched_time=launched(runs[0].started_at, row.ended_at),
            completed_time=milliseconds(row.ended_at),
        )
        lines.setdefault(role, []).append(line)
    return _role_lines(job, lines)


def _role_lines(job: Shown, lines: Mapping[str, Sequence[TaskLine]]) -> dict[str, RoleLines]:
    named = ((job.roles.get(role, role), found) for role, found in lines.items())
    return {name: RoleLines(RoleStanding(name), tuple(found)) for name, found in named}


def _task_line(job: Shown, task: TaskRun) -> TaskLine:
    state = str(task.state)
    code = None if task.completion is None else task.completion.code
    ended_at = task.ended_at if state == "completed" else None
    given = current_run(job, task)
    return TaskLine(
        given.attempt_id,
        given.attempt_state,
        given.current_attempt_created_time,
        given.current_attempt_launched_time,
        given.current_attempt_completed_time,
        given.container_id,
        given.container_ip,
        given.container_node_name,
        given.container_ports,
        given.container_gpus,
        given.container_log,
        given.container_exit_code,
        given.container_exit_spec,
        given.container_exit_diagnostics,
        given.hived,
        task_index=task.index,
        task_uid=_uid(job, job.record.run.attempt, task.role, task.index),
        task_state=state_word(state, code),
        retries=task.retries.total,
        accountable_retries=task.retries.accountable,
        created_time=milliseconds(task.created_at),
        launched_time=launched(task.started_at, ended_at),
        completed_time=milliseconds(ended_at),
    )


def current_run(job: Shown, task: TaskRun) -> TaskAttempt:
    """The attempt that a task is in, or was in last."""
    place, ended, state = task.placement, task.completion, str(task.state)
    code = None if ended is None else ended.code
    created = task.created_at if task.attempt == 0 else task.started_at
    own = job.record.run.attempt_of(task)
    return TaskAttempt(
        attempt_id=task.attempt,
        attempt_state=attempt_word(state, code),
        current_attempt_created_time=milliseconds(created),
        current_attempt_launched_time=launched(task.started_at, task.ended_at),
        current_attempt_completed_time=milliseconds(task.ended_at),
        container_id=own if place is not None else None,
        container_ip=task.host or None,
        container_node_name=None if place is None else node_name(place.node),
        container_ports=ports_view(task.ports),
        container_gpus=None if place is None else ",".join(map(str, place.devices)) or None,
        container_log=_log(job, job.record.run.attempt, task.role, task.index, task.attempt),
        container_exit_code=openpai_code(ended),
        container_exit_spec=exit_spec_view(openpai_code(ended)),
        container_exit_diagnostics=None if ended is None else ended.diagnostics,
        hived=_hived(job, task.role),
    )


def task_attempt(job: Shown, row: Any, before: Any = None, created_at: float | None = None) -> TaskAttempt:
    """One attempt of a task from the history; its creation is the end of `before`, or `created_at` without one."""
    begun = (
        row.started_at if before is None and created_at is None else created_at if before is None else before.ended_at
    )
    devices = _INDEXES.decode(row.devices)
    code = None if row.code is None else told_code(row.code, row.diagnostics)
    return TaskAttempt(
        attempt_id=row.task_attempt,
        attempt_state="RUNNING" if row.ended_at is None else end_word(row.code),
        current_attempt_created_time=milliseconds(begun),
        current_attempt_launched_time=launched(row.started_at, row.ended_at),
        current_attempt_completed_time=milliseconds(row.ended_at),
        container_id=row.id,
        container_ip=row.host or None,
        container_node_name=node_name(row.node) if row.node else None,
        container_ports=ports_view(_PORTS.decode(row.ports)),
        container_gpus=",".join(map(str, devices)) or None,
        container_log=_log(job, row.job_attempt, row.role, row.index, row.task_attempt),
        container_exit_code=code,
        container_exit_spec=exit_spec_view(code),
        container_exit_diagnostics=None if row.code is None else row.diagnostics,
        hived=_hived(job, row.role),
    )


def task_detail(job: Shown, number: int, key: tuple[str, int], task: TaskRun | None, rows: Sequence[Any]) -> TaskDetail:
    """One task of attempt `number` of a job with all its own attempts, the latest first as in OpenPAI.

    `task` is its present state, if that attempt is current.
    """
    role, index = key
    runs: list[TaskAttempt] = []
    for place, row in enumerate(rows):
        current = task is not None and row.task_attempt == task.attempt
        created = None if task is None or place else task.created_at
        runs.append(
            current_run(job, task)
            if current and task is not None
            else task_attempt(job, row, rows[place - 1] if place else None, created)
        )
    if task is not None and all(run.attempt_id != task.attempt for run in runs):
        runs.append(current_run(job, task))
    line = None if task is None else _task_line(job, task)
    last = runs[-1]
    return TaskDetail(
        task_index=index,
        task_uid=_uid(job, number, role, index),
        task_state=last.attempt_state if line is None else line.task_state,
        retries=len(runs) - 1 if line is None else line.retries,
        accountable_retries=len(runs) - 1 if line is None else line.accountable_retries,
        created_time=runs[0].current_attempt_created_time if line is None else line.created_time,
        launched_time=runs[0].current_attempt_launched_time,
        completed_time=last.current_attempt_completed_time if line is None else line.completed_time,
        username=job.record.user,
        job_name=job.name,
        job_attempt_id=number,
        task_role_name=job.roles.get(role, role),
        attempts=tuple(reversed(runs)),
    )


def node_name(node: str) -> str:
    """A machine's name without the name of its engine."""
    return node.partition("/")[2] or node


def log_attempt(job: Shown, number: int, role: str, index: int, attempt: int) -> AttemptId:
    """The id of one attempt of one task."""
    return attempt_id(job.record.id, number, role, index, attempt)


def _hived(job: Shown, role: str) -> Hived:
    group = job.groups.get(job.roles.get(role, role)) or None
    if job.demoted is None:
        return Hived(group)
    preemptor = str(job.demoted.data.get("preemptor") or job.demoted.message)
    return Hived(group, True, {"preemptor": preemptor, "preemptionTime": job.demoted.at})


def _uid(job: Shown, number: int, role: str, index: int) -> str:
    return f"{job.record.id}.{number}.{role}.{index}"


def _log(job: Shown, number: int, role: str, index: int, attempt: int) -> str:
    where = f"taskRoles/{job.roles.get(role, role)}/taskIndex/{index}/attempts/{attempt}/logs"
    return f"/api/v2/jobs/{job.ref}/attempts/{number}/{where}"
