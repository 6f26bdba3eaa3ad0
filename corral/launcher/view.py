"""The fields of a job document that the launcher's rules read, in a compact form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import msgspec

from corral.spec.job_options import STANDARD_TABLE

if TYPE_CHECKING:
    from corral.spec.job import UnifiedJob
    from corral.spec.job_parts import RetryPolicy


class RetryView(msgspec.Struct, frozen=True):
    """A retry policy: `max_retries` -2 retries always, -1 after every failure, n after n counted failures."""

    max_retries: int = 0
    fancy: bool = True
    at_once: bool = False
    """Whether the first retry in a row after a transient failure is immediate (FrameworkController)."""


class RoleView(msgspec.Struct, frozen=True):
    """The launcher's fields of a role."""

    name: str
    replicas: int = 1
    min_replicas: int | None = None
    """The fewest tasks that the job can run with; None: the role is not elastic."""
    retry: RetryView = RetryView()
    min_failed: int = 1
    min_succeeded: int = -1
    max_task_seconds: int = 0
    """Seconds from the start of each attempt of a task; 0 is no limit."""


class JobView(msgspec.Struct, frozen=True, weakref=True):
    """The launcher's fields of a job document."""

    roles: dict[str, RoleView]
    """By name, in the document's order."""
    retry: RetryView = RetryView()
    max_duration_seconds: int = 0
    """Seconds from the first start of an attempt; 0 is no limit."""
    grace_seconds: float | None = None
    """Seconds between the stop signal and KILL; None: the launch policy's default."""
    stop_signal: str = "TERM"
    exit_table: str = STANDARD_TABLE
    gang: bool = True
    """Whether the tasks need each other; otherwise each starts and ends alone."""


_USUAL: Final = RetryView()
_NEVER: Final = RetryView(0, fancy=False)
_KNOWN: WeakValueDictionary[bytes, JobView] = WeakValueDictionary()


def view_of(job: UnifiedJob, *, one_group: bool = False, at_once: bool = False) -> JobView:
    """The view of a canonical job document. Keep it, since every step reads it; equal views are one object.

    `one_group`: no task can be restarted alone. Then any failed task ends the attempt, and the job's retry policy
    decides. A role with a policy of its own keeps it. `at_once`: the first retry after a transient failure is immediate.
    """
    spec = job.spec
    at_once = at_once or spec.exit_table != STANDARD_TABLE
    counted, elastic = spec.replica_spec, job.is_elastic
    roles = {
        role.name: RoleView(
            name=role.name,
            replicas=job.replicas_of(role.name),
            min_replicas=counted.min_replicas if elastic and role.name == counted.role else None,
            retry=_retry(role.retry_policy, at_once, unsaid=_NEVER if one_group else _USUAL),
            min_failed=role.completion.min_failed,
            min_succeeded=role.completion.min_succeeded,
            max_task_seconds=role.max_task_seconds,
        )
        for role in spec.roles
    }
    view = JobView(
        roles=roles,
        retry=_retry(spec.retry_policy, at_once),
        max_duration_seconds=spec.max_duration_seconds,
        grace_seconds=None if spec.checkpoint.grace_seconds < 0 else spec.checkpoint.grace_seconds,
        exit_table=spec.exit_table,
        gang=spec.gang,
        stop_signal=spec.checkpoint.signal.removeprefix("SIG") or "TERM",
    )
    return _KNOWN.setdefault(msgspec.msgpack.encode(view), view)


def _retry(policy: RetryPolicy, at_once: bool, unsaid: RetryView = _USUAL) -> RetryView:
    """The policy, or `unsaid` if it has only default values."""
    said = RetryView(policy.max_retries, policy.fancy)
    return msgspec.structs.replace(unsaid if said == _USUAL else said, at_once=at_once)
