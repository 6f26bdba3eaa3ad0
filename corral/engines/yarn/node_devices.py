"""The devices of a node as the probe on it tells them: names, memory, faults, and the links between them."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from corral.engines.yarn.slot_messages import ProbeReport
from corral.kernel.errors import InvalidInput
from corral.spec.errors import SpecError
from corral.spec.link_table import read_table

_UUID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_MOST: Final = 1024
"""Devices of one node."""
_MIB: Final = 2**20
_MOST_MIB: Final = 2**30


class ProbedDevice(msgspec.Struct, frozen=True):
    """One device, at its index."""

    id: str
    model: str
    memory_bytes: int
    cells: tuple[tuple[str, str], ...] = ()
    """The cells between node and device, outermost first."""
    fault: str = ""
    """Why no task should get it; "" for a good one."""


class ProbedNode(msgspec.Struct, frozen=True):
    """All devices of one node."""

    at: float
    """Seconds since 1970 of the report."""
    devices: tuple[ProbedDevice, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    """Link quality per pair; () where the tool printed no matrix."""


def probed_node(report: ProbeReport, at: float) -> ProbedNode:
    """The devices of a probe's report.

    Raises InvalidInput that names the line of a text that cannot be read.
    """
    devices = _devices(report.devices)
    if not devices or not report.topology:
        return ProbedNode(at, tuple(devices))
    try:
        wiring = read_table(report.topology, "nvidia-smi topo -m")
    except SpecError as error:
        raise InvalidInput("bad-probe", f"The link matrix cannot be read: {error.message}") from None
    if len(wiring.names) != len(devices):
        message = f"The link matrix has {len(wiring.names)} devices, and the list of devices {len(devices)}."
        raise InvalidInput("bad-probe", message)
    cells = wiring.cells()
    placed = (msgspec.structs.replace(each, cells=cells[index]) for index, each in enumerate(devices))
    return ProbedNode(at, tuple(placed), wiring.links)


def _devices(text: str) -> list[ProbedDevice]:
    """The devices of the lines `INDEX, UUID, MODEL, MIB, ERRORS`, in their order."""
    found: list[ProbedDevice] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        words = [word.strip() for word in line.split(",")]
        index, uuid, model, memory, errors = words if len(words) == 5 else ("", "", "", "", "")
        good = index == str(len(found)) and _UUID.fullmatch(uuid) and model.isprintable() and memory.isascii()
        if not good or not memory.isdigit() or int(memory[:12]) > _MOST_MIB or len(found) >= _MOST:
            message = f'Line {number} of nvidia-smi is "{line[:80]}", and not the device {len(found)} with five fields.'
            raise InvalidInput("bad-probe", message)
        count = int(errors[:9]) if errors.isascii() and errors.isdigit() else 0
        fault = f"{count} uncorrectable memory errors since the driver was loaded" if count else ""
        found.append(ProbedDevice(uuid, model[:128], int(memory) * _MIB, (), fault))
    return found
