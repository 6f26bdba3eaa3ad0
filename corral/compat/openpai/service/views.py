"""Views of a job for OpenPAI's clients, built from stored data by functions that do not use the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from math import ceil
from typing import Any, Final, NamedTuple

import msgspec

from corral.compat.openpai.language.names import PROTOCOL, ROLES
from corral.compat.openpai.records.terms import (
    attempt_word,
    end_word,
    exit_spec_view,
    framework_name,
    launched,
    milliseconds,
    openpai_code,
    state_word,
    sub_state,
)
from corral.compat.openpai.records.views import (
    ExitDiagnostics,
    ExitMessages,
    JobAttempt,
    JobDetail,
    JobLine,
    JobStanding,
    RetryDetails,
    RoleLines,
)
from corral.compat.openpai.service.list_fields import affinity_groups, hived_glance
from corral.compat.openpai.tables.job_lists import ListedJob
from corral.compat.openpai.tables.listing import Listing
from corral.model.facts import GUARANTEE_LOST
from corral.model.outcome import Completion, Trigger
from corral.model.records import EventRecord
from corral.model.runs import Retries
from corral.model.store_writes import JobRecord
from corral.runtime.error_block import read_error, sentence

ATTEMPT_KINDS: Final = ("job.queued", "job.started", "job.ending")
"""The events that give the times at which an attempt of a job began, ran and ended."""
DEMOTED: Final = GUARANTEE_LOST
"""The event of a job that runs on without its guarantee; HiveD calls it lazy preemption."""
_ENDED: Final = {"succeeded": "SUCCEEDED", "failed": "FAILED", "stopped": "STOPPED"}


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Role(msgspec.Struct, frozen=True):
    name: str
    replicas: int = 1


class _Counted(msgspec.Struct, frozen=True):
    role: str = ""
    replicas: int = 1


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    roles: tuple[_Role, ...]
    replica_spec: _Counted = _Counted()


class _Document(msgspec.Struct, frozen=True):
    spec: _Body
    metadata: _Metadata = _Metadata()


_DOCUMENT: Final = msgspec.json.Decoder(_Document)
_NAMES: Final = msgspec.json.Decoder(dict[str, str])


class Shown(NamedTuple):
    """A stored job, with the names in its document."""

    record: JobRecord
    name: str
    job_priority: str | None
    roles: Mapping[str, str]
    """OpenPAI's name of each role, in the order of the document."""
    replicas: Mapping[str, int]
    groups: Mapping[str, str]
    """HiveD's affinity group by OpenPAI's role name, for roles that have one."""
    lazy: bool = False
    """Whether it enables lazy preemption: it gives up its guarantee before its devices."""
    demoted: EventRecord | None = None
    """The event of its lazy preemption, if there was one."""

    @property
    def ref(self) -> str:
        """The job's name for OpenPAI's callers."""
        return f"{self.record.user}~{self.name}"

    @property
    def framework(self) -> str:
        """OpenPAI's internal name of the job."""
        return framework_name(self.record.user, self.name)

    def role_of(self, openpais: str) -> str | None:
        """Corral's name of one of OpenPAI's roles; None when the job has no such role."""
        return next((role for role, name in self.roles.items() if name == openpais), None)


class Attempt(NamedTuple):
    """One attempt of a job."""

    number: int
    created_at: float | None
    started_at: float | None
    ended_at: float | None
    completion: Completion | None
    word: str


def shown(record: JobRecord, listing: Listing | None) -> Shown:
    """A stored job with the names that OpenPAI's callers use."""
    document = _DOCUMENT.decode(record.doc)
    said = document.metadata.annotations
    known = _NAMES.decode(said[ROLES]) if ROLES in said else {}
    counted = document.spec.replica_spec
    first = counted.role or document.spec.roles[0].name
    roles = {role.name: known.get(role.name, role.name) for role in document.spec.roles}
    replicas = {role.name: role.replicas for role in document.spec.roles} | {first: counted.replicas}
    hived = hived_glance(said.get(PROTOCOL, ""))
    name = record.name if listing is None else listing.name
    groups = affinity_groups(said.get(PROTOCOL, ""), roles.values(), f"{record.user}~{name}")
    priority = None if listing is None else listing.job_priority
    return Shown(record, name, priority, roles, replicas, groups, hived.lazy_preemption_enable)


