"""The shape of a request: a key that is equal for requests of any jobs that fit in the same places."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple
from weakref import WeakValueDictionary

from corral.model.requests import FractionRequest, GangRequest, NodeRules, RoleRequest
from corral.spec.placement.network import RDMA_LABEL

Amounts = tuple[tuple[str, int], ...]
"""Amounts of resources by name, sorted by name."""


class TaskShape(NamedTuple):
    """The requirements of one task on its node."""

    devices: int
    kind: str
    model: str
    ids: tuple[str, ...]
    cpu: int
    memory: int
    shm: int
    selector: tuple[tuple[str, str], ...]
    more: Amounts = ()
    share: FractionRequest | None = None
    """A part of one device instead of whole devices; `devices` is then 1."""
    where: NodeRules | None = None
    avoid: bool = False
    """Whether to exclude nodes with a PreferNoSchedule taint that the task does not tolerate."""
    known: bool = False
    """Whether only devices with a known identity count, not those that are merely counted."""
    without: tuple[str, ...] = ()
    """The models that its devices must not be of."""


def task_shape(role: RoleRequest, *, rdma: bool = False, avoid: bool = False) -> TaskShape:
    """Return the shape of a role's tasks; named devices count by their number."""
    ask = role.devices
    selector = role.node_selector
    if rdma:
        selector = selector | dict([RDMA_LABEL])
    share = ask.share
    return TaskShape(
        len(ask.ids) or ask.count,
        ask.kind,
        ask.model,
        ask.ids,
        role.cpu_millis,
        role.memory_bytes,
        role.shm_bytes,
        tuple(sorted(selector.items())) if selector else (),
        tuple(sorted(role.resources.items())) if role.resources else (),
        share,
        role.nodes,
        avoid,
        bool(ask.ids or share),
        ask.without,
    )


def covers(larger: TaskShape, smaller: TaskShape) -> bool:
    """Return whether the smaller shape fits wherever the larger one does and takes no more of any resource."""
    if larger.share is not None or smaller.share is not None or larger.ids or smaller.ids:
        return False
    where, other = (each._replace(devices=0, cpu=0, memory=0, shm=0, more=()) for each in (larger, smaller))
    if where != other:
        return False
    had = dict(larger.more)
    plain = [(each.devices, each.cpu, each.memory, each.shm) for each in (larger, smaller)]
    enough = all(more >= less for more, less in zip(*plain, strict=True))
    return enough and all(had.get(name, 0) >= wanted for name, wanted in smaller.more)


class GangShape:
    """A gang's shape as a key. Equal live shapes are one object, which makes look-ups cheap."""

    __slots__ = ("__weakref__", "_hash", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self._hash = hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, GangShape) and self.key == other.key)


_KNOWN: WeakValueDictionary[Hashable, GangShape] = WeakValueDictionary()


def gang_shape(request: GangRequest) -> Hashable:
    """Return a key that is equal for gangs that fit in exactly the same places, however long they run.

    A gang that joins a running one has a key of its own.
    """
    roles = tuple((task_shape(role), len(role.indexes), role.minimum, role.topology) for role in request.roles)
    joining = (request.job, request.tasks, request.beside) if request.beside else scattered(request)
    sharing = (request.company, request.tags) if request.company is not None or request.tags else ()
    where: tuple[object, ...] = (request.queue, request.pinned_cell) if request.pinned_cell else ()
    if any(role.affinity or role.pinned_cell for role in request.roles):
        where = (*where, *((role.affinity, role.pinned_cell) for role in request.roles))
    key = (roles, request.topology, request.network_rdma, joining, sharing, where)
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = GangShape(key)
    return found


def scattered(request: GangRequest) -> tuple[tuple[int, ...], ...]:
    """Return the task indexes of roles with blocks, where some indexes in between are not requested."""
    found: tuple[tuple[int, ...], ...] = ()
    for role in request.roles:
        if role.topology.group_size > 1 and role.indexes and role.indexes[-1] >= len(role.indexes):
            found = (*found, role.indexes)
    return found
