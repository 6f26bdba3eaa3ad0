"""The figures of one device at one time, in the same form for every vendor."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

MOST_DEVICES: Final = 256
"""Devices of one machine that are read; a document that names more is cut."""
MOST_WORD: Final = 128
"""Characters of an id or a model that are kept."""


class Held(StrEnum):
    """Why the clocks of an AMD GPU or an Ascend NPU are held down."""

    HEAT = "heat"
    """It, its memory or its voltage regulators are too hot."""
    PROCHOT = "prochot"
    """The board signals that it is too hot, or that it lacks power (PROCHOT)."""
    POWER = "power"
    """It is at its limit of power, which is usual."""
    CURRENT = "current"
    """It is at a limit of current, which is usual."""
    UNKNOWN = "unknown"
    """Its tool tells no reason: it computes, and its clock is far below the rated one."""


class DeviceFigures(msgspec.Struct, frozen=True):
    """The figures of one device; None is what its source does not tell."""

    vendor: str
    """`nvidia`, `amd` or `ascend`."""
    index: int
    """Its place among the machine's devices, from 0, as placements count them."""
    id: str = ""
    model: str = ""
    minor: int | None = None
    """The number of its device file; None: as the index."""
    bus: str = ""
    """Its PCI address."""
    use: float | None = None
    """Percent of the time in which it computed."""
    memory_use: float | None = None
    """Percent of the time in which its memory was read or written."""
    encoder_use: float | None = None
    decoder_use: float | None = None
    memory_used: int | None = None
    """Bytes."""
    memory_total: int | None = None
    """Bytes."""
    temperature: float | None = None
    """Degrees Celsius."""
    memory_temperature: float | None = None
    power: float | None = None
    """Watts."""
    clock: float | None = None
    """MHz of the processor."""
    memory_clock: float | None = None
    energy: int | None = None
    """Millijoules since the driver was loaded."""
    pcie_replays: int | None = None
    ecc_corrected: int | None = None
    """Memory errors since the driver was loaded."""
    ecc_uncorrected: int | None = None
    xid: int | None = None
    """The last Xid error that was seen; 0: none since the reader began."""
    remapped_corrected: int | None = None
    remapped_uncorrected: int | None = None
    remap_failed: bool | None = None
    nvlink_kib: int | None = None
    """KiB over all NVLinks, both ways, since the driver was loaded."""
    state: int | None = None
    """The performance state: 0 is the fastest."""
    throttled: tuple[str, ...] = ()
    """Why its clocks are held down, in the words of `nvidia-smi -q -x`."""
    held_down: tuple[tuple[Held, float], ...] | None = None
    """By reason, the part of the time in which its clocks were held down, from 0 to 1; of AMD's GPUs and Ascend's NPUs."""
    processes: tuple[int, ...] | None = None
    """Pids that use it."""

    @property
    def number(self) -> int:
        """The number of its device file."""
        return self.index if self.minor is None else self.minor

    @property
    def memory_percent(self) -> float | None:
        """Used memory in percent of all."""
        if self.memory_used is None or not self.memory_total:
            return None
        return 100.0 * self.memory_used / self.memory_total


def word(text: object) -> str:
    """An id or a model of bounded length, without control characters."""
    return "".join(letter for letter in str(text).strip()[:MOST_WORD] if letter.isprintable())


def number(text: object) -> float | None:
    """The number with which a text such as `36 C` or `0x1f` begins; None for `N/A`, `[Not Supported]` and the like."""
    first = str(text).strip()[:MOST_WORD].partition(" ")[0].removesuffix("%")
    try:
        found = float(int(first, 16)) if first[:2].lower() == "0x" else float(first)
    except ValueError:
        return None
    return found if abs(found) < 1e18 else None  # nan and infinity fail, too


def whole(text: object) -> int | None:
    """The whole number with which a text begins."""
    found = number(text)
    return None if found is None else int(found)
