"""Requests for placement: all that the scheduler knows of a job."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.kernel.ids import JobId, TaskKey
from corral.model.input_bytes import InputBytes
from corral.spec.placement.network import REQUIRED
from corral.spec.placement.sharing import NodeSharing as NodeSharing
from corral.spec.placement.topology import TopologyRequest as TopologyRequest

ALONE: Final = "*"
"""The affinity of tasks that are a group each."""


class FractionRequest(msgspec.Struct, frozen=True):
    """A fraction of one device: of its computing power and of its memory. An unset one equals the other."""

    compute: int = 0
    """Millionths of the device's computing power; 0 is unset."""
    memory: int = 0
    """Millionths of its memory; 0 is unset."""
    memory_bytes: int = 0
    """Its memory in bytes instead; 0 is unset."""
    spread: bool = False
    """Whether fractions go to the emptiest devices instead of devices that are already shared."""


class DeviceRequest(msgspec.Struct, frozen=True):
    """The devices of one task: `count` of a kind and model ("" is any), or exactly the indexes or ids in `ids`."""

    count: int = 0
    kind: str = ""
    model: str = ""
    ids: tuple[str, ...] = ()
    share: FractionRequest | None = None
    """A fraction of the task's one device instead of the whole."""
    without: tuple[str, ...] = ()
    """The models that it must not be of, sorted."""


class Expression(msgspec.Struct, frozen=True):
    """A condition on a node label; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt, as in Kubernetes."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Toleration(msgspec.Struct, frozen=True):
    """A taint that a task tolerates, as in Kubernetes; "" is any key or effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int = -1
    """Seconds that it tolerates a `NoExecute` taint while it runs; -1: for ever."""


class NodeRules(msgspec.Struct, frozen=True):
    """Node rules of a task besides its selector; node names may omit the engine."""

    expressions: tuple[Expression, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    include: tuple[str, ...] = ()
    """Only these nodes; empty is all."""
    exclude: tuple[str, ...] = ()


class RoleRequest(msgspec.Struct, frozen=True):
    """Tasks of one role with equal requirements."""

    role: str
    indexes: tuple[int, ...]
    minimum: int
    """The number of them that is enough to begin (elastic); len(indexes) if not elastic."""
    cpu_millis: int = 0
    memory_bytes: int = 0
    shm_bytes: int = 0
    devices: DeviceRequest = DeviceRequest()
    topology: TopologyRequest = TopologyRequest()
    node_selector: dict[str, str] = {}
    resources: dict[str, int] = {}
    """Other resources that one task needs, by name (`ports`, `disk` in bytes, …)."""
    nodes: NodeRules | None = None
    affinity: str = ""
    """Under HiveD's preset, the affinity group of its tasks; "" is the gang's own group, `ALONE` one group per task."""
    pinned_cell: str = ""
    """The pinned cell of its tasks, if the gang's roles are in several; else see `GangRequest.pinned_cell`."""


class GangRequest(msgspec.Struct, frozen=True):
    """All tasks that start together or not at all."""

    job: JobId
    job_attempt: int
    user: str
    queue: str
    priority: int
    submitted_at: float
    roles: tuple[RoleRequest, ...]
    topology: TopologyRequest = TopologyRequest()
    network_rdma: str = "none"
    max_duration_seconds: int = 0
    beside: tuple[str, ...] = ()
    """The nodes of the running gang that these tasks join."""
    tags: tuple[str, ...] = ()
    """Sorted, without duplicates; jobs with an anti-affinity to one of them keep away."""
    company: NodeSharing | None = None
    groups: tuple[str, ...] = ()
    """The user's groups, for limits per group."""
    preemptible: bool = True
    """Whether it may be preempted once it runs."""
    deadline: float = 0.0
    """When it must have ended, in seconds since 1970; 0 is no deadline."""
    pinned_cell: str = ""
    """The pinned cell of its queue that must hold the whole gang, by its name in the queue's document; "" is none."""
    turn: float = 0.0
    """Waiting gangs of a queue with a higher turn come first, before the queue's order applies."""
    speeds: tuple[tuple[str, float], ...] = ()
    """Work per second on each model of device, in any unit, sorted by model; empty is unknown."""
    scaling: tuple[tuple[int, int, float], ...] = ()
    """Devices, nodes and work per second in any unit, as its author measured them at several sizes; empty is unknown."""
    lazy_preemption: bool = False
    """Under HiveD's preset: run on as a guest when a stronger gang of its virtual cluster takes its cells."""
    inputs: InputBytes | None = None
    """Where its inputs are, which breaks ties between equally good places; None is unknown."""

    @property
    def needs_rdma(self) -> bool:
        """Whether only nodes with RDMA are enough."""
        return self.network_rdma == REQUIRED

    @property
    def in_several_cells(self) -> bool:
        """Whether a role has a pinned cell of its own; only HiveD's preset splits a gang over several."""
        return any(role.pinned_cell for role in self.roles)

    @property
    def goes_anywhere(self) -> bool:
        """Whether it is one role that joins no running gang and is bound to no network or pinned cell."""
        return len(self.roles) == 1 and not self.beside and self.network_rdma == "none" and not self.pinned_cell

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """Every requested task, in order."""
        return tuple(TaskKey(role.role, index) for role in self.roles for index in role.indexes)
