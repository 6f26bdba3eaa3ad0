"""OpenPAI's virtual clusters, as queues: their figures, and the calls that create, change, close and delete them.

A virtual cluster's capacity is a percentage of the machines. Its queue deserves that part of their processors, memory
and devices, and may hold up to its maximum; the unpromised rest is `default`'s. Under the preset hived, and for
queues that own cells already, the percentage becomes whole machines of each kind. Pinned cells name machines, which no
percentage can do: such queues are changed as documents.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from corral.compat.openpai.records.clusters import Figures, NodeFigures, VirtualCluster
from corral.compat.openpai.service.errors import OpenPaiRefusal
from corral.kernel import units
from corral.kernel.errors import Conflict
from corral.model.accounts import ADMIN_GROUP, Group
from corral.model.configuration import Configuration, read_configuration
from corral.model.queue_views import QueueView
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.configuration.documents import ConfigurationDocuments
from corral.service.context import Context
from corral.service.machines.nodes import Nodes, amounts_of
from corral.service.machines.queue_views import Queues
from corral.service.people.groups import Groups
from corral.spec.errors import SpecError
from corral.spec.queue import QueueDocument
from corral.spec.queue_amounts import count, spoken_amount
from corral.store.cluster_views import HolderRow, NodeRow

DEFAULT: Final = "default"
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_WHOLE: Final = 100.0
_MEGABYTE: Final = 2**20
_RESOURCES: Final = ("devices", "cpu", "memory")
"""A queue's part of the cluster is computed from the first of these that it was promised and machines have."""
_EVERY: Final = 1_000_000
_ROUNDING: Final = 1e-4
"""Added before rounding down: a reported capacity is rounded, and setting it again must give the same machines."""


