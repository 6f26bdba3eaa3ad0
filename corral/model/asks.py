"""Why: the scheduler reads shapes only; this turns a job document and the tasks that want placing into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from corral.kernel import units
from corral.kernel.ids import JobId, TaskKey
from corral.model.placement import TaskPlacement
from corral.model.requests import DeviceAsk, GangRequest, RoleAsk, TopologyAsk
from corral.spec.job import UnifiedJob
from corral.spec.parts import Topology
from corral.spec.role import Role


def gang_request(
    job: JobId,
    attempt: int,
    document: UnifiedJob,
    tasks: Iterable[TaskKey],
    *,
    user: str,
    created_at: float,
    running: Sequence[TaskPlacement] = (),
) -> GangRequest:
    """What the scheduler is asked for so that `tasks` of the job can start.

    `running` is the part of the gang that has its places: the tasks join it, and only as many of them are insisted on
    as the job lacks to its minimum.
    """
    indexes: dict[str, list[int]] = {}
    for key in tasks:
        indexes.setdefault(key.role, []).append(key.index)
    held = Counter(placement.role for placement in running)
    least = document.gang_size()
    spec = document.spec
    return GangRequest(
        job=job,
        job_attempt=attempt,
        user=user,
        queue=spec.queue,
        priority=document.priority,
        submitted_at=created_at,
        roles=tuple(
            _role_ask(role, tuple(sorted(indexes[role.name])), least[role.name] - held[role.name])
            for role in spec.roles
            if role.name in indexes
        ),
        topology=_topology(spec.topology),
        network_rdma=spec.network.rdma,
        max_duration_seconds=spec.max_duration_seconds,
        beside=tuple(dict.fromkeys(placement.node for placement in running)),
    )


def _role_ask(role: Role, indexes: tuple[int, ...], minimum: int) -> RoleAsk:
    devices = role.resources.devices
    return RoleAsk(
        role=role.name,
        indexes=indexes,
        minimum=max(0, min(minimum, len(indexes))),
        cpu_millis=role.resources.cpu_millis,
        memory_bytes=role.resources.memory_bytes,
        shm_bytes=units.parse_memory(role.shm) if role.shm else 0,
        devices=DeviceAsk(devices.count, devices.kind, devices.model, tuple(devices.ids)),
        topology=_topology(role.topology),
        node_selector=dict(role.node_selector),
    )


def _topology(topology: Topology) -> TopologyAsk:
    group = topology.group
    return TopologyAsk(topology.required, topology.preferred, group.size, group.required)
