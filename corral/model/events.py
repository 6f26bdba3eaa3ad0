"""Why: everything that can happen to a job reaches the launcher as one of these values, so any history can be replayed."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import AttemptId, JobId, TaskKey
from corral.model.launch import Exited, Started
from corral.model.outcome import Completion
from corral.model.placement import Placement
from corral.model.plan import Rule


class StopRequested(msgspec.Struct, frozen=True, tag=True):
    """A person, a policy or a deadline wants the job ended; `completion` overrides -210 (deadline: -1004)."""

    by: str
    completion: Completion | None = None


class RestartRequested(msgspec.Struct, frozen=True, tag=True):
    """A person wants the job begun anew: a running attempt is ended first, a completed job runs again."""

    by: str


class ScaleRequested(msgspec.Struct, frozen=True, tag=True):
    """A role should have `replicas` tasks; `remove` names the tasks to go first when shrinking (else highest index)."""

    role: str
    replicas: int
    by: str
    remove: tuple[int, ...] = ()


class Preempted(msgspec.Struct, frozen=True, tag=True):
    """What runs must yield: the whole gang, or only `tasks` of an elastic one; it waits again in its old place.

    Not a failure: nothing is counted, whatever the retry policy. Tasks that the gang cannot spare (task 0 of the elastic
    role, any of another role, or more than leave its minimum) end the whole gang. Of an older attempt it means nothing.
    """

    job_attempt: int
    rule: Rule
    message: str
    """One sentence for the job's owner: by whom, and why."""
    tasks: tuple[TaskKey, ...] = ()
    by: JobId | None = None
    """The job that it makes room for."""
    grace_seconds: float | None = None
    """Between being asked to end and being killed; None: as the job says."""


class Checkpointed(msgspec.Struct, frozen=True, tag=True):
    """The attempt saved its work: what it did until `at` is not lost if it ends. Of an older attempt it means nothing."""

    job_attempt: int
    at: float


class SuspendRequested(msgspec.Struct, frozen=True, tag=True):
    """A person wants the job to end like one that is preempted, and to stay held until it is resumed."""

    by: str


class ResumeRequested(msgspec.Struct, frozen=True, tag=True):
    """A person wants a suspended job to go on."""

    by: str


class MigrateRequested(msgspec.Struct, frozen=True, tag=True):
    """Somebody wants one running task to end and to begin elsewhere; no retry is counted, and the others run on."""

    task: TaskKey
    by: str


class HoldReleased(msgspec.Struct, frozen=True, tag=True):
    """What the job waited for (dependencies) is there."""


class DependencyFailed(msgspec.Struct, frozen=True, tag=True):
    """A job that this one needs to succeed did not: this one can never run."""

    message: str


class Placed(msgspec.Struct, frozen=True, tag=True):
    """The scheduler gave every task named its node and devices; task attempts as they were asked for."""

    job_attempt: int
    placement: Placement
    joins: bool = False
    """Whether other tasks of the job held places already."""


class Unplaceable(msgspec.Struct, frozen=True, tag=True):
    """The devices that were given are no longer there (machine changed) before the tasks started.

    Who sends it vouches that none of these attempts was started or ever will be: their starts are dropped.
    """

    tasks: tuple[TaskKey, ...]
    message: str


class StartRefused(msgspec.Struct, frozen=True, tag=True):
    """The engine will never start this attempt; `completion` says why."""

    attempt: AttemptId
    at: float
    completion: Completion


class PlaceLost(msgspec.Struct, frozen=True):
    """The attempt was not started, and will not be: a part of its place is gone, as `message` says."""

    attempt: AttemptId
    message: str


class TimePassed(msgspec.Struct, frozen=True, tag=True):
    """A time that some state waited for may have come; `now` of the step decides."""


JobEvent = (
    StopRequested
    | RestartRequested
    | ScaleRequested
    | Preempted
    | Checkpointed
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
