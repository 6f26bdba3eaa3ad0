"""Convert a stored job to an `ObjectState`, from which each kind of object makes its status."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from corral.model.exits import table_phrase
from corral.model.outcome import Completion
from corral.model.records import TaskRecord, rfc3339, rfc3339_or_none
from corral.model.runs import JobRun
from corral.model.states import JobState
from corral.model.store_writes import JobRecord
from corral.spec.job_objects import OVER, Condition, ObjectState, RoleState, TaskState


def refused(generation: int, reason: str, message: str) -> ObjectState:
    """The state of an object that did not become a job."""
    return ObjectState(generation=generation, conditions=(Condition("Accepted", "False", reason, message),))


def state_of(
    record: JobRecord, applied: Condition, *, generation: int, server: str, tasks: Sequence[TaskRecord] = ()
) -> ObjectState:
    """The state of a job for its object; `applied` is the condition that the job is as the object asks."""
    run, summary = record.run, record.summary
    counted = msgspec.json.decode(record.doc, type=_Document).spec.replica_spec.role
    completion = run.completion
    message = _message(record)
    return ObjectState(
        job=record.id,
        server=server,
        name=record.name,
        phase=record.phase,
        state=str(run.state),
        message=message,
        generation=generation,
        attempt=run.attempt,
        retries=run.retries.total,
        counted_retries=run.retries.accountable,
        retry_seconds=_delay(run.ended_at, run.wake_at) if run.state is JobState.ATTEMPT_COMPLETED else None,
        suspended=run.suspended,
        queue=record.queue,
        devices=summary.devices,
        counted=counted,
        replicas=sum(run.targets.values()),
        targets=run.targets,
        placements=run.placements,
        roles=tuple(
            RoleState(name, count.target, count.total, count.running, count.succeeded, count.faulty)
            for name, count in run.roles.items()
        ),
        tasks=tuple(_task(task, run) for task in tasks),
        created_at=rfc3339(record.created_at),
        started_at=rfc3339_or_none(run.started_at),
        ended_at=rfc3339_or_none(run.ended_at),
        exit_code=completion.code if completion else None,
        exit_phrase=completion.phrase if completion else "",
        exit_class=str(completion.exit_class) if completion else "",
        exit_message=completion.diagnostics if completion else "",
        trigger=_trigger(completion),
        conditions=_conditions(record, applied, message),
    )


def _delay(ended_at: float | None, wake_at: float | None) -> float | None:
    return wake_at - ended_at if ended_at is not None and wake_at is not None else None


def _trigger(completion: Completion | None) -> tuple[str, str, int]:
    found = completion.trigger if completion else None
    return (found.message, found.role, found.index) if found else ("", "", -1)


class _Counts(msgspec.Struct, frozen=True, rename="camel"):
    role: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    replica_spec: _Counts = _Counts()


class _Document(msgspec.Struct):
    spec: _Spec


def _message(record: JobRecord) -> str:
    summary = record.summary
    if record.phase in OVER and summary.exit is not None:
        return f"{summary.exit.phrase} ({summary.exit.code}). {summary.exit.message}".strip()
    return summary.waiting.message if summary.waiting is not None else ""


def _conditions(record: JobRecord, applied: Condition, message: str) -> tuple[Condition, ...]:
    phase, waiting = record.phase, record.summary.waiting
    over = phase in OVER
    ended = _word(record.summary.exit.phrase) if over and record.summary.exit else _word(phase)
    why = _word(waiting.code) if waiting is not None else _word(phase)
    placed = bool(record.run.placements)
    return (
        Condition("Accepted", "True", "Submitted", f"It is job {record.name} ({record.id}) of {record.user}."),
        applied,
        Condition("Scheduled", "True", "Placed") if placed else Condition("Scheduled", "False", why, message),
        Condition("Running", "True" if phase == "running" else "False", _word(phase)),
        Condition("Complete", "True", ended, message)
        if phase == "succeeded"
        else Condition("Complete", "False", _word(phase)),
        Condition("Failed", "True", ended, message)
        if over and phase != "succeeded"
        else Condition("Failed", "False", _word(phase)),
    )


def _word(text: str) -> str:
    """A code such as `queue-limit` as one CamelCase word."""
    parts = "".join(letter if letter.isalnum() else " " for letter in text).split()
    return "".join(part[:1].upper() + part[1:] for part in parts) or "Unknown"


def _task(task: TaskRecord, run: JobRun) -> TaskState:
    ended = task.exit
    return TaskState(
        role=task.role,
        index=task.index,
        state=task.state,
        attempt=task.attempt,
        attempt_id=f"{run.job}.{run.attempt}.{task.role}.{task.index}.{task.attempt}",
        retries=task.retries,
        counted_retries=task.counted_retries,
        created_at=task.created_at,
        node=task.node,
        host=task.host,
        started_at=task.started_at,
        ended_at=task.ended_at,
        exit_code=ended.code if ended else None,
        exit_phrase=table_phrase(ended.code, ended.phrase) if ended else "",
        exit_class=ended.exit_class if ended else "",
        exit_message=ended.message if ended else "",
    )
