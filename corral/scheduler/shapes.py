"""Why: a thousand jobs that ask for the same are one question: what they ask is keyed by shape, never by job."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from corral.model.requests import GangRequest, RoleAsk, TopologyAsk

RDMA_LABEL = ("corral.dev/rdma", "true")
"""What a node's labels say when it can do remote direct memory access."""


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


def task_shape(role: RoleAsk, *, rdma: bool = False) -> TaskShape:
    """The shape of a role's tasks; named devices count as many as are named."""
    ask = role.devices
    selector = dict(role.node_selector)
    if rdma:
        selector[RDMA_LABEL[0]] = RDMA_LABEL[1]
    return TaskShape(
        len(ask.ids) or ask.count,
        ask.kind,
        ask.model,
        ask.ids,
        role.cpu_millis,
        role.memory_bytes,
        role.shm_bytes,
        tuple(sorted(selector.items())),
    )


def gang_shape(request: GangRequest) -> Hashable:
    """Equal for gangs that fit exactly where the other fits; gangs that join a running one are like no other."""
    roles = tuple(
        (task_shape(role), len(role.indexes), role.minimum, _topology(role.topology)) for role in request.roles
    )
    joining = (request.job, request.tasks, request.beside) if request.beside else ()
    return (roles, _topology(request.topology), request.network_rdma, request.max_duration_seconds, joining)


def _topology(ask: TopologyAsk) -> tuple[str, str, int, str]:
    return (ask.required, ask.preferred, ask.group_size, ask.group_required)
