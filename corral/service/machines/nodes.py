"""Views of nodes, devices and cells, built from stored data whether or not the scheduler answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from corral.kernel import units
from corral.kernel.errors import NotFound
from corral.kernel.units import parse_cpu, parse_memory
from corral.model.cluster_use import ClusterUse
from corral.model.cordons import Cordon, cordon_view
from corral.model.inventory import Device, Node
from corral.model.records import JobFilter, Page, ShareView, rfc3339
from corral.model.views import Amounts, CellView, DeviceView, Holding, MismatchView, NodeJob, NodeView, Top
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.list_cursor import page_start
from corral.store.cluster_views import HolderRow, NodeRow

_LIST: Final = 1000


class Nodes:
    """Views of nodes, devices and the cell tree."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def page(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[NodeView]:
        """One page of the nodes, by name."""
        await self.check_may_look(actor)
        found, holders = await self._store.nodes(), _by_node(await self._store.holders())
        cordons = await self._store.cordons()
        rest = [row for row in found if row.node.name > after]
        shown = [_node_view(row, holders[row.node.name], cordons.get(row.node.name)) for row in rest[:limit]]
        return Page(shown, shown[-1].name if len(rest) > len(shown) else None)

    async def get(self, actor: Actor, name: str) -> NodeView:
        """One node.

        Raises NotFound.
        """
        await self.check_may_look(actor)
        row = await self._store.node(name)
        if row is None:
            raise NotFound("node-not-found", f"There is no node {name[:100]}; `corral nodes` lists them.")
        return _node_view(row, await self._store.holders(name), (await self._store.cordons()).get(name))

    async def devices(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[DeviceView]:
        """One page of all devices, by node and index."""
        nodes = (await self.page(actor, limit=_LIST * 1000)).items
        found = [device for node in nodes for device in node.devices]
        begin = page_start(after, len(found))
        more = str(begin + limit) if begin + limit < len(found) else None
        return Page(found[begin : begin + limit], more)

    async def cluster(self, actor: Actor) -> CellView:
        """The cell tree, from the root to the devices."""
        nodes = (await self.page(actor, limit=_LIST * 1000)).items
        engines: dict[str, list[tuple[NodeView, list[tuple[str, str]]]]] = defaultdict(list)
        for node in nodes:
            engines[node.engine].append((node, list(node.levels.items())))
        cells = tuple(_cell("engine", name, _inside(inner)) for name, inner in sorted(engines.items()))
        return _cell("root", "cluster", cells)

    async def top(self, actor: Actor) -> Top:
        """Totals of the cluster, and up to 100 jobs that run."""
        nodes = (await self.page(actor, limit=_LIST * 1000)).items
        running = await self._store.list_jobs(JobFilter(phases=("starting", "running", "stopping")), limit=100)
        counts = list((await self._store.count_jobs()).values())
        return Top(
            rfc3339(self._clock.now()),
            total=_sum(node.total for node in nodes),
            free=_sum(node.free for node in nodes if node.ready and node.cordon is None),
            waiting=sum(each.get("waiting", 0) for each in counts),
            running=sum(each.get("running", 0) for each in counts),
            jobs=tuple(running.items),
        )

    async def use(self, actor: Actor) -> Page[ClusterUse]:
        """How each cluster that others share is used beside Corral, in one page.

        Raises Unavailable when control does not answer.
        """
        await self.check_may_look(actor)
        return Page(msgspec.convert(await self._context.control.request("/engines/use"), list[ClusterUse]))

    async def check_may_look(self, actor: Actor) -> None:
        """Check that the actor may see the nodes.

        Raises Forbidden.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))


def _by_node(holders: Iterable[HolderRow]) -> dict[str, list[HolderRow]]:
    found: dict[str, list[HolderRow]] = defaultdict(list)
    for holder in holders:
        if holder.task.placement is not None:
            found[holder.task.placement.node].append(holder)
    return found


def _node_view(row: NodeRow, holders: Sequence[HolderRow], cordon: Cordon | None) -> NodeView:
    node = row.node
    held: dict[int, list[Holding]] = defaultdict(list)
    for holder in holders:
        for index in holder.task.placement.devices if holder.task.placement else ():
            held[index].append(_holding(holder))
    cut = {device.parent for device in node.devices if device.index in held}
    devices = tuple(
        _device_view(node, device, held.get(device.index, ()), shut=device.index in cut or device.parent in held)
        for device in node.devices
    )
    cpu, memory = amounts_of(holders)
    return NodeView(
        name=node.name,
        engine=row.engine,
        ready=node.ready,
        reason=node.ready_reason,
        cordon=cordon_view(cordon) if cordon else None,
        levels=dict(node.cells),
        labels=node.labels,
        total=Amounts(node.cpu_millis, node.memory_bytes, _whole(devices)),
        free=Amounts(max(0, node.cpu_millis - cpu), max(0, node.memory_bytes - memory), _free(devices)),
        devices=devices,
        links=node.links,
        mismatches=tuple(MismatchView(each.what, each.configured, each.reported) for each in node.mismatches),
        tasks=len(holders),
        jobs=_jobs(holders),
        seen_at=rfc3339(row.seen_at),
    )


def _jobs(holders: Iterable[HolderRow]) -> tuple[NodeJob, ...]:
    """The jobs of these tasks, by name."""
    found: dict[str, NodeJob] = {}
    millis: dict[str, int] = defaultdict(int)
    for holder in holders:
        before = found.get(holder.job) or NodeJob(holder.job, holder.name, holder.user, 0)
        millis[holder.job] += holder.task.placement.device_millis if holder.task.placement else 0
        shown = units.devices(millis[holder.job])
        found[holder.job] = msgspec.structs.replace(before, tasks=before.tasks + 1, devices=shown)
    return tuple(sorted(found.values(), key=lambda job: (job.name, job.id)))


def amounts_of(holders: Iterable[HolderRow]) -> tuple[int, int]:
    """Thousandths of a processor and bytes of memory given to the tasks, according to their documents."""
    roles: dict[tuple[str, str], tuple[int, int]] = {}
    cpu = memory = 0
    for holder in holders:
        key = (holder.job, holder.task.role)
        if key not in roles:
            for role in msgspec.json.decode(holder.doc).get("spec", {}).get("roles", ()):
                resources = role.get("resources", {})
                given = parse_cpu(str(resources.get("cpu") or "0")), parse_memory(str(resources.get("memory") or "0"))
                roles[holder.job, role["name"]] = given
        each = roles.get(key, (0, 0))
        cpu, memory = cpu + each[0], memory + each[1]
    return cpu, memory


def _holding(holder: HolderRow) -> Holding:
    share = holder.task.placement.share if holder.task.placement else None
    part = ShareView(share.compute / 10_000, share.memory / 10_000) if share else None
    return Holding(holder.job, holder.name, holder.user, holder.task.role, holder.task.index, part)


def _device_view(node: Node, device: Device, holdings: Sequence[Holding], *, shut: bool) -> DeviceView:
    """One device; `shut`: a slice of it, or the device it is a slice of, is held."""
    return DeviceView(
        index=device.index,
        id=device.id,
        kind=device.kind,
        model=device.model,
        memory_bytes=device.memory_bytes,
        healthy=device.healthy,
        health_reason=device.health_reason,
        described=device.described,
        cells=dict(device.cells),
        node=node.name,
        parent=device.parent,
        free=device.healthy and not holdings and not shut,
        job=holdings[0] if holdings else None,
        others=tuple(holdings[1:]),
    )


def _whole(devices: Iterable[DeviceView]) -> int:
    return sum(device.parent < 0 for device in devices)


def _free(devices: Iterable[DeviceView]) -> int:
    return sum(device.free and device.parent < 0 for device in devices)


def _inside(nodes: Sequence[tuple[NodeView, list[tuple[str, str]]]]) -> tuple[CellView, ...]:
    """The cells that contain these nodes; each node comes with the levels still above it."""
    groups: dict[tuple[str, str], list[tuple[NodeView, list[tuple[str, str]]]]] = defaultdict(list)
    cells: list[CellView] = []
    for node, levels in nodes:
        if levels:
            groups[levels[0]].append((node, levels[1:]))
        else:
            below = _below(node.devices, [list(device.cells.items()) for device in node.devices])
            cells.append(_cell("node", node.name, below[0], below[1], ready=node.ready and node.cordon is None))
    return (*(_cell(level, name, _inside(inner)) for (level, name), inner in sorted(groups.items())), *cells)


def _below(
    devices: Sequence[DeviceView], levels: Sequence[list[tuple[str, str]]]
) -> tuple[tuple[CellView, ...], tuple[DeviceView, ...]]:
    """The cells inside a node, and the devices outside any cell."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, above in enumerate(levels):
        if above:
            groups[above[0]].append(position)
    cells = []
    for (level, name), members in groups.items():
        inner = _below([devices[each] for each in members], [levels[each][1:] for each in members])
        cells.append(_cell(level, name, *inner))
    return tuple(cells), tuple(device for device, above in zip(devices, levels, strict=True) if not above)


def _cell(
    level: str, name: str, cells: tuple[CellView, ...], holds: tuple[DeviceView, ...] = (), *, ready: bool = True
) -> CellView:
    devices = _whole(holds) + sum(cell.devices for cell in cells)
    free = _free(holds) + sum(cell.free for cell in cells)
    return CellView(level, name, devices, free if ready else 0, ready, cells, holds)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    cpu = memory = devices = 0
    for each in amounts:
        cpu, memory, devices = cpu + each.cpu_millis, memory + each.memory_bytes, devices + each.devices
    return Amounts(cpu, memory, devices)