class VirtualClusters:
    """Manage virtual clusters through OpenPAI's API."""

    def __init__(
        self, context: Context, queues: Queues, nodes: Nodes, groups: Groups, configuration: ConfigurationDocuments
    ) -> None:
        self._context = context
        self._store = context.store
        self._queues = queues
        self._nodes = nodes
        self._groups = groups
        self._configuration = configuration

    async def all(self, actor: Actor) -> dict[str, VirtualCluster]:
        """Every virtual cluster by name, in tree order."""
        views = (await self._queues.page(actor, limit=_EVERY)).items
        nodes, holders = await self._store.nodes(), await self._store.holders()
        return _clusters(views, nodes, holders, set(await self._store.cordons()))

    async def get(self, actor: Actor, name: str) -> VirtualCluster:
        """One virtual cluster.

        Raises OpenPaiRefusal for an invalid name, and when there is no such virtual cluster.
        """
        check_name(name)
        found = (await self.all(actor)).get(name)
        if found is None:
            raise _no_cluster(f"Vc {name} not found")
        return found

    async def devices_by_node(self, actor: Actor) -> dict[str, NodeFigures]:
        """By machine: how many devices it has, how many are used, and how many are available."""
        shown = (await self._nodes.page(actor, limit=_EVERY)).items
        found = {}
        for node in shown:
            whole = [device for device in node.devices if device.parent < 0]
            used = sum(device.job is not None or bool(device.others) for device in whole)
            available = node.free.devices if node.ready and node.cordon is None else 0
            found[node.name.partition("/")[2] or node.name] = NodeFigures(used, available, available, len(whole))
        return found

    async def put(
        self,
        actor: Actor,
        name: str,
        capacity: float,
        maximum: float | None = None,
        *,
        description: str = "",
        external_name: str = "",
    ) -> bool:
        """Give a virtual cluster a percentage of the machines; True if it was created.

        Raises OpenPaiRefusal.
        """
        await self._may_change_cluster(actor, name)
        most = capacity if maximum is None else maximum
        if not 0 <= capacity <= most <= _WHOLE:
            message = "The capacity of a virtual cluster is 0 to 100, and not above its maximum capacity."
            raise OpenPaiRefusal("InvalidParametersError", message)
        groups = {group.name: group for group in await self._store.groups()}
        if (group := groups.get(name)) is not None and group.queues != (name,):
            raise OpenPaiRefusal("ConflictVcError", f"Group name {name} already exists.")
        known = await self.all(actor)
        if name in known:
            self._check_shared(known, name, "updated")
        others = (each.capacity for vc, each in known.items() if vc not in (name, DEFAULT) and not each.dedicated)
        if _WHOLE - sum(others) - capacity < 0:
            raise OpenPaiRefusal("NoEnoughQuotaError", "No enough quota")
        now = await self._configuration_now()
        before, total = now.queues.get(name), await self._total()
        if not total:
            message = "No machine is known of which a virtual cluster could have a part; add one first."
            raise OpenPaiRefusal("BadConfigurationError", message)
        changes: dict[str, Any]
        if _by_cells(now, before):
            changes = {"cells": _whole_machines(now, await self._store.nodes(), capacity)}
            if capacity and not changes["cells"]:
                message = f"{capacity:g} percent of the machines is not one whole machine; ask for more."
                raise OpenPaiRefusal("BadConfigurationError", message)
        else:
            changes = {"deserved": _part(total, capacity), "limit": _part(total, most) if most < _WHOLE else {}}
        await self._apply_queue(actor, name, before, changes)
        if group is None and name not in known:
            made = Group(name, (name,), description=description, external_name=external_name)
            await self._groups.put(actor, made)
        return name not in known

    async def set_status(self, actor: Actor, name: str, status: str) -> None:
        """Close a virtual cluster to new jobs (`stopped`), or open it again (`running`).

        Raises OpenPaiRefusal.
        """
        await self._may_change_cluster(actor, name)
        if status not in ("stopped", "running"):
            raise OpenPaiRefusal("BadConfigurationError", f"Unknown vc status: {status[:200]}")
        before = (await self._configuration_now()).queues.get(name)
        if before is None:
            raise _no_cluster(f"Vc {name} not found, can't {'stop' if status == 'stopped' else 'active'}")
        await self._apply_queue(actor, name, before, {"closed": status == "stopped"})

    async def remove(self, actor: Actor, name: str) -> None:
        """Delete a virtual cluster without jobs, its group, and its name in other groups.

        Raises OpenPaiRefusal.
        """
        await self._may_change_cluster(actor, name)
        if name == ADMIN_GROUP:
            raise OpenPaiRefusal("ForbiddenUserError", f"The name '{name}' is occupied by admin group.")
        known = await self.all(actor)
        if name not in known:
            raise _no_cluster(f"Can't delete a nonexistent vc {name}")
        self._check_shared(known, name, "removed")
        revision = await self._store.document("Queue", name)
        if revision is None or revision.deleted:
            message = f"Vc {name} is part of the cluster's own document, which has to be changed instead."
            raise OpenPaiRefusal("ReadOnlyVcError", message)
        jobs = known[name].num_jobs
        running = f"Can't delete vc {name}, {{}} jobs are running, stop them before delete vc"
        if jobs:
            raise OpenPaiRefusal("RemoveRunningVcError", running.format(jobs))
        try:
            await self._configuration.delete(actor, "Queue", name)
        except Conflict as error:
            if error.code == "queue-in-use":
                raise OpenPaiRefusal("RemoveRunningVcError", running.format("some")) from None
            raise OpenPaiRefusal("ConflictVcError", error.message) from None
        for group in await self._store.groups():
            if group.name == name and group.queues == (name,):
                await self._groups.remove(actor, name)
            elif name in group.queues:
                left = tuple(queue for queue in group.queues if queue != name)
                await self._groups.put(actor, msgspec.structs.replace(group, queues=left))

    async def sku_types(self, actor: Actor, cluster: str = "") -> dict[str, dict[str, int]]:
        """The CPU and memory that come with one device of each model (SKU), of one virtual cluster or of all.

        Raises OpenPaiRefusal for an unknown virtual cluster.
        """
        found = _skus(await self._store.nodes())
        if not cluster:
            await self._nodes.check_may_look(actor)
            return found
        view = next(
            (each for each in (await self._queues.page(actor, limit=_EVERY)).items if each.name == cluster), None
        )
        if view is None:
            raise _no_cluster(f"Cannot get sku types for virtual cluster {cluster[:200]}.")
        owned = _models_owned(view)
        return {name: sku for name, sku in found.items() if not owned or name in owned}

    async def _may_change_cluster(self, actor: Actor, name: str) -> None:
        await self._context.check(actor, "document.apply", Resource("document", f"Queue/{name[:200]}"))
        check_name(name)
        if name == DEFAULT:
            raise OpenPaiRefusal("ForbiddenUserError", "Update operation to default vc isn't allowed")

    def _check_shared(self, known: Mapping[str, VirtualCluster], name: str, done: str) -> None:
        if known[name].dedicated:
            message = f"Dedicated vc is read-only, can't be {done} by rest-api"
            raise OpenPaiRefusal("ReadOnlyVcError", message)

    async def _configuration_now(self) -> Configuration:
        documents = await self._store.all_documents()
        return read_configuration(documents.revisions, documents.change)

    async def _total(self) -> dict[str, int]:
        return {name: amount for name, amount in _total(await self._store.nodes()).items() if amount}

    async def _apply_queue(
        self, actor: Actor, name: str, before: QueueDocument | None, changes: Mapping[str, Any]
    ) -> None:
        document = (before.to_document() if before is not None else {"kind": "Queue", "name": name}) | dict(changes)
        try:
            await self._configuration.apply(actor, json.dumps(document), filename="virtual cluster")
        except Conflict as error:
            if error.code == "guarantee-broken":
                raise OpenPaiRefusal("NoEnoughQuotaError", error.message) from None
            raise OpenPaiRefusal("ConflictVcError", error.message) from None
        except SpecError as error:
            raise OpenPaiRefusal("InvalidParametersError", str(error)) from None


