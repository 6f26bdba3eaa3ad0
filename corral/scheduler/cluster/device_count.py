"""Count devices, device shares and slices for queue limits, in whole thousandths of a device.

A share counts as the larger of its compute and its memory fraction, a slice as its fraction of the device that it is
cut from. Both are rounded down, so that everything on one device never counts for more than the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from corral.kernel.units import DEVICE
from corral.model.inventory import Device
from corral.model.requests import DeviceRequest, FractionRequest
from corral.scheduler.cluster.allocation import DeviceFraction

WHOLE_DEVICE = 1_000_000
"""A whole device in millionths, the unit of device shares."""
MODEL = "devices/"
"""The prefix of resource names that count the devices of one model."""


class Counted(NamedTuple):
    """A device, and the thousandths that it counts for as a whole."""

    device: Device
    thousandths: int


def counted(devices: Sequence[Device]) -> list[Counted]:
    """Return the devices of one node; a whole device is 1000 thousandths, a slice its fraction of the parent device."""
    slices = Counter(device.parent for device in devices)
    return [
        Counted(device, max(1, DEVICE // slices[device.parent]) if device.parent >= 0 else DEVICE) for device in devices
    ]


def part_of(device: Device, share: FractionRequest) -> DeviceFraction | None:
    """Return the part of a device that a share request amounts to, or None if the device cannot provide it.

    Of compute and memory, an unset value equals the other one. Bytes are rounded down to a millionth of the device, so
    that as many parts fit as their bytes allow.
    """
    memory = share.memory
    if share.memory_bytes:
        if device.memory_bytes < share.memory_bytes:
            return None
        memory = max(1, share.memory_bytes * WHOLE_DEVICE // device.memory_bytes)
    compute = share.compute or memory
    return DeviceFraction(device.index, compute, memory or compute)


def part(share: DeviceFraction, of: int = DEVICE) -> int:
    """Return the thousandths that a part counts for, of a device that counts for `of`."""
    return max(1, max(share.compute, share.memory) * of // WHOLE_DEVICE)


def held(devices: Sequence[Device], mask: int, shares: Sequence[DeviceFraction], names: Sequence[str]) -> list[int]:
    """Return the thousandths of the devices in `mask` for each resource name; 0 for names of other resources.

    A device listed in `shares` counts only for that part. Unknown devices count as whole and have no model.
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
    """Return the thousandths of a node's devices in `mask`, leaving out slices whose parent device is in it too."""
    return sum(
        thousandths
        for device, thousandths in counted(devices)
        if mask >> device.index & 1 and not (device.parent >= 0 and mask >> device.parent & 1)
    )


def wanted(ask: DeviceRequest, known: Iterable[Counted], resource: str) -> int:
    """Return the most that one task's devices can count for, over the `known` devices that it could get."""
    count = len(ask.ids) or ask.count
    found = [each for each in known if _is_meant(ask, each.device)] if count else []
    shares = ask.share
    if shares is None:
        each = DEVICE if resource != "devices" else max((one.thousandths for one in found), default=DEVICE)
        return count * each
    made = [(part_of(one.device, shares), one.thousandths) for one in found]
    fitting = [part(share, of if resource == "devices" else DEVICE) for share, of in made if share is not None]
    if not fitting and not shares.memory_bytes:
        fitting = [part(DeviceFraction(0, shares.compute or shares.memory, shares.memory or shares.compute))]
    return count * max(fitting, default=DEVICE)


def _is_meant(ask: DeviceRequest, device: Device) -> bool:
    """Return whether a task with this request could get the device.

    Slices are given only when asked for by model; devices named by id are whole.
    """
    if device.parent >= 0 and (ask.ids or ask.model != device.model):
        return False
    return ask.kind in ("", device.kind) and ask.model in ("", device.model) and device.model not in ask.without
