"""Share devices between tasks in parts, packed so that other devices stay whole.

Parts are counted in millionths of a device's compute and memory. Parts of different devices therefore add up exactly
and never exceed the whole.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.model.inventory import MPS_LABEL, Node
from corral.scheduler.cluster.allocation import DeviceFraction
from corral.scheduler.cluster.device_count import WHOLE_DEVICE, part_of
from corral.scheduler.cluster.shape_slots import SECOND, Slots
from corral.scheduler.placement.node_fit import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corral.scheduler.cluster.engine_index import EngineIndex
    from corral.scheduler.cluster.topology_tree import Tree
    from corral.scheduler.placement.search import Spot

_NAMED = 3


class Used(NamedTuple):
    """The parts given of one device, summed, and the number of tasks that have them."""

    compute: int
    memory: int
    tasks: int


class Shared:
    """The devices given in parts, by node position and device; unused and wholly given devices are absent."""

    def __init__(self) -> None:
        self.at: dict[int, dict[int, Used]] = {}

    def add(self, at: int, part: DeviceFraction) -> None:
        """Record one more task with a part."""
        here = self.at.setdefault(at, {})
        used = here.get(part.device, Used(0, 0, 0))
        here[part.device] = Used(used.compute + part.compute, used.memory + part.memory, used.tasks + 1)

    def remove(self, at: int, part: DeviceFraction) -> bool:
        """Remove one task's part; return whether the device is now unused."""
        here = self.at[at]
        used = here[part.device]
        if used.tasks > 1:
            here[part.device] = Used(used.compute - part.compute, used.memory - part.memory, used.tasks - 1)
            return False
        del here[part.device]
        if not here:
            del self.at[at]
        return True

    def room(self, at: int, part: DeviceFraction) -> bool:
        """Return whether the part is available on a device that is shared or unused."""
        used = self.at.get(at, {}).get(part.device, Used(0, 0, 0))
        return used.compute + part.compute <= WHOLE_DEVICE and used.memory + part.memory <= WHOLE_DEVICE

    def listed(self) -> list[tuple[int, list[tuple[int, Used]]]]:
        """Return the whole state in a fixed order."""
        return sorted((at, sorted(here.items())) for at, here in self.at.items())

    def copy(self) -> Shared:
        """Return an independent copy."""
        twin = Shared()
        twin.at = {at: dict(here) for at, here in self.at.items()}
        return twin


