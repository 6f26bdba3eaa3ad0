"""Count OpenPAI's jobs in cells, and check them against the cells that their queue owns.

In OpenPAI a task takes as many cells as it says, or as its largest resource need fills. Its SKU must exist, and no job
takes more cells than its virtual cluster owns. A queue without cells has no such quota: its jobs wait for room.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, NoReturn

import msgspec

from corral.compat.openpai.language.hived import RoleTerms, hived_terms
from corral.compat.openpai.language.names import JOB_TYPE, ROLES
from corral.compat.openpai.language.protocol import ProtocolError
from corral.compat.openpai.language.translation import to_protocol
from corral.kernel.errors import Conflict, Unavailable
from corral.model.inventory import Node
from corral.model.queue_views import QueueStanding
from corral.service.context import Context
from corral.spec.errors import Problem, SpecError
from corral.spec.job import UnifiedJob
from corral.spec.role import Role
from corral.store.cluster_views import Admission

MOST_CELLS: Final = 1024
"""Most devices of one task."""


class Sku(NamedTuple):
    """The least that comes with one device of a model: thousandths of processors, and bytes."""

    cpu_millis: int
    memory_bytes: int


class Owned(NamedTuple):
    """Devices that a virtual cluster owns: in all, and by model if every device has a known one."""

    devices: float
    models: Mapping[str, float]


class CellQuota:
    """Check jobs of OpenPAI against the cells that their virtual clusters own."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def in_cells(self, job: UnifiedJob, admission: Admission) -> UnifiedJob:
        """Set each task's device count to its number of cells, and its SKU, if the job's queue owns cells.

        Raises ProtocolError for an SKU that does not exist or is not the queue's, Conflict `no-enough-quota` where a
        gang needs more cells than the queue owns. Opportunistic jobs may take any cells.
        """
        if job.spec.job_type != JOB_TYPE or job.spec.queue not in admission.owners:
            return job
        asked, known = role_terms(job), skus(admission.nodes)
        owned = await self._owned(job.spec.queue) if job.priority >= 0 else None
        models = owned.models if owned is not None else {}
        there = models_of(admission.nodes) | models.keys()
        for name, terms in asked.values():
            _check_sku(name, terms.sku_type, there, models, job.spec.queue)
        own = {model: sku for model, sku in known.items() if not models or model in models}
        nothing = RoleTerms()
        roles = [_with_cells(role, asked.get(role.name, ("", nothing))[1], own or known) for role in job.spec.roles]
        counted = job.model_copy(update={"spec": job.spec.model_copy(update={"roles": roles})})
        if owned is not None and job.spec.gang:
            _check_quota(counted, owned, asked)
        return counted

    async def _owned(self, queue: str) -> Owned | None:
        """The devices that a queue owns; None while control does not answer, or does not know the queue."""
        try:
            found = msgspec.convert(await self._context.control.request("/overview/queues"), list[QueueStanding])
        except Unavailable:
            return None
        standing = next((each for each in found if each.name == queue), None)
        if standing is None:
            return None
        models: dict[str, float] = {}
        amounts = [(cells.model, cells.owned * cells.devices) for cells in standing.cells if cells.owned]
        if all(model for model, _ in amounts) and sum(amount for _, amount in amounts) >= standing.owned_devices:
            for model, amount in amounts:
                models[model] = models.get(model, 0) + amount
        return Owned(standing.owned_devices, models)


def role_terms(job: UnifiedJob) -> dict[str, tuple[str, RoleTerms]]:
    """By role of the job: its name in OpenPAI, and its HiveD terms; empty for a document without a protocol.

    Raises ProtocolError where OpenPAI would refuse the terms.
    """
    annotations = job.metadata.annotations
    try:
        protocol = to_protocol({"metadata": {"annotations": annotations}})
        names = json.loads(annotations.get(ROLES, "{}"))
    except (SpecError, ValueError, RecursionError):
        return {}
    parts = (names, protocol.get("taskRoles"), protocol.get("extras", {}))
    if not all(isinstance(part, dict) for part in parts):
        return {}
    roles = hived_terms(protocol).roles
    called = {role.name: str(names.get(role.name, role.name)) for role in job.spec.roles}
    return {role: (name, roles[name]) for role, name in called.items() if name in roles}


def models_of(nodes: Iterable[Node]) -> set[str]:
    """The device models that a job can ask for; devices without a model are asked for by kind alone."""
    return {device.model for node in nodes for device in node.devices if device.model and device.parent < 0}


