"""The events that change the scheduler's cluster and queue.

No other change is allowed, so that a kept index can be compared with one rebuilt from the store.
"""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Inventory
from corral.model.placement import Placement
from corral.model.plan import CellsReserved, PartFault
from corral.model.queues import QueueSpec, QueueUsage, UserUsage
from corral.model.requests import GangRequest
from corral.model.runs import Served

FOREVER = float("inf")
"""The end of a gang without a known end."""


class NodesSeen(msgspec.Struct, frozen=True, tag=True):
    """The current machines of one engine; nodes that it does not name are gone."""

    inventory: Inventory


class EngineUnknown(msgspec.Struct, frozen=True, tag=True):
    """An engine does not answer; its cells are neither free nor lost until its nodes are seen again."""

    engine: str
    reason: str = ""


class GangPlaced(msgspec.Struct, frozen=True, tag=True):
    """A placement was committed; its tasks hold what `request` says, and end at `ends_at` at the latest."""

    request: GangRequest
    """The request that was placed. A task whose role it lacks holds nothing but its devices."""
    placement: Placement
    placed_at: float = 0.0
    ends_at: float = FOREVER
    """Seconds since 1970 by which the gang ends because its duration is bounded."""

    @property
    def job(self) -> JobId:
        """The job that was placed."""
        return self.request.job


class TasksReleased(msgspec.Struct, frozen=True, tag=True):
    """These tasks of a job hold nothing any more since `at` (0: unknown)."""

    job: JobId
    tasks: tuple[TaskKey, ...]
    at: float = 0.0


class TasksLeaving(msgspec.Struct, frozen=True, tag=True):
    """These tasks are terminating: their end is stored and their resources are free soon. Idempotent."""

    job: JobId
    tasks: tuple[TaskKey, ...]


class Checkpointed(msgspec.Struct, frozen=True, tag=True):
    """A gang saved its work: progress until `at` (seconds since 1970) survives its end. Older reports are ignored."""

    job: JobId
    job_attempt: int
    at: float


class WorkReported(msgspec.Struct, frozen=True, tag=True):
    """A running job reports its work; policies read it in its history."""

    job: JobId
    at: float
    """When it was said, in seconds since 1970."""
    progress: float | None = None
    """The fraction of its work that is done, from 0 to 1; None: not said."""
    throughput: float | None = None
    """Work per second at its present size, in the job's own unit; None: not said."""
    gradient_noise: float | None = None
    """The gradient noise scale in examples; None: not said."""
    batch_size: float | None = None
    """Examples of one step, of all tasks together; None: not said."""


class HistoryRecalled(msgspec.Struct, frozen=True, tag=True):
    """What a job had received before a restart; it comes after the job's placement, if the job runs."""

    job: JobId
    served: Served


class JobOver(msgspec.Struct, frozen=True, tag=True):
    """A job is over; its history is dropped."""

    job: JobId


class EndedRecalled(msgspec.Struct, frozen=True, tag=True):
    """The device-seconds that jobs had attained which were over before a restart, in the order of their ends."""

    attained: tuple[float, ...]


class GangNominated(msgspec.Struct, frozen=True, tag=True):
    """Other gangs (or its own tasks) are terminating for this job; it comes first once they have ended.

    The nomination lasts until the job is placed or the nomination lapses.
    """

    job: JobId


class NominationLapsed(msgspec.Struct, frozen=True, tag=True):
    """A nomination ended: a stronger gang took the room, or the job needs no place any more.

    The job waits in its normal order again.
    """

    job: JobId


class UsageRecalled(msgspec.Struct, frozen=True, tag=True):
    """The stored past usage of queues and their users; anyone not named has no past."""

    usages: tuple[QueueUsage, ...]
    of_users: tuple[UserUsage, ...] = ()


class QueuesConfigured(msgspec.Struct, frozen=True, tag=True):
    """These are all the queues from now on; jobs of any other queue have no bounds."""

    queues: tuple[QueueSpec, ...]


class GuaranteeLost(msgspec.Struct, frozen=True, tag=True):
    """A running gang had lost its guarantee before a restart, at `at` and to whom; only some planners keep this."""

    job: JobId
    by: str
    at: float


class GangQueued(msgspec.Struct, frozen=True, tag=True):
    """A gang waits for a place."""

    request: GangRequest


class GangWithdrawn(msgspec.Struct, frozen=True, tag=True):
    """These tasks of a job no longer wait; the rest of their gang, if any, still does."""

    job: JobId
    tasks: tuple[TaskKey, ...]


ClusterEvent = (
    NodesSeen
    | EngineUnknown
    | GangPlaced
    | TasksReleased
    | TasksLeaving
    | Checkpointed
    | QueuesConfigured
    | UsageRecalled
    | WorkReported
    | HistoryRecalled
    | JobOver
    | EndedRecalled
)
QueueEvent = GangQueued | GangWithdrawn | GangPlaced | GangNominated | NominationLapsed | QueuesConfigured
PlannerEvent = ClusterEvent | QueueEvent | CellsReserved | GuaranteeLost | PartFault
"""Every event that a planner folds; those of neither cluster nor queue are for planners that keep more state."""


def gang_placed(request: GangRequest, placement: Placement, at: float) -> GangPlaced:
    """Build the event for a `placement` of `request` committed at time `at`."""
    ends_at = at + request.max_duration_seconds if request.max_duration_seconds else FOREVER
    return GangPlaced(request, placement, at, ends_at)
