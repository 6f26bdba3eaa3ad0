"""Why: a thousand jobs that ask for the same are one question: what they ask is keyed by shape, never by job."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple
from weakref import WeakValueDictionary

from corral.model.requests import GangRequest, NodeRules, RoleAsk, TopologyAsk

RDMA_LABEL = ("corral.dev/rdma", "true")
"""What a node's labels say when it can do remote direct memory access."""

Amounts = tuple[tuple[str, int], ...]
"""Amounts of resources by name, in the order of names."""


class ShareShape(NamedTuple):
    """The part of a device that a task asks for: millionths, or bytes of its memory; 0 is unsaid."""

    compute: int
    memory: int
    memory_bytes: int
    spread: bool


class TaskShape(NamedTuple):
    """What one task needs of its node."""

    devices: int
    kind: str
    model: str
    ids: tuple[str, ...]
    cpu: int
    memory: int
    shm: int
    selector: tuple[tuple[str, str], ...]
    more: Amounts = ()
    share: ShareShape | None = None
    """A part of one device instead of whole ones; `devices` is 1 then."""
    where: NodeRules | None = None
    avoid: bool = False
    """Leave out the nodes that would rather be left alone (PreferNoSchedule)."""
    known: bool = False
    """Only devices of which it is known which one a task gets, not those that are only counted."""


def task_shape(role: RoleAsk, *, rdma: bool = False, avoid: bool = False) -> TaskShape:
    """The shape of a role's tasks; named devices count as many as are named."""
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
        ShareShape(share.compute, share.memory, share.memory_bytes, share.spread) if share else None,
        role.nodes,
        avoid,
        bool(ask.ids or share),
    )


def covers(larger: TaskShape, smaller: TaskShape) -> bool:
    """Whether a task of the smaller shape fits wherever one of the larger fits, and takes no more of anything there."""
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
    """What a gang asks for, as a key: equal ones are one object while anybody has it, so that a look-up costs nothing."""

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
    """Equal for gangs that fit exactly where the other fits; gangs that join a running one are like no other."""
    roles = tuple(
        (task_shape(role), len(role.indexes), role.minimum, _topology(role.topology)) for role in request.roles
    )
    joining = (request.job, request.tasks, request.beside) if request.beside else scattered(request)
    company = (request.company, request.tags) if request.company is not None or request.tags else ()
    bounds = (request.network_rdma, request.max_duration_seconds)
    where: tuple[object, ...] = (request.queue, request.pinned_cell) if request.pinned_cell else ()
    if any(role.affinity or role.pinned_cell for role in request.roles):
        where = (*where, *((role.affinity, role.pinned_cell) for role in request.roles))
    key = (roles, _topology(request.topology), bounds, joining, company, where)
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = GangShape(key)
    return found


def scattered(request: GangRequest) -> tuple[tuple[int, ...], ...]:
    """The indexes by which the blocks of a gang are told, when some between them are not asked for."""
    found: tuple[tuple[int, ...], ...] = ()
    for role in request.roles:
        if role.topology.group_size > 1 and role.indexes and role.indexes[-1] >= len(role.indexes):
            found = (*found, role.indexes)
    return found


def _topology(ask: TopologyAsk) -> tuple[object, ...]:
    plain = (ask.required, ask.preferred, ask.group_size, ask.group_required)
    return (
        plain if not (ask.spread_level or ask.same_model) else (*plain, ask.spread_level, ask.max_skew, ask.same_model)
    )