# -- lines of the list ---------------------------------------------------------------------------------------------------


def job_line(job: ListedJob) -> JobLine:
    """One line of the job list."""
    run, created = job.run, milliseconds(job.created_at) or 0
    over = run.ended_at if run.state == "completed" else None
    code = None if run.completion is None else run.completion.code
    return JobLine(
        debug_id=framework_name(job.user, job.name),
        name=job.name,
        username=job.user,
        state=_ENDED.get(job.phase) or state_word(run.state, code),
        sub_state=sub_state(run.state),
        execution_type="STOP" if run.stop_requested else "START",
        tags=job.tags,
        retries=run.retries.total + run.task_retries + run.yield_retries,
        retry_details=_details(run.retries, run.task_retries + run.yield_retries),
        retry_delay_time=_delay(run.state, run.wake_at, run.ended_at),
        submission_time=created,
        created_time=created,
        launched_time=launched(job.started_at, over),
        completed_time=milliseconds(over),
        app_exit_code=openpai_code(run.completion),
        virtual_cluster=job.queue,
        total_gpu_number=ceil(job.summary.devices),
        total_task_number=job.summary.tasks.total,
        total_task_role_number=job.roles,
        job_priority=job.job_priority,
    )


def _details(retries: Retries, others: int) -> RetryDetails:
    """Retries by cause: accountable ones are the user's, as in OpenPAI; all others are the platform's.

    `others` are the retries of the job's tasks, and those after the job was preempted.
    """
    return RetryDetails(retries.accountable, retries.total - retries.accountable + others)


def _delay(state: str, wake_at: float | None, ended_at: float | None) -> int | None:
    """Seconds between an attempt's end and the next attempt, while the job waits for it; else None."""
    if state != "attempt-completed" or wake_at is None or ended_at is None:
        return None
    return max(0, round(wake_at - ended_at))


# -- one job -------------------------------------------------------------------------------------------------------------


def attempts_told(record: JobRecord, events: Iterable[EventRecord], ended: Mapping[int, float]) -> list[Attempt]:
    """All attempts of a job in order; past ones from its events (the latest first) and the times of their ends."""
    told: dict[int, dict[str, EventRecord]] = {}
    for event in events:
        number = event.data.get("attempt")
        if isinstance(number, int):
            told.setdefault(number, {})[event.kind] = event
    past = [_past(number, told.get(number, {}), ended.get(number)) for number in range(record.run.attempt)]
    return [*past, current_attempt(record, told.get(record.run.attempt, {}).get("job.queued"))]


def current_attempt(record: JobRecord, queued: EventRecord | None = None) -> Attempt:
    """The attempt that a job is in, or was in last."""
    run = record.run
    begun = record.created_at if run.attempt == 0 else None if queued is None else seconds_of(queued.at)
    code = None if run.completion is None else run.completion.code
    ended = run.ended_at if str(run.state) in ("attempt-completed", "completed") else None
    word = _ENDED.get(record.phase) or attempt_word(str(run.state), code)
    return Attempt(run.attempt, begun, run.started_at, ended, run.completion, word)


def _past(number: int, told: Mapping[str, EventRecord], ended: float | None) -> Attempt:
    times = {kind: seconds_of(event.at) for kind, event in told.items()}
    ending = told.get("job.ending")
    completion = None
    if ending is not None and "completion" in ending.data:
        completion = msgspec.convert(ending.data["completion"], Completion)
    over = ended if ended is not None else times.get("job.ending")
    word = end_word(None if completion is None else completion.code)
    return Attempt(number, times.get("job.queued"), times.get("job.started"), over, completion, word)


def seconds_of(at: str) -> float:
    """An RFC 3339 time as seconds since 1970."""
    return datetime.fromisoformat(at).timestamp()