def check_name(name: str) -> None:
    """Raise OpenPaiRefusal for a name that no virtual cluster can have."""
    if not _NAME.fullmatch(name):
        message = "VC name should only contain alpha-numeric and underscore characters"
        raise OpenPaiRefusal("InvalidParametersError", message)


def _no_cluster(message: str) -> OpenPaiRefusal:
    return OpenPaiRefusal("NoVirtualClusterError", message)


def _clusters(
    views: Iterable[QueueView], nodes: list[NodeRow], holders: list[HolderRow], cordoned: set[str]
) -> dict[str, VirtualCluster]:
    shown = list(views)
    total = _total(nodes)
    good = _total(row for row in nodes if row.node.ready and row.node.name not in cordoned)
    used = _used_by_queue(holders)
    promised = {view.name: _promised(view, nodes) for view in shown}
    tops = [view.name for view in shown if not view.doc.get("parent")]
    rest = {name: max(0, total[name] - sum(promised[top].get(name, 0) for top in tops)) for name in _RESOURCES}
    return {view.name: _cluster(view, promised[view.name] or rest, used[view.name], total, good) for view in shown}


def _cluster(
    view: QueueView, own: Mapping[str, int], used: Mapping[str, int], total: Mapping[str, int], good: Mapping[str, int]
) -> VirtualCluster:
    limit = count(view.doc.get("limit") or {})
    dedicated, owner = bool(view.doc.get("pinnedCells")), bool(view.doc.get("cells") or view.doc.get("pinnedCells"))
    capacity = _percent(own, total)
    most = capacity if owner else min(_WHOLE, max(capacity, _percent(limit, total))) if limit else _WHOLE
    whole = {name: min(own.get(name, 0) or total[name], total[name]) for name in _RESOURCES} if own else dict(own)
    sound = {name: whole.get(name, 0) * good[name] // total[name] if total[name] else 0 for name in _RESOURCES}
    return VirtualCluster(
        capacity=capacity,
        used_capacity=_percent(used, total),
        max_capacity=most,
        dedicated=dedicated,
        num_jobs=view.running + view.waiting,
        num_active_jobs=view.running,
        num_pending_jobs=view.waiting,
        status="STOPPED" if view.doc.get("closed") else "RUNNING",
        resources_used=_figures(used),
        resources_guaranteed=_figures(sound),
        resources_total=_figures(whole),
    )


def _promised(view: QueueView, nodes: list[NodeRow]) -> dict[str, int]:
    """A queue's own resources: what it deserves, and the devices of its cells with their part of CPU and memory."""
    own = count(view.doc.get("guaranteed") or {}) | count(view.doc.get("deserved") or {})
    found = {name: amount for name, amount in own.items() if name in _RESOURCES}
    if "devices" not in found:
        models = sum(amount for name, amount in own.items() if name.startswith("devices/"))
        found |= {"devices": models} if models else {}
    standing = view.standing
    if standing is None or not standing.owned_devices:
        return found
    total = _total(nodes)
    devices = found.get("devices", 0) + int(standing.owned_devices * units.DEVICE)
    with_them = {name: total[name] * devices // total["devices"] for name in ("cpu", "memory") if total["devices"]}
    return with_them | found | {"devices": devices}


def _by_cells(now: Configuration, before: QueueDocument | None) -> bool:
    """Whether a virtual cluster's capacity is written as cells."""
    return (now.policy is not None and now.policy.preset == "hived") or (before is not None and bool(before.cells))


def _whole_machines(now: Configuration, nodes: Iterable[NodeRow], percent: float) -> list[dict[str, Any]]:
    """The whole machines of each kind that a percentage allows, as cells."""
    sorts = Counter(sort for row in nodes if (sort := _sort(row)) is not None)
    types = {
        (level.level, level.model): name
        for each in now.clusters.values()
        for name, level in each.machines.types.items()
    }
    cells: list[dict[str, Any]] = []
    for (chain, model), there in sorted(sorts.items()):
        name = types.get(("node", model), "")
        what = (
            {"cellType": f"{chain}.{name}" if chain != name else name}
            if chain and name
            else {"level": "node", "model": model}
        )
        if owned := int(there * percent / _WHOLE + _ROUNDING):
            cells.append({**what, "count": owned})
    return cells


def _sort(row: NodeRow) -> tuple[str, str] | None:
    """The chain and the model of a machine whose devices are all of one kind; else None."""
    found = {(device.chain, device.model) for device in row.node.devices}
    return next(iter(found)) if len(found) == 1 else None


def _total(nodes: Iterable[NodeRow]) -> dict[str, int]:
    found = dict.fromkeys(_RESOURCES, 0)
    for row in nodes:
        found["cpu"] += row.node.cpu_millis
        found["memory"] += row.node.memory_bytes
        found["devices"] += sum(device.parent < 0 for device in row.node.devices) * units.DEVICE
    return found


def _used_by_queue(holders: Iterable[HolderRow]) -> dict[str, dict[str, int]]:
    by_queue: dict[str, list[HolderRow]] = defaultdict(list)
    for holder in holders:
        by_queue[holder.queue].append(holder)
    found: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_RESOURCES, 0))
    for queue, rows in by_queue.items():
        cpu, memory = amounts_of(rows)
        millis = sum(row.task.placement.device_millis for row in rows if row.task.placement is not None)
        found[queue] = {"cpu": cpu, "memory": memory, "devices": millis}
    return found