def skus(nodes: Iterable[Node]) -> dict[str, Sku]:
    """By model, the least CPU and memory that come with a device of it on any machine."""
    found: dict[str, Sku] = {}
    for node in nodes:
        models = [device.model or device.kind for device in node.devices if device.parent < 0]
        for model in set(models):
            own = Sku(node.cpu_millis // len(models), node.memory_bytes // len(models))
            found[model] = Sku(*map(min, own, found.get(model, own)))
    return found


def cells_of(role: Role, terms: RoleTerms, known: Mapping[str, Sku]) -> int:
    """Cells that one task of a role fills: the number it names, else the most that any of its resources needs."""
    asked = role.resources
    if terms.sku_count:
        return max(terms.sku_count, asked.devices.count)
    sku = _sku(asked.devices.model or terms.sku_type, known)
    needs = [asked.devices.count]
    if sku is not None:
        needs += [-(-asked.cpu_millis // sku.cpu_millis)] if sku.cpu_millis else []
        needs += [-(-asked.memory_bytes // sku.memory_bytes)] if sku.memory_bytes else []
    return max(needs)


def _sku(model: str, known: Mapping[str, Sku]) -> Sku | None:
    """CPU and memory that come with a device of a model; the least of all if any model will do."""
    if model or not known:
        return known.get(model)
    return Sku(min(sku.cpu_millis for sku in known.values()), min(sku.memory_bytes for sku in known.values()))


def _with_cells(role: Role, terms: RoleTerms, known: Mapping[str, Sku]) -> Role:
    count, asked = cells_of(role, terms, known), role.resources.devices
    if count > MOST_CELLS:
        message = (
            f"A task of role {role.name} asks for {count} cells, and no task has more than {MOST_CELLS}; ask for less."
        )
        raise Conflict("no-enough-quota", message)
    model = asked.model or (terms.sku_type if count else "")
    if (count, model) == (asked.count, asked.model):
        return role
    devices = asked.model_copy(update={"count": count, "model": model})
    resources = role.resources.model_copy(update={"devices": devices})
    # cells are room, not processes: the role keeps its number of processes
    return role.model_copy(update={"resources": resources, "processes_per_replica": role.processes})


def _check_sku(role: str, sku: str, known: Iterable[str], owned: Mapping[str, float], queue: str) -> None:
    """Raise ProtocolError for an SKU that no machine has, or none of the queue's; without known models all pass."""
    if sku and (there := sorted(known)) and sku not in there:
        _refuse(role, f"Taskrole {role} has unknown skuType {sku}, allow {','.join(there)}.")
    if sku and owned and sku not in owned:
        _refuse(role, f"Taskrole {role} has skuType {sku}, VC {queue} only allows {','.join(sorted(owned))}.")


def _refuse(role: str, message: str) -> NoReturn:
    path = ("extras", "hivedScheduler", "taskRoles", role, "skuType")
    raise ProtocolError([Problem(message, path)], message)


def _check_quota(job: UnifiedJob, owned: Owned, terms: Mapping[str, tuple[str, RoleTerms]]) -> None:
    """Refuse a job that asks for more cells than its queue owns.

    Raises ProtocolError where no role names an SKU, and where an affinity group without one needs more cells than the
    queue owns of any SKU; Conflict `no-enough-quota` otherwise.
    """
    asked: Counter[str] = Counter()
    together: Counter[str] = Counter()
    for role in job.spec.roles:
        model, count = role.resources.devices.model, role.resources.devices.count * job.replicas_of(role.name)
        asked[model] += count
        own = terms[role.name][1] if role.name in terms else RoleTerms()
        if not model and not own.pinned_cell:
            together[own.affinity_group] += count
    total, queue = asked.total(), job.spec.queue
    if total > owned.devices and together.total() == total:
        _refuse_cells(f"The job asks for {total} cells, and virtual cluster {queue} has {owned.devices:g} of all SKUs")
    by_model = {model: count for model, count in asked.items() if model and owned.models}
    for model, count in (*by_model.items(), ("", total)):
        there = owned.models.get(model, 0) if model else owned.devices
        if count > there:
            of_model = f" of {model}" if model else ""
            raise Conflict(
                "no-enough-quota",
                f"The job asks for {count} cells{of_model}, and virtual cluster {queue} has "
                f"{there:g}; ask for fewer, or submit it with the priority class oppo.",
            )
    largest = max(owned.models.values(), default=owned.devices)
    needed = max(together.values(), default=0)
    if needed > largest:
        each = ", ".join(f"{count:g} of {model}" for model, count in sorted(owned.models.items()))
        _refuse_cells(f"The job asks for {needed} cells of one SKU, and virtual cluster {queue} has {each}")


def _refuse_cells(message: str) -> NoReturn:
    """Raise ProtocolError, which is answered as InvalidProtocolError, as in OpenPAI."""
    message += "; ask for fewer, or submit it with the priority class oppo."
    raise ProtocolError([Problem(message, ("taskRoles",))], message)
