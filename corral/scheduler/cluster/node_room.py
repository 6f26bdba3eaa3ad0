"""What is left of one node, as a value that the *place* part of a policy ranks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.scheduler.cluster.device_count import WHOLE_DEVICE, part_of
from corral.scheduler.placement.shape import TaskShape

if TYPE_CHECKING:
    from corral.model.inventory import Device
    from corral.scheduler.cluster.engine_index import EngineIndex


class DeviceRoom(NamedTuple):
    """What is left of one device, in millionths of it; of computing power and memory the scarcer one counts."""

    number: int
    """Counts from 0 within its node."""
    model: str
    left: int
    """All of it for an unused device, 0 for one that cannot be given."""
    takes: int
    """What one task of the shape takes if it gets this device; 0 if the device is not for such a task."""


class NodeRoom(NamedTuple):
    """What is left of one node that has room for a task of the shape."""

    node: str
    """`engine/node`, unique in the cluster."""
    cpu: int
    """Thousandths of processors."""
    memory: int
    """Bytes."""
    devices: tuple[DeviceRoom, ...]
    """All its devices, used or not, by index. A slice is not listed; its device has nothing left while one is used."""

    @property
    def left(self) -> int:
        """Return what is left of all devices together, in millionths of a device."""
        return sum(device.left for device in self.devices)

    def asked(self, shape: TaskShape) -> int:
        """Return what one task takes of this node's devices, in millionths of a device."""
        return shape.devices * max((device.takes for device in self.devices), default=0)


_MOST_KNOWN: Final = 8192
"""The most states of nodes that are kept for one engine, of about a kilobyte each."""
_MOST_NUMBERED: Final = 1 << 14
"""The most states of nodes whose numbers are kept; beyond it all are forgotten, and later ones get new numbers."""


def node_room(index: EngineIndex, shape: TaskShape, mask: int, at: int) -> NodeRoom:
    """Return what is left of a node, seen by a task of a shape that may use the devices in `mask`.

    O(devices) for a new state of a node, else as much as the look-up of the state.
    """
    tree = index.tree
    if shape.share is not None and shape.share.memory_bytes:  # its part depends on the memory of each device
        devices = _devices(index, shape, mask, at)
    else:
        key, known = node_state(index, shape, mask, at), tree.rooms
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = _devices(index, shape, mask, at)
        devices = found
    return NodeRoom(tree.nodes[at].name, index.cpu[at], index.memory[at], devices)


def node_state(index: EngineIndex, shape: TaskShape, mask: int, at: int) -> Hashable:
    """Return all that a node's `devices` depend on, for a shape that asks for no bytes of a device."""
    takes = shape.share or shape.devices > 0
    if shared := index.shared.at.get(at):
        return (index.tree.alike[at], index.free[at], mask, takes, index.shareable(at), *shared.items())
    return (index.tree.alike[at], index.free[at], mask, takes)


class NodeStates:
    """A number for the present state of each node of an engine: its processors, and what is left of its devices.

    Nodes with equal numbers differ at most by name, memory and health. A number stands for the same state for ever. It
    follows the journal of the engine, and numbers each changed node once, however many shapes are ranked.
    """

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._known: dict[Hashable, int] = {}
        self._next = 0
        self._cursor = 0
        self._again: set[int] = set()
        """The nodes to be numbered again, because changes were undone that it has followed."""

    def sync(self, index: EngineIndex) -> list[int]:
        """Return the numbers by node position, after those that changed since the last call were numbered anew."""
        numbers, begun = self._numbers, index.changes - len(index.journal)
        if not numbers or self._cursor < begun:
            self._numbers = numbers = [self._number(index, at) for at in range(len(index.free))]
        elif self._cursor != index.changes or self._again:
            for at in self._again.union(index.journal[self._cursor - begun :]):
                numbers[at] = self._number(index, at)
        self._cursor = index.changes
        self._again.clear()
        return numbers

    def look_again(self, nodes: Sequence[int], changes: int) -> None:
        """Take back that it followed changes of these nodes, all made after the count was `changes`."""
        if self._cursor > changes:
            self._cursor = changes
            self._again.update(nodes)

    def _number(self, index: EngineIndex, at: int) -> int:
        state: Hashable = (index.cpu[at], index.tree.alike[at], index.free[at])
        if shared := index.shared.at.get(at):
            state = (state, index.shareable(at), *sorted(shared.items()))  # what was undone may change their order
        found = self._known.get(state)
        if found is None:
            if len(self._known) >= _MOST_NUMBERED:
                self._known.clear()
            found = self._known[state] = self._next
            self._next += 1
        return found

    def agrees(self, index: EngineIndex) -> bool:
        """Return whether the numbers equal those of nodes that are all numbered anew."""
        return self.sync(index) == [self._number(index, at) for at in range(len(index.free))]

    def copy(self) -> NodeStates:
        """Return an independent copy, which gives the same numbers to what is known now."""
        twin = NodeStates()
        twin._numbers, twin._known = self._numbers[:], dict(self._known)
        twin._next, twin._cursor, twin._again = self._next, self._cursor, set(self._again)
        return twin


def _devices(index: EngineIndex, shape: TaskShape, mask: int, at: int) -> tuple[DeviceRoom, ...]:
    free, shared = index.free[at], index.shared.at.get(at, {})
    shareable = index.shareable(at) if shared else free
    devices = []
    for device in index.tree.nodes[at].devices:
        if device.parent >= 0:
            continue
        bit = 1 << device.index
        left = WHOLE_DEVICE if free & bit else 0
        if shareable & bit and (used := shared.get(device.index)):
            left = WHOLE_DEVICE - max(used.compute, used.memory)
        devices.append(DeviceRoom(device.index, device.model, left, _takes(device, shape) if mask & bit else 0))
    return tuple(devices)


def _takes(device: Device, shape: TaskShape) -> int:
    if shape.share is None:
        return WHOLE_DEVICE if shape.devices else 0
    part = part_of(device, shape.share)
    return max(part.compute, part.memory) if part else 0