def _percent(amount: Mapping[str, int], total: Mapping[str, int]) -> float:
    for name in _RESOURCES:
        if total[name] and name in amount:
            return round(amount[name] * _WHOLE / total[name], 2)
    return 0.0


def _part(total: Mapping[str, int], percent: float) -> dict[str, str]:
    return {name: spoken_amount(name, int(amount * percent / _WHOLE)) for name, amount in total.items()}


def _figures(amounts: Mapping[str, int]) -> Figures:
    cpu, devices = amounts.get("cpu", 0) // 1000, amounts.get("devices", 0) // units.DEVICE
    return Figures(cpu, cpu, amounts.get("memory", 0) // _MEGABYTE, devices, devices)


def _skus(nodes: Iterable[NodeRow]) -> dict[str, dict[str, int]]:
    """By model, the least CPU and memory that come with a device of it on any machine.

    Jobs ask for an SKU, so each SKU is a device model.
    """
    found: dict[str, dict[str, int]] = {}
    for row in nodes:
        node = row.node
        models = [device.model for device in node.devices if device.parent < 0]
        for model in filter(None, models):
            sku = {
                "gpu": 1,
                "cpu": node.cpu_millis // 1000 // len(models),
                "memory": node.memory_bytes // _MEGABYTE // len(models),
            }
            before = found.get(model, sku)
            found[model] = {name: min(amount, before[name]) for name, amount in sku.items()}
    return found


def _models_owned(view: QueueView) -> set[str]:
    written = {str(cells.get("model", "")) for cells in view.doc.get("cells") or ()}
    standing = {cells.model for cells in view.standing.cells} if view.standing is not None else set()
    return {model for model in written | standing if model}
