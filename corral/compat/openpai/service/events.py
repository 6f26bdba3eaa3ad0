"""A job's events for OpenPAI's clients, in the shape of Kubernetes events of pods."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final

from corral.compat.openpai.records.views import JobEvent
from corral.compat.openpai.service.views import Shown
from corral.model.records import EventRecord, rfc3339

_SOURCE: Final = "corral"
_WORRYING: Final = (
    "refused",
    "failed",
    "lost",
    "killed",
    "unplaceable",
    "found",
    "preempted",
    "shrunk",
    "noted",
    "error",
)


def events_view(job: Shown, events: Iterable[EventRecord], now: float, wanted: str = "") -> tuple[JobEvent, ...]:
    """The job's events, the latest first (as `events` come); only those of type `wanted` if it is given."""
    found = [_event(job, event) for event in events]
    if (waiting := _waiting(job, now)) is not None:
        found.insert(0, waiting)
    return tuple(event for event in found if not wanted or event.type == wanted)


def _event(job: Shown, event: EventRecord) -> JobEvent:
    of_task = bool(event.role)
    framework = job.framework
    role = job.roles.get(event.role, event.role)
    return JobEvent(
        uid=f"{job.record.id}.{event.seq}",
        framework_name=framework,
        pod_uid=event.attempt,
        taskrole_name=role,
        task_name=f"{framework}-{role}-{event.index}" if of_task else "",
        task_index=event.index,
        type="Warning" if _worries(event) else "Normal",
        reason="".join(word[:1].upper() + word[1:] for word in event.kind.replace("-", ".").split(".")),
        message=event.message,
        first_timestamp=event.at,
        last_timestamp=event.at,
        count=1,
        source_component=event.actor or _SOURCE,
        source_host=None,
    )


def _worries(event: EventRecord) -> bool:
    """Whether the event is a warning: an exit code other than 0, or a kind that names a failure."""
    code = event.data.get("code")
    if isinstance(code, int) and code != 0:
        return True
    return any(word in event.kind for word in _WORRYING)


def _waiting(job: Shown, now: float) -> JobEvent | None:
    """Why a job waits, as an event of Kubernetes' scheduler; None if it does not wait."""
    waiting = job.record.summary.waiting
    if waiting is None or job.record.phase != "waiting" or waiting.code == "submitted":
        return None
    told = hashlib.md5(f"{job.record.id}.{waiting.code}".encode(), usedforsecurity=False).hexdigest()
    return JobEvent(
        uid=told,
        framework_name=job.framework,
        pod_uid="",
        taskrole_name="",
        task_name="",
        task_index=-1,
        type="Warning",
        reason="FailedScheduling",
        message=waiting.message,
        first_timestamp=rfc3339(job.record.created_at),
        last_timestamp=rfc3339(now),
        count=1,
        source_component="corral-scheduler",
    )
