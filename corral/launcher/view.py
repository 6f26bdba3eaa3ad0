"""Why: the launcher's rules read a dozen numbers of a job document; this is the list of them, in a form quick to read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob


class RetryView(msgspec.Struct, frozen=True):
    """A retry policy: `max_retries` -2 always, -1 any failure for ever, n so many counted failures."""

    max_retries: int = 0
    fancy: bool = True


class RoleView(msgspec.Struct, frozen=True):
    """What the launcher knows of a role."""

    name: str
    replicas: int = 1
    min_replicas: int | None = None
    """The fewest that the job can run with; None: all of them, the role is not elastic."""
    retry: RetryView = RetryView()
    min_failed: int = 1
    min_succeeded: int = -1


class JobView(msgspec.Struct, frozen=True, weakref=True):
    """What the launcher knows of a job document."""

    roles: dict[str, RoleView]
    """By name, in the document's order."""
    retry: RetryView = RetryView()
    max_duration_seconds: int = 0
    """Seconds from the first start of an attempt; 0 is no limit."""
    grace_seconds: float | None = None
    """Between being asked to end and being killed; None: the launch policy's default."""
    stop_signal: str = "TERM"


_KNOWN: WeakValueDictionary[bytes, JobView] = WeakValueDictionary()


def view_of(job: UnifiedJob) -> JobView:
    """The view of a canonical job document, to be kept, as it is read at every step; equal ones are one object."""
    spec = job.spec
    counted, elastic = spec.replica_spec, job.is_elastic
    roles = {
        role.name: RoleView(
            name=role.name,
            replicas=job.replicas_of(role.name),
            min_replicas=counted.min_replicas if elastic and role.name == counted.role else None,
            retry=RetryView(role.retry_policy.max_retries, role.retry_policy.fancy),
            min_failed=role.completion.min_failed,
            min_succeeded=role.completion.min_succeeded,
        )
        for role in spec.roles
    }
    view = JobView(
        roles=roles,
        retry=RetryView(spec.retry_policy.max_retries, spec.retry_policy.fancy),
        max_duration_seconds=spec.max_duration_seconds,
        grace_seconds=spec.checkpoint.grace_seconds,
        stop_signal=spec.checkpoint.signal.removeprefix("SIG") or "TERM",
    )
    return _KNOWN.setdefault(msgspec.msgpack.encode(view), view)
