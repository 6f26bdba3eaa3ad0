"""Why: the scheduler reads shapes, not job documents: these values are all it knows of a job."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.kernel.ids import JobId, TaskKey

ALONE: Final = "*"
"""The affinity of tasks that are a group each."""


class ShareAsk(msgspec.Struct, frozen=True):
    """A part of one device: of its computing power and of its memory; of the two what is unsaid is as much as the other."""

    compute: int = 0
    """Millionths of the device's computing power; 0 is unsaid."""
    memory: int = 0
    """Millionths of its memory; 0 is unsaid."""
    memory_bytes: int = 0
    """Its memory in bytes instead; 0 is unsaid."""
    spread: bool = False
    """Whether parts go to the emptiest devices instead of those that are given in parts already."""


class DeviceAsk(msgspec.Struct, frozen=True):
    """The devices of one task: `count` of a kind and model ("" is any), or exactly the indexes or ids in `ids`."""

    count: int = 0
    kind: str = ""
    model: str = ""
    ids: tuple[str, ...] = ()
    share: ShareAsk | None = None
    """A part of each task's one device instead of the whole."""


class TopologyAsk(msgspec.Struct, frozen=True):
    """The level all must be inside (`required`), and the level tried first (`preferred`); "" is none."""

    required: str = ""
    preferred: str = ""
    group_size: int = 0
    """Each block of so many tasks stays inside one cell of `group_required`; 0 is no grouping."""
    group_required: str = ""
    spread_level: str = ""
    """The tasks go to different cells of this level, as evenly as can be; "" is no spreading."""
    max_skew: int = 0
    """No cell gets so many tasks more than another one that it could; 0 is no bound."""
    same_model: bool = False
    """All devices are of one model, whichever."""


class Expression(msgspec.Struct, frozen=True):
    """What a node's label has to be; `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt, as in Kubernetes."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Toleration(msgspec.Struct, frozen=True):
    """A taint that a task does not mind, as in Kubernetes; "" is any key or effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int = -1
    """How long it does not mind a `NoExecute` taint while it runs; -1: for ever."""


class NodeRules(msgspec.Struct, frozen=True):
    """Which nodes a task may be on besides those of its selector; names with or without the engine's."""

    expressions: tuple[Expression, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    include: tuple[str, ...] = ()
    """Only these; none named is all."""
    exclude: tuple[str, ...] = ()


class Company(msgspec.Struct, frozen=True):
    """With whom a job shares its nodes."""

    exclusive: bool = False
    """Its nodes are shared with no other job."""
    one_per_node: bool = False
    """No two of its tasks are on one node (FrameworkLauncher's antiaffinityAllocation)."""
    averse: tuple[str, ...] = ()
    """It shares no cell of `averse_level` with jobs that carry one of these tags."""
    averse_level: str = "node"


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
    resources: dict[str, int] = {}
    """Of every other resource, by its name (`ports`, `disk` in bytes, …), what one task needs."""
    nodes: NodeRules | None = None
    affinity: str = ""
    """Under HiveD's preset the affinity group of its tasks, apart from those of other groups; "" is the gang's own, and
    `ALONE` one group for each task."""
    pinned_cell: str = ""
    """The pinned cell that its tasks have to be in, where the roles of the gang are in several; else the gang tells it."""


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
    tags: tuple[str, ...] = ()
    """In order, each once; jobs that are averse to one of them keep away."""
    company: Company | None = None
    groups: tuple[str, ...] = ()
    """The user's groups, for limits per group."""
    preemptible: bool = True
    """Whether it may be told to yield once it runs."""
    deadline: float = 0.0
    """When it has to be over, in seconds since 1970; 0 is no deadline."""
    pinned_cell: str = ""
    """The pinned cell of its queue that all of it has to be in, by the name that the queue's document has; "" is none."""
    turn: float = 0.0
    """Among the waiting gangs of its queue those of a higher turn come first, whatever the order says."""
    lazy_preemption: bool = False
    """Whether under HiveD's preset it runs on as a guest when a stronger gang of its virtual cluster takes its cells."""

    @property
    def in_several_cells(self) -> bool:
        """Whether its roles have to be in different pinned cells, or some in one; only HiveD's preset parts a gang."""
        return any(role.pinned_cell for role in self.roles)

    @property
    def tasks(self) -> tuple[TaskKey, ...]:
        """Every task asked for, in order."""
        return tuple(TaskKey(role.role, index) for role in self.roles for index in role.indexes)
