"""Find a cell of an engine by its id, and describe its devices, usage and owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from corral.kernel.ids import JobId
from corral.kernel.units import devices as devices_of
from corral.model.queue_views import CellDevice, CellState, DeviceUse
from corral.scheduler.cells.ownership_registry import SEPARATOR
from corral.scheduler.cluster.device_layout import indexes
from corral.scheduler.cluster.engine_index import EngineIndex
from corral.scheduler.views.cell_owners import Owners
from corral.scheduler.views.occupancy import Occupancy, Use


class Place(NamedTuple):
    """The position of a cell: nodes from `first` up to `last`, and inside one node the device `mask` (else 0)."""

    depth: int
    number: int
    """Its number among the cells of its depth; below the node, among those of its node."""
    first: int
    last: int
    mask: int
    same: tuple[tuple[int, int], ...]
    """Depth and number of wider cells that this same cell stands for, because their levels are not named here."""


class Sums(NamedTuple):
    """Device counts summed over the parts of a cell; named as in `CellState`."""

    devices: int = 0
    free: int = 0
    used: int = 0
    leaving: int = 0
    guests: int = 0
    unhealthy: int = 0
    closed: int = 0


class Counts(NamedTuple):
    """The counts for a set of devices."""

    sums: Sums
    pinned: int
    owners: dict[str, int]
    """For each queue, how many of the devices are bound to it."""
    queues: dict[str, int]
    """For each queue, the thousandths of devices that it uses."""


class EngineCells:
    """The cells of one engine."""

    def __init__(self, name: str, index: EngineIndex, owners: Owners | None, occupancy: Occupancy) -> None:
        self.name = name
        self.index = index
        self.tree = index.tree
        self.nodes = len(index.tree.nodes)
        self._occupancy = occupancy
        self._owners = owners
        self._bound = self._owners.bound if self._owners is not None else {}
        self._pinned = self._owners.pinned if self._owners is not None else {}
        self._of_node: dict[int, Counts] = {}
        self.top = Place(0, 0, 0, self.nodes, 0, ())

    # -- tree ---------------------------------------------------------------------------------------------------------

    def parts(self, place: Place) -> Iterator[tuple[int, int]]:
        """Yield the node positions and device masks of a cell."""
        for at in range(place.first, place.last):
            yield at, place.mask or self.tree.layouts[at].all

    def inside(self, place: Place) -> Iterator[Place]:
        """Yield the cells directly inside a cell; none if it contains only devices."""
        node_depth = self.tree.node_depth
        if place.depth >= node_depth:
            yield from self._within_node(place, place.depth + 1, place.mask or self.tree.layouts[place.first].all, ())
            return
        depth = place.depth + 1
        of, cells = self.tree.cells[depth].of, self.tree.cells[depth]
        at = place.first
        while at < place.last:
            number = of[at]
            end = int(cells.ends[number])
            yield self._named_from(depth, number, at, end)
            at = end

    def _named_from(self, depth: int, number: int, first: int, last: int) -> Place:
        """Return the cell, or the narrower cell that stands for it when its own level is not named."""
        same: list[tuple[int, int]] = []
        while depth < self.tree.node_depth and self.tree.levels[depth] not in dict(self.tree.nodes[first].cells):
            same.append((depth, number))
            depth += 1
            number = self.tree.cells[depth].of[first]
        return Place(depth, number, first, last, 0, tuple(same))

    def _within_node(self, place: Place, depth: int, wanted: int, same: tuple[tuple[int, int], ...]) -> Iterator[Place]:
        """Yield the cells in `wanted` of the first level below that some device of the node names."""
        layout = self.tree.layouts[place.first]
        levels = self.tree.levels
        devices = {device.index: dict(device.cells) for device in self.tree.nodes[place.first].devices}
        for inner in range(depth, len(levels) - 1):
            if any(levels[inner] in devices[index] for index in indexes(wanted)):
                for number, mask in enumerate(layout.depths[inner - self.tree.node_depth]):
                    if mask & wanted:
                        yield Place(inner, number, place.first, place.last, mask, same)
                return

    def named(self, name: str) -> Place | None:
        """Return the cell with this id (without the engine prefix), or None."""
        level, _, rest = name.partition(":")
        if level not in self.tree.levels:
            return None
        depth = self.tree.levels.index(level)
        if depth == 0:
            return self.top if rest == self.name else None
        if depth < self.tree.node_depth:
            cells = self.tree.cells[depth]
            number = cells.names.index(rest) if rest in cells.names else None
            if number is None:
                return None
            return Place(depth, number, int(cells.starts[number]), int(cells.ends[number]), 0, ())
        node, _, offset = rest.rpartition("/") if depth > self.tree.node_depth else (rest, "", "")
        at = self.tree.position.get(node)
        if at is None:
            return None
        if depth == self.tree.node_depth:
            return Place(depth, at, at, at + 1, 0, ())
        masks = self.tree.layouts[at].depths[depth - self.tree.node_depth]
        if not (offset.isdigit() and len(offset) < 7 and int(offset) < len(masks)):
            return None
        return Place(depth, int(offset), at, at + 1, masks[int(offset)], ())

    # -- documents ----------------------------------------------------------------------------------------------------

    def state(self, place: Place) -> CellState:
        """Return the state of a cell without its parts."""
        level, name = self._name(place)
        counts = self._total(place)
        devices, owners = counts.sums.devices, counts.owners
        word, reason = self._trouble(place)
        return CellState(
            f"{self.name}{SEPARATOR}{level}:{self._key(place)}",
            level,
            name,
            *counts.sums,
            owners=owners,
            owner=next((owner for owner, count in owners.items() if count == devices), "") if devices else "",
            pinned=bool(devices) and counts.pinned == devices,
            whole=self._is_whole(place),
            queues={queue: devices_of(amount) for queue, amount in counts.queues.items()},
            state=word,
            reason=reason,
            inside=sum(1 for _ in self.inside(place)) or devices,
        )

    def _total(self, place: Place) -> Counts:
        found = [self._counts(at, mask) for at, mask in self.parts(place)]
        if len(found) == 1:
            return found[0]
        owners: dict[str, int] = {}
        queues: dict[str, int] = {}
        for each in found:
            for into, counted in ((owners, each.owners), (queues, each.queues)):
                for name, count in counted.items():
                    into[name] = into.get(name, 0) + count
        columns = zip(*(each.sums for each in found), strict=True)
        return Counts(Sums(*map(sum, columns)), sum(each.pinned for each in found), owners, queues)

    def _counts(self, at: int, mask: int) -> Counts:
        """Return the counts for some devices of a node, cached for the whole node."""
        whole = mask == self.tree.layouts[at].all
        found = self._of_node.get(at) if whole else None
        if found is None:
            found = self._counted(at, mask)
            if whole:
                self._of_node[at] = found
        return found

    def _counted(self, at: int, mask: int) -> Counts:
        used = leaving = guests = 0
        queues: dict[str, int] = {}
        for use in self._occupancy.uses(self.tree.nodes[at].name):
            held = use.hold.devices & mask
            if held:
                used |= held
                leaving |= held if use.leaving else 0
                guests |= held if self._is_guest(use) else 0
                queues[use.gang.queue] = queues.get(use.gang.queue, 0) + use.thousandths(self.tree, at, held)
        closed = 0 if self.index.usable[at] else mask & ~used
        masks = (mask, self.index.free[at] & mask, used, leaving, guests, mask & ~self.index.offered[at], closed)
        owners = {
            owner: (allowed[at] & mask).bit_count() for owner, allowed in self._bound.items() if allowed[at] & mask
        }
        pinned = (self._pinned.get(at, 0) & mask).bit_count()
        return Counts(Sums(*(part.bit_count() for part in masks)), pinned, owners, queues)

    def _trouble(self, place: Place) -> tuple[str, str]:
        if place.depth == 0 and self.index.unknown:
            return "unknown", self.index.unknown
        if place.depth != self.tree.node_depth:
            return "", ""
        node = self.tree.nodes[place.first]
        if node.ready:
            return "", ""
        return ("cordoned" if node.cordoned else "not-ready"), node.ready_reason

    def _is_whole(self, place: Place) -> bool:
        owners = self._owners
        same = ((place.depth, place.number), *place.same)
        return owners is not None and any(owners.is_whole(depth, number, place.first) for depth, number in same)

    def _is_guest(self, use: Use) -> bool:
        return self._owners is not None and not self._owners.guaranteed(use.gang, use.task, use.hold)

    def _name(self, place: Place) -> tuple[str, str]:
        """Return the level and the display name of a cell."""
        level = self.tree.levels[place.depth]
        if place.depth <= self.tree.node_depth:
            name = self.tree.cells[place.depth].names[place.number]
            return level, name.partition("/")[2] if place.depth == self.tree.node_depth else name
        index = indexes(place.mask)[0]
        device = next(each for each in self.tree.nodes[place.first].devices if each.index == index)
        return level, dict(device.cells).get(level, str(place.number))

    def _key(self, place: Place) -> str:
        if place.depth <= self.tree.node_depth:
            return self.tree.cells[place.depth].names[place.number]
        return f"{self.tree.nodes[place.first].name}/{place.number}"

    def device(self, at: int, index: int, name_of: Callable[[JobId], str]) -> CellDevice:
        """Return the state of one device of a node."""
        node = self.tree.nodes[at]
        device = next(each for each in node.devices if each.index == index)
        uses = [use for use in self._occupancy.uses(node.name) if use.hold.devices >> index & 1]
        state, reason = "free", ""
        if not device.healthy:
            state, reason = "unhealthy", device.health_reason
        elif uses:
            state = "leaving" if any(use.leaving for use in uses) else "used"
        elif not self.index.usable[at]:
            state, reason = "closed", node.ready_reason or self.index.unknown
        return CellDevice(
            index,
            device.id,
            device.kind,
            device.model,
            state,
            reason,
            next((owner for owner, allowed in self._bound.items() if allowed[at] >> index & 1), ""),
            bool(self._pinned.get(at, 0) >> index & 1),
            tuple(self._use(use, index, name_of) for use in uses),
        )

    def _use(self, use: Use, index: int, name_of: Callable[[JobId], str]) -> DeviceUse:
        gang = use.gang
        standing = "" if self._owners is None else "guest" if self._is_guest(use) else "guaranteed"
        return DeviceUse(
            gang.job, name_of(gang.job), gang.user, gang.queue, use.task.role, use.task.index, gang.priority,
            standing, use.leaving, use.percent(index),
        )  # fmt: skip
