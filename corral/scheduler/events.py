"""Why: the indexes change only by these values, so a kept index can be compared with one rebuilt from the store."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Inventory
from corral.model.placement import Placement
from corral.model.plan import CellsReserved
from corral.model.queues import QueueSpec, QueueUsage, UserUsage
from corral.model.requests import GangRequest, RoleAsk
from corral.spec.hived import HivedCluster

FOREVER = float("inf")
"""The end of what has no known end."""


class NodesSeen(msgspec.Struct, frozen=True, tag=True):
    """One engine's machines as they are now: nodes that it does not name are gone."""

    inventory: Inventory


class EngineUnknown(msgspec.Struct, frozen=True, tag=True):
    """An engine does not answer: its cells are neither free nor lost until its nodes are seen again."""

    engine: str
    reason: str = ""


class TaskUse(msgspec.Struct, frozen=True):
    """What one task of a role holds of its node besides devices."""

    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    amounts: tuple[tuple[str, int], ...] = ()
    """Every other resource by its name, in the order of names."""
    exclusive: bool = False
    """Whether its node is its job's alone."""
    tags: tuple[str, ...] = ()
    """Its job's tags, which others may keep away from."""
    averse: tuple[str, ...] = ()
    """The tags that its job keeps away from, and inside cells of which level."""
    averse_level: str = ""


class GangPlaced(msgspec.Struct, frozen=True, tag=True):
    """A placement was committed: its tasks hold what `uses` (by role) says, and end at `ends_at` at the latest."""

    job: JobId
    job_attempt: int
    placement: Placement
    uses: dict[str, TaskUse] = {}
    ends_at: float = FOREVER
    """Seconds since 1970 by which the gang is over because its duration is bounded."""
    queue: str = "default"
    user: str = ""
    groups: tuple[str, ...] = ()
    priority: int = 0
    placed_at: float = 0.0
    preemptible: bool = True
    request: GangRequest | None = None
    """What was asked for."""


class TasksReleased(msgspec.Struct, frozen=True, tag=True):
    """These tasks of a job hold nothing any more, since `at` (0: nobody said when)."""

    job: JobId
    tasks: tuple[TaskKey, ...]
    at: float = 0.0


class TasksLeaving(msgspec.Struct, frozen=True, tag=True):
    """The end of these tasks is stored and they were told to end: what they hold is free soon. Heard again: nothing new."""

    job: JobId
    tasks: tuple[TaskKey, ...]


class Checkpointed(msgspec.Struct, frozen=True, tag=True):
    """A gang saved its work: what it did until `at`, in seconds since 1970, is not lost if it ends. Older news: nothing."""

    job: JobId
    job_attempt: int
    at: float


class GangNominated(msgspec.Struct, frozen=True, tag=True):
    """Others (or its own tasks) were told to end for this job: it comes first when they have, until it is placed or
    that lapses."""

    job: JobId


class NominationLapsed(msgspec.Struct, frozen=True, tag=True):
    """A stronger gang took what others left for this job, or it wants no place any more: it waits in its turn again."""

    job: JobId


class UsageRecalled(msgspec.Struct, frozen=True, tag=True):
    """This is what queues and their users held in the past, as it was written down; who is not among them has no past."""

    usages: tuple[QueueUsage, ...]
    of_users: tuple[UserUsage, ...] = ()


class QueuesConfigured(msgspec.Struct, frozen=True, tag=True):
    """These are all the queues from now on; jobs of a queue that is not among them are bounded by nothing."""

    queues: tuple[QueueSpec, ...]


class HivedConfigured(msgspec.Struct, frozen=True, tag=True):
    """HiveD's algorithm decides about the machines of an engine from now on; `cluster` None: it does not any more."""

    cluster: HivedCluster | None
    engine: str = "local"
    lazy_preemption: bool = False
    """Whether gangs lose their guarantee and run on instead of being ended by those of their own virtual cluster."""
    at: float = 0.0
    """When it came into force, in seconds since the epoch."""


class GangQueued(msgspec.Struct, frozen=True, tag=True):
    """A gang waits for its place."""

    request: GangRequest


class GangWithdrawn(msgspec.Struct, frozen=True, tag=True):
    """These tasks of a job wait no longer; a gang that they belonged to waits with the rest of its tasks, if any."""

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
    | HivedConfigured
    | CellsReserved
    | NominationLapsed
)
QueueEvent = GangQueued | GangWithdrawn | GangPlaced | GangNominated | NominationLapsed | QueuesConfigured


def gang_placed(request: GangRequest, placement: Placement, at: float) -> GangPlaced:
    """The event for `placement` of `request` committed at time `at`."""
    uses = {role.role: _use(request, role) for role in request.roles}
    ends_at = at + request.max_duration_seconds if request.max_duration_seconds else FOREVER
    return GangPlaced(
        request.job,
        request.job_attempt,
        placement,
        uses,
        ends_at,
        request.queue,
        request.user,
        request.groups,
        request.priority,
        at,
        request.preemptible,
        request,
    )


def _use(request: GangRequest, role: RoleAsk) -> TaskUse:
    company, amounts = request.company, tuple(sorted(role.resources.items()))
    if company is None:
        return TaskUse(role.cpu_millis, role.memory_bytes, role.shm_bytes, amounts, tags=request.tags)
    level = company.averse_level if company.averse else ""
    return TaskUse(
        role.cpu_millis, role.memory_bytes, role.shm_bytes, amounts, company.exclusive, request.tags, company.averse, level
    )  # fmt: skip
