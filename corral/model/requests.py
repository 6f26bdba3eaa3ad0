"""Why: the scheduler reads shapes, not job documents: these values are all it knows of a job."""

from __future__ import annotations

import msgspec

from corral.kernel.ids import JobId, TaskKey


class DeviceAsk(msgspec.Struct, frozen=True):
    """The devices of one task: `count` of a kind and model ("" is any), or exactly the indexes or ids in `ids`."""

    count: int = 0
    kind: str = ""
    model: str = ""
    ids: tuple[str, ...] = ()


class TopologyAsk(msgspec.Struct, frozen=True):
    """The level all must be inside (`required`), and the level tried first (`preferred`); "" is none."""

    required: str = ""
    preferred: str = ""
    group_size: int = 0
    """Each block of so many tasks stays inside one cell of `group_required`; 0 is no grouping."""
    group_required: str = ""


class RoleAsk(msgspec.Struct, frozen=True):
    """Tasks of one role that want equal things."""

    role: str
    indexes: tuple[int, ...]
    minimum: int
    """How many of them are enough to begin (elastic); equal to len(indexes) when not elastic."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    devices: DeviceAsk = DeviceAsk()
    topology: TopologyAsk = TopologyAsk()
    node_selector: dict[str, str] = {}


class GangRequest(msgspec.Struct, frozen=True):
    """All tasks that start together or not at all."""

    job: JobId
    job_attempt: int
    user: str
    queue: str
    priority: int
    submitted_at: float
    roles: tuple[RoleAsk, ...]
    topology: TopologyAsk = TopologyAsk()
    network_rdma: str = "none"
    max_duration_seconds: int = 0
    beside: tuple[str, ...] = ()
    """Nodes of the gang that already runs, when these tasks join it."""

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """Every task asked for, in order."""
        return tuple(TaskKey(role.role, index) for role in self.roles for index in role.indexes)
