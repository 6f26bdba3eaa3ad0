"""Every event that the launcher's state machines take; a stored history of them can be replayed."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.launch import Exited, Started
from corral.model.outcome import Completion
from corral.model.placement import Placement
from corral.model.plan import Rule
from corral.model.runs import WorkReport


class StopRequested(msgspec.Struct, frozen=True, tag=True):
    """A person, a policy or a deadline ends the job; `completion` overrides -210 (deadline: -1004)."""

    by: str
    completion: Completion | None = None


class RestartRequested(msgspec.Struct, frozen=True, tag=True):
    """A person restarts the job: a running attempt is ended first, a completed job runs again."""

    by: str


class ScaleRequested(msgspec.Struct, frozen=True, tag=True):
    """Resize a role to `replicas` tasks; when shrinking, the tasks in `remove` go first, then the highest indexes."""

    role: str
    replicas: int
    by: str
    remove: tuple[int, ...] = ()


class Preempted(msgspec.Struct, frozen=True, tag=True):
    """Preempt the whole gang, or only `tasks` of an elastic one; it waits again in its old place.

    No failure: no retry is counted, whatever the retry policy. Tasks that the gang cannot spare (task 0 of the elastic
    role, any task of another role, or more than leave its minimum) end the whole gang. Ignored for an older attempt.
    """

    job_attempt: int
    rule: Rule
    message: str
    """One sentence for the job's owner: who preempts it, and why."""
    tasks: tuple[TaskKey, ...] = ()
    by: JobId | None = None
    """The job that gets its place."""
    grace_seconds: float | None = None
    """Seconds between the stop signal and KILL; None: as the job says."""


class Checkpointed(msgspec.Struct, frozen=True, tag=True):
    """The attempt saved its work: work done until `at` survives its end. Ignored for an older attempt."""

    job_attempt: int
    at: float


class WorkReported(msgspec.Struct, frozen=True, tag=True):
    """The attempt's program reports its work. Ignored for an older attempt."""

    job_attempt: int
    report: WorkReport


class SuspendRequested(msgspec.Struct, frozen=True, tag=True):
    """A person, or a rule, suspends the job: it is preempted and held until it is resumed.

    With the rule `budget` it is held until that rule frees it, whoever suspends or resumes it meanwhile.
    """

    by: str
    rule: Rule = Rule.SUSPENDED
    message: str = ""
    """Why, as a clause; "": because somebody asked for it."""


class ResumeRequested(msgspec.Struct, frozen=True, tag=True):
    """A person resumes a suspended job, or with the rule `budget` its budget allows more."""

    by: str
    rule: Rule = Rule.SUSPENDED
    message: str = ""
    """Why, as a clause; "": because somebody asked for it."""


class MigrateRequested(msgspec.Struct, frozen=True, tag=True):
    """End one running task and start it elsewhere; no retry is counted, and the other tasks run on."""

    task: TaskKey
    by: str


class HoldReleased(msgspec.Struct, frozen=True, tag=True):
    """The condition that held the job (its dependencies) is met."""


class DependencyFailed(msgspec.Struct, frozen=True, tag=True):
    """A job that must succeed before this one did not succeed; this one can never run."""

    message: str


class Placed(msgspec.Struct, frozen=True, tag=True):
    """The scheduler gave each task of the placement its node and devices, for the task attempts that were requested."""

    job_attempt: int
    placement: Placement
    joins: bool = False
    """Whether other tasks of the job held placements already."""


class Unplaceable(msgspec.Struct, frozen=True, tag=True):
    """A placement became invalid (its machine changed) before the tasks started.

    The sender guarantees that none of these attempts was or will be started: their starts are dropped.
    """

    tasks: tuple[TaskKey, ...]
    message: str


class StartRefused(msgspec.Struct, frozen=True, tag=True):
    """The engine will never start this attempt; `completion` says why."""

    attempt: AttemptId
    at: float
    completion: Completion


class PlaceLost(msgspec.Struct, frozen=True, tag=True):
    """The attempt was not started and will not be: a part of its placement is gone, as `message` says."""

    attempt: AttemptId
    message: str


class TimePassed(msgspec.Struct, frozen=True, tag=True):
    """A time that a state waits for may have come; `now` of the step decides."""


JobEvent = (
    StopRequested
    | RestartRequested
    | ScaleRequested
    | Preempted
    | Checkpointed
    | WorkReported
    | SuspendRequested
    | ResumeRequested
    | MigrateRequested
    | HoldReleased
    | DependencyFailed
    | Placed
    | Unplaceable
    | StartRefused
    | TimePassed
    | Started
    | Exited
)
