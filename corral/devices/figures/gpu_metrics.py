"""Read why the clocks of an AMD GPU are held down, from the table `gpu_metrics` of the kernel's amdgpu driver.

Layouts: Linux, `drivers/gpu/drm/amd/include/kgd_pp_interface.h`, `gpu_metrics_v1_3` (MI200, Radeon) and `v1_6` to `v1_9`
(MI300), of which the last is a list of attributes, each with its number, type and count; bits:
`drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h`, `SMU_THROTTLER_…`. Other tables tell no such thing, or tell it in bits of
each chip's own.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from corral.devices.figures.device_figures import MOST_DEVICES, Held

MOST_BYTES: Final = 16_384
"""Bytes of a table that are read; the largest known one has 3,360."""
HeldDown = tuple[tuple[Held, float], ...]
_HEADER: Final = struct.Struct("<HBB")
"""The table's size, and its format and content revisions."""
_STATUS_AT: Final = 112
"""Where `gpu_metrics_v1_3` has `indep_throttle_status`."""
_RESIDENCIES_AT: Final = {6: 32, 7: 40, 8: 40}
"""By content revision, where `accumulation_counter` and the five residencies after it are."""
_RESIDENCIES: Final = struct.Struct("<6I")
_ATTRIBUTES: Final = 9
"""The content revision that is a list of attributes."""
_COUNT: Final = struct.Struct("<i")
_ENCODING: Final = struct.Struct("<Q")
_MOST_ATTRIBUTES: Final = 256
_INTEGERS: Final = "BbHhIiQq"
"""The types of an attribute's values, by number."""
_FIRST_ID: Final = 9
"""The number of `ACCUMULATION_COUNTER`, after which the five residencies follow."""
_UNKNOWN_STATUS: Final = 2**64 - 1
_UNKNOWN_COUNT: Final = 2**32 - 1


def _bits(first: int, last: int) -> int:
    return sum(1 << bit for bit in range(first, last + 1))


_BITS: Final = (
    (Held.HEAT, _bits(32, 45)),
    (Held.PROCHOT, _bits(46, 47)),
    (Held.POWER, _bits(0, 7)),
    (Held.CURRENT, _bits(16, 23)),
)


class Residencies(NamedTuple):
    """In how many cycles of its firmware a GPU was held down, since the driver was loaded."""

    cycles: int
    """All cycles."""
    prochot: int
    power: int
    heat: tuple[int, int, int]
    """Of the socket, the voltage regulators and the memory."""


def parse_gpu_metrics(table: bytes) -> HeldDown | Residencies | None:
    """What a table tells of its GPU's clocks: reasons that hold now, or counts of cycles; None if it tells nothing."""
    if len(table) < _HEADER.size:
        return None
    size, format_revision, content = _HEADER.unpack_from(table)
    if format_revision != 1 or size > len(table):
        return None
    if content == 3 and size >= _STATUS_AT + 8:
        (status,) = struct.unpack_from("<Q", table, _STATUS_AT)
        return None if status == _UNKNOWN_STATUS else tuple((each, float(bool(status & bits))) for each, bits in _BITS)
    at = _RESIDENCIES_AT.get(content)
    if content == _ATTRIBUTES:
        counts = _listed(table[:size])
    elif at is not None and size >= at + _RESIDENCIES.size:
        counts = _RESIDENCIES.unpack_from(table, at)
    else:
        return None
    if len(counts) != 6 or not {_UNKNOWN_COUNT, _UNKNOWN_STATUS}.isdisjoint(counts):
        return None
    cycles, prochot, power, socket, regulators, memory = counts
    return Residencies(cycles, prochot, power, (socket, regulators, memory))


def _listed(table: bytes) -> tuple[int, ...]:
    """The six counts of a list of attributes; fewer of a list that lacks some, or is damaged."""
    found: dict[int, int] = {}
    at = _HEADER.size + _COUNT.size
    if len(table) < at:
        return ()
    (count,) = _COUNT.unpack_from(table, _HEADER.size)
    for _ in range(min(count, _MOST_ATTRIBUTES)):
        if len(table) < at + _ENCODING.size:
            break
        (encoding,) = _ENCODING.unpack_from(table, at)
        at += _ENCODING.size
        instances, number, kind = encoding & 0x3FF, encoding >> 10 & 0x3FF, encoding >> 20 & 0xF
        if kind >= len(_INTEGERS):
            break
        value = struct.Struct(f"<{_INTEGERS[kind]}")
        if instances == 1 and len(table) >= at + value.size:
            (found[number],) = value.unpack_from(table, at)
        at += instances * value.size
    return tuple(found[each] for each in range(_FIRST_ID, _FIRST_ID + 6) if each in found)


class HeldDownSince:
    """Makes of counts of cycles the parts of the time between two looks."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Residencies, HeldDown | None]] = {}

    def told(self, device: str, table: bytes) -> HeldDown | None:
        """What a device's table tells; None at the first look, and after its driver was loaded anew."""
        found = parse_gpu_metrics(table)
        if not isinstance(found, Residencies):
            self._last.pop(device, None)
            return found
        before, parts = self._last.get(device, (None, None))
        if before is not None and before.cycles != found.cycles:
            parts = _between(before, found)
        if before is not None or len(self._last) < MOST_DEVICES:
            self._last[device] = found, parts
        return parts


def _between(before: Residencies, now: Residencies) -> HeldDown | None:
    passed = now.cycles - before.cycles
    grown = (
        (Held.HEAT, max(b - a for a, b in zip(before.heat, now.heat, strict=True))),
        (Held.PROCHOT, now.prochot - before.prochot),
        (Held.POWER, now.power - before.power),
    )
    if passed < 0 or any(count < 0 for _, count in grown):
        return None
    return tuple((each, min(1.0, count / passed)) for each, count in grown)
