"""Why: OpenPAI asks a virtual cluster for cells: a task takes as many as its largest need fills, and no job takes more than
the cluster owns. Where a queue owns cells, its jobs of OpenPAI are counted like that before they are accepted.

A queue without cells has no such quota: what is asked of it waits for room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from corral.kernel.errors import Conflict, Unavailable
from corral.model.inventory import Node
from corral.model.overview import QueueStanding
from corral.service.base import ServiceBase
from corral.spec.job import UnifiedJob
from corral.spec.openpai.names import JOB_TYPE
from corral.spec.role import Role

_CELLS: Final = ("cells", "pinnedCells")


class Sku(NamedTuple):
    """What one device of a model comes with, at the least: thousandths of processors, and bytes."""

    cpu_millis: int
    memory_bytes: int


class OpenPaiQuota(ServiceBase):
    """What virtual clusters own, and whether a job of OpenPAI fits in it."""

    async def _in_cells(self, job: UnifiedJob, nodes: Iterable[Node]) -> UnifiedJob:
        """The job with as many devices for each task as it has cells, where its queue owns cells.

        Raises Conflict `no-enough-quota` where the queue does not own so many for all tasks, and they start together.
        """
        if job.spec.job_type != JOB_TYPE or not job.total_devices:
            return job
        doc = next((queue.doc for queue in await self.store.queues() if queue.name == job.spec.queue), {})
        if not any(doc.get(field) for field in _CELLS):
            return job
        known = skus(nodes)
        roles = [_with_cells(role, known) for role in job.spec.roles]
        counted = job.model_copy(update={"spec": job.spec.model_copy(update={"roles": roles})})
        if job.priority >= 0 and job.spec.gang and not job.spec.pinned_cell:
            await self._check_quota(counted)
        return counted

    async def _check_quota(self, job: UnifiedJob) -> None:
        """Raise Conflict where the job's queue does not own as many cells as it asks for; nobody knows: none."""
        try:
            found = msgspec.convert(await self.door.ask("/overview/queues"), list[QueueStanding])
        except Unavailable:
            return
        standing = next((each for each in found if each.name == job.spec.queue), None)
        if standing is None:
            return
        asked: Counter[str] = Counter()
        for role in job.spec.roles:
            asked[role.resources.devices.model] += role.resources.devices.count * job.replicas_of(role.name)
        owned: dict[str, float] = {"": standing.owned_devices}
        for cells in standing.cells:
            owned[cells.model] = owned.get(cells.model, 0) + cells.owned * cells.devices
        for model, count in (*asked.items(), ("", asked.total())):
            if count > owned.get(model, 0):
                of_model = f" of {model}" if model else ""
                raise Conflict(
                    "no-enough-quota",
                    f"The job asks for {count} cells{of_model}, and virtual cluster {job.spec.queue} has "
                    f"{owned.get(model, 0):g}; ask for fewer, or submit it with the priority class oppo.",
                )


def skus(nodes: Iterable[Node]) -> dict[str, Sku]:
    """By model what a device of it comes with on the machines that have least beside it; "" is for any device."""
    found: dict[str, Sku] = {}
    for node in nodes:
        models = [device.model or device.kind for device in node.devices if device.parent < 0]
        for model in {*models, ""} if models else ():
            own = Sku(node.cpu_millis // len(models), node.memory_bytes // len(models))
            found[model] = Sku(*map(min, own, found.get(model, own)))
    return found


def cells_of(role: Role, known: Mapping[str, Sku]) -> int:
    """How many cells one task of a role fills: the most that any of its resources needs."""
    asked = role.resources
    sku = known.get(asked.devices.model)
    needs = [asked.devices.count]
    if sku is not None and asked.devices.count:
        needs += [-(-asked.cpu_millis // sku.cpu_millis)] if sku.cpu_millis else []
        needs += [-(-asked.memory_bytes // sku.memory_bytes)] if sku.memory_bytes else []
    return max(needs)


def _with_cells(role: Role, known: Mapping[str, Sku]) -> Role:
    count = cells_of(role, known)
    if count == role.resources.devices.count:
        return role
    devices = role.resources.devices.model_copy(update={"count": count})
    return role.model_copy(update={"resources": role.resources.model_copy(update={"devices": devices})})