class FractionSlots(Slots):
    """How many tasks that request a part of a device fit on each node of an engine."""

    def measure(self, index: EngineIndex, at: int, within: int = WHOLE, tasks: int | None = None) -> int:
        """Return how many blocks fit on a node now, using only devices of the mask `within`."""
        room = self._besides(index, at, tasks)
        if room <= 0:
            return 0
        if self.depth == 0:
            return min(room, self._parts(index, at, within) // self.size)
        cells = index.tree.layouts[at].depths[self.depth]
        return min(room, sum(self._parts(index, at, within & cell) // self.size for cell in cells))

    def _besides(self, index: EngineIndex, at: int, tasks: int | None) -> int:
        """Return how many blocks find everything except devices."""
        tasks = index.tasks[at] if tasks is None else tasks
        if tasks <= 0 or not index.usable[at] or not self.masks[at]:
            return 0
        return self.amounts_room(index, at, tasks // self.size)

    def _parts(self, index: EngineIndex, at: int, within: int) -> int:
        """Return how many parts are available on the devices of a mask."""
        return sum(count for _, count in self.choices(index, at, within))

    def choices(self, index: EngineIndex, at: int, within: int = WHOLE) -> list[tuple[DeviceFraction, int]]:
        """Return the available parts per device, with the number each device can still give, in order of use.

        Packing uses the fullest shared devices first, then whole devices. Spreading uses the emptiest first.
        """
        share, node = self.shape.share, index.tree.nodes[at]
        assert share is not None
        mask, used = self.masks[at] & within & index.shareable(at), index.shared.at.get(at, {})
        found: list[tuple[tuple[int, ...], DeviceFraction, int]] = []
        for device in node.devices:
            bit = 1 << device.index
            given = used.get(device.index)
            if not mask & bit or not (given or index.free[at] & bit):
                continue
            part = part_of(device, share)
            if part is None:
                continue
            compute, memory = (given.compute, given.memory) if given else (0, 0)
            count = min((WHOLE_DEVICE - compute) // part.compute, (WHOLE_DEVICE - memory) // part.memory)
            if count > 0:
                order = max(compute, memory) if share.spread else -max(compute, memory)
                found.append(((order, *self._wholeness(index, at, bit)), part, count))
        return [(part, count) for _, part, count in sorted(found, key=lambda entry: entry[0])]

    def _wholeness(self, index: EngineIndex, at: int, bit: int) -> tuple[int, int]:
        """Return a sort key of equal devices: the cell with the fewest free devices first, then the device order."""
        cells = index.tree.layouts[at].depths[-2]
        return next((cell & index.free[at]).bit_count() for cell in cells if cell & bit), bit

    def give(self, index: EngineIndex, at: int, within: int, tasks: int) -> list[DeviceFraction]:
        """Return parts for `tasks` tasks, which must have room."""
        share = self.shape.share
        assert share is not None
        choices = self.choices(index, at, within)
        if share.spread:
            return _round_robin(choices, tasks)
        return [part for part, count in choices for _ in range(count)][:tasks]

    def give_blocks(self, index: EngineIndex, at: int, within: int, blocks: int) -> list[DeviceFraction]:
        """Return parts for `blocks` blocks, each inside one cell."""
        if self.depth == 0:
            return self.give(index, at, within, blocks * self.size)
        out: list[DeviceFraction] = []
        for cell in index.tree.layouts[at].depths[self.depth]:
            count = min(blocks - len(out) // self.size, self._parts(index, at, within & cell) // self.size)
            out += self.give(index, at, within & cell, count * self.size)
        return out

    def _measure_all(self, index: EngineIndex) -> array[int]:
        """Measure every node, by columns where free devices are whole and equal, which is nearly everywhere."""
        largest = max(self.masks, default=0)
        if self.depth or self.size > 1 or largest >> 63:
            return array("q", (self.measure(index, at) for at in range(len(index.free))))
        each = [self._on_one(node) for node in index.tree.nodes]
        parts = np.bitwise_count(self.fitting_free(index)).astype(np.int64) * np.maximum(
            np.array(each, dtype=np.int64), 0
        )
        found = array("q", np.minimum(parts, self.amounts_column(index)).tobytes())
        odd = [at for at, count in enumerate(each) if count < 0]
        for at in {*odd, *index.shared.at}:
            found[at] = self.measure(index, at)
        return found

    def _on_one(self, node: Node) -> int:
        """Return how many parts each whole device of a node gives; -1 if its devices differ."""
        share, devices = self.shape.share, node.devices
        assert share is not None
        if not devices:
            return 0
        if share.memory_bytes and any(device.memory_bytes != devices[0].memory_bytes for device in devices):
            return -1
        part = part_of(devices[0], share)
        return min(WHOLE_DEVICE // part.compute, WHOLE_DEVICE // part.memory) if part else 0

    def _all_keys(self, index: EngineIndex) -> NDArray[np.int64]:
        return np.array([self._key(index, at, room) for at, room in enumerate(self._kept)], dtype=np.int64)

    def _from(self, blocks: int) -> list[int]:
        return [key for key in self._keys if key % SECOND >= blocks]

    def _key(self, index: EngineIndex, at: int, room: int) -> int:
        """Return the bucket key of a node, or -1 for no room.

        When packing, nodes with shared devices come first, then those with the fewest free devices.
        """
        if not room:
            return -1
        share = self.shape.share
        free = (index.free[at] & self.masks[at]).bit_count()
        room = min(room, SECOND - 1)
        if share is not None and share.spread:
            return (SECOND - room) * SECOND + room
        broken = at in index.shared.at and any(
            part.device in index.shared.at[at] for part, _ in self.choices(index, at)
        )
        return (0 if broken else 1 + free) * SECOND + room


def _round_robin(choices: list[tuple[DeviceFraction, int]], tasks: int) -> list[DeviceFraction]:
    """Deal one part of each device in turn."""
    out: list[DeviceFraction] = []
    left = dict(choices)
    while len(out) < tasks:
        for part in left:
            if left[part] and len(out) < tasks:
                left[part] -= 1
                out.append(part)
    return out


def unenforced(tree: Tree, spots: Sequence[Spot]) -> tuple[str, ...]:
    """Return a note if nothing on some of these nodes limits tasks to their parts."""
    nodes = (tree.nodes[at] for at in sorted({spot.at for spot in spots if spot.part}))
    free = [node.name for node in nodes if node.labels.get(MPS_LABEL[0]) != MPS_LABEL[1]]
    if not free:
        return ()
    return (f"device shares are counted but not enforced on {', '.join(free[:_NAMED])}{'…' * (len(free) > _NAMED)}",)
