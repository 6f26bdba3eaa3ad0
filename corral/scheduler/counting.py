"""Why: queues are held to what their tasks have of devices: whole ones, parts, and slices, all in whole thousandths.

A part counts as the larger of its computing power and its memory, a slice as its part of the device that it is cut from,
both rounded down: what fits on one device never counts for more than the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corral.kernel.units import DEVICE
from corral.model.inventory import Device
from corral.model.requests import DeviceAsk
from corral.scheduler.shapes import ShareShape
from corral.scheduler.takes import Part

WHOLE_DEVICE = 1_000_000
"""The millionths of a device that tasks have parts of."""
MODEL = "devices/"
"""How the name of a resource begins that counts the devices of one model."""


class Counted(NamedTuple):
    """A device, and the thousandths that all of it counts for."""

    device: Device
    thousandths: int


def counted(devices: Sequence[Device]) -> list[Counted]:
    """The devices of one node: a whole one is 1000 thousandths, a slice its part of the one that it is cut from."""
    slices = Counter(device.parent for device in devices)
    return [
        Counted(device, max(1, DEVICE // slices[device.parent]) if device.parent >= 0 else DEVICE) for device in devices
    ]


def part_of(device: Device, share: ShareShape) -> Part | None:
    """The part of a device that a share of it is; None where the device has no such share to give.

    Of computing power and memory what is not said is as much as the other. Bytes are rounded down to a millionth of the
    device, so that as many parts fit as fit in bytes.
    """
    memory = share.memory
    if share.memory_bytes:
        if device.memory_bytes < share.memory_bytes:
            return None
        memory = max(1, share.memory_bytes * WHOLE_DEVICE // device.memory_bytes)
    compute = share.compute or memory
    return Part(device.index, compute, memory or compute)


def part(share: Part, of: int = DEVICE) -> int:
    """The thousandths that a part counts for, of a device that counts for `of`."""
    return max(1, max(share.compute, share.memory) * of // WHOLE_DEVICE)


def held(devices: Sequence[Device], mask: int, shares: Sequence[Part], names: Sequence[str]) -> list[int]:
    """What the devices of a mask count for by the `names` of resources: `devices`, `devices/MODEL`; others are 0.

    Of those in `shares` a task has only that part. Devices that are not known (any more) are whole and of no model.
    """
    parts = {share.device: share for share in shares}
    total: Counter[str] = Counter()
    left = mask
    for device, thousandths in counted(devices):
        bit = 1 << device.index
        if mask & bit:
            left &= ~bit
            share = parts.get(device.index)
            total["devices"] += part(share, thousandths) if share else thousandths
            total[MODEL + device.model] += part(share) if share else DEVICE
    for index in range(left.bit_length()):
        if left >> index & 1:
            total["devices"] += part(parts[index]) if index in parts else DEVICE
    return [total[name] for name in names]


def whole(devices: Sequence[Device], mask: int) -> int:
    """The thousandths of the devices of a mask, of one node, with nobody on them: slices only without what they are of."""
    return sum(
        thousandths
        for device, thousandths in counted(devices)
        if mask >> device.index & 1 and not (device.parent >= 0 and mask >> device.parent & 1)
    )


def wanted(ask: DeviceAsk, known: Iterable[Counted], resource: str) -> int:
    """What one task's devices will count for at the most, where that depends on which of the `known` ones it gets."""
    count = len(ask.ids) or ask.count
    found = [each for each in known if _is_meant(ask, each.device)] if count else []
    shares = ask.share
    if shares is None:
        each = DEVICE if resource != "devices" else max((one.thousandths for one in found), default=DEVICE)
        return count * each
    shape = ShareShape(shares.compute, shares.memory, shares.memory_bytes, shares.spread)
    made = [(part_of(one.device, shape), one.thousandths) for one in found]
    fitting = [part(share, of if resource == "devices" else DEVICE) for share, of in made if share is not None]
    if not fitting and not shares.memory_bytes:
        fitting = [part(Part(0, shares.compute or shares.memory, shares.memory or shares.compute))]
    return count * max(fitting, default=DEVICE)


def _is_meant(ask: DeviceAsk, device: Device) -> bool:
    """Whether such a task could be given this device; slices are asked for by their model, and what is named is whole."""
    if device.parent >= 0 and (ask.ids or ask.model != device.model):
        return False
    return ask.kind in ("", device.kind) and ask.model in ("", device.model)