def job_detail(job: Shown, attempt: Attempt, tags: tuple[str, ...], roles: dict[str, RoleLines]) -> JobDetail:
    """The detail of a job, as of one of its attempts."""
    record = job.record
    run = record.run
    code = None if run.completion is None else run.completion.code
    ended = attempt.completion
    trigger = _trigger(job, ended)
    created = milliseconds(record.created_at) or 0
    over = run.ended_at if str(run.state) == "completed" else None
    standing = JobStanding(
        username=record.user,
        state=_ENDED.get(record.phase) or state_word(str(run.state), code),
        sub_state=sub_state(str(run.state)),
        execution_type="STOP" if run.stop_requested else "START",
        retries=run.retries.total + run.task_retries + run.yield_retries,
        retry_details=_details(run.retries, run.task_retries + run.yield_retries),
        retry_delay_time=_delay(str(run.state), run.wake_at, run.ended_at),
        submission_time=created,
        created_time=created,
        launched_time=launched(record.started_at, over),
        completed_time=milliseconds(over),
        attempt_id=attempt.number,
        attempt_state=attempt.word,
        app_id=f"{record.id}.{attempt.number}",
        app_progress=0.0 if ended is None else 1.0,
        app_tracking_url="",
        app_created_time=milliseconds(attempt.created_at),
        app_launched_time=launched(attempt.started_at, attempt.ended_at),
        app_completed_time=milliseconds(attempt.ended_at),
        app_exit_code=openpai_code(ended),
        app_exit_spec=exit_spec_view(openpai_code(ended)),
        app_exit_diagnostics=None if ended is None else ended.diagnostics,
        app_exit_messages=exit_messages(ended),
        app_exit_trigger_message=None if trigger is None else trigger.message,
        app_exit_trigger_task_role_name=None if trigger is None else trigger.role or None,
        app_exit_trigger_task_index=None if trigger is None or trigger.index < 0 else trigger.index,
        app_exit_type=_exit_type(ended),
        virtual_cluster=record.queue,
    )
    return JobDetail(job.framework, job.name, tags, job.job_priority, standing, roles)


def _exit_type(ended: Completion | None) -> str | None:
    return None if ended is None else "Succeeded" if ended.succeeded else "Failed"


def _trigger(job: Shown, ended: Completion | None) -> Trigger | None:
    """The task whose end ended the attempt, with OpenPAI's name of its role."""
    if ended is None or ended.trigger is None:
        return None
    return msgspec.structs.replace(ended.trigger, role=job.roles.get(ended.trigger.role, ended.trigger.role))


def exit_messages(ended: Completion | None) -> ExitMessages | None:
    """Split an end's diagnostics into the runtime's block and the rest: the container's message, or the launcher's."""
    if ended is None:
        return None
    block: Any = read_error(ended.diagnostics)
    said = sentence(ended.diagnostics) or None
    return ExitMessages(said, block, None) if ended.code > 0 else ExitMessages(None, block, said)


def job_attempt(job: Shown, attempt: Attempt, roles: dict[str, RoleLines]) -> JobAttempt:
    """One attempt of a job, as the history shows it."""
    record, ended = job.record, attempt.completion
    messages, trigger = exit_messages(ended), _trigger(job, ended)
    spec = exit_spec_view(openpai_code(ended))
    latest = attempt.number == record.run.attempt
    told = None
    if ended is not None and messages is not None:
        told = ExitDiagnostics(ended.diagnostics, messages.runtime, messages.launcher or "")
    return JobAttempt(
        job_name=job.name,
        framework_name=job.framework,
        uid=f"{record.id}.{attempt.number}",
        user_name=record.user,
        state=attempt.word,
        origin_state=sub_state(str(record.run.state)) if latest else "Completed",
        attempt_index=attempt.number,
        job_started_time=milliseconds(record.created_at),
        attempt_started_time=milliseconds(attempt.started_at),
        attempt_completed_time=milliseconds(attempt.ended_at),
        exit_code=openpai_code(ended),
        exit_phrase=None if spec is None else spec.phrase,
        exit_type=_exit_type(ended),
        exit_diagnostics=told,
        app_exit_trigger_message=None if trigger is None else trigger.message,
        app_exit_trigger_task_role_name=None if trigger is None else trigger.role or None,
        app_exit_trigger_task_index=None if trigger is None or trigger.index < 0 else trigger.index,
        app_exit_spec=spec,
        app_exit_diagnostics=None if ended is None else ended.diagnostics,
        app_exit_messages=messages,
        total_gpu_number=ceil(record.summary.devices),
        total_task_number=record.summary.tasks.total,
        total_task_role_number=len(job.roles),
        task_roles=roles,
        is_latest=latest,
    )
