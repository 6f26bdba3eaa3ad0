"""What is left of one node, as a value that the *place* part of a policy ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


Known = dict[tuple[int, int, int], tuple[DeviceRoom, ...]]
"""The devices of nodes of one kind with equal devices free, for one shape; a cache."""
_MOST_KNOWN = 4096


def node_room(index: EngineIndex, shape: TaskShape, mask: int, at: int, known: Known) -> NodeRoom:
    """Return what is left of a node, seen by a task of a shape that may use the devices in `mask`.

    O(devices), or O(1) for a state in `known`.
    """
    key, devices = (index.tree.alike[at], index.free[at], mask), None
    plain = shape.share is None and at not in index.shared.at
    if plain:
        devices = known.get(key)
    if devices is None:
        devices = _devices(index, shape, mask, at)
        if plain:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            known[key] = devices
    return NodeRoom(index.tree.nodes[at].name, index.cpu[at], index.memory[at], devices)


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
