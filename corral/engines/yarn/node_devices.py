"""The devices of a node as the probe on it tells them: names, memory, faults, and the links between them.

Sources: `nvidia-smi` of NVIDIA's, the kernel's topology and `ras` counters of AMD's, the device files of Ascend's.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from corral.devices import amd
from corral.engines.yarn.slot_messages import ProbeReport
from corral.kernel.errors import InvalidInput
from corral.spec.errors import SpecError
from corral.spec.link_quality import NVLINK
from corral.spec.link_table import read_table

_UUID: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_MOST: Final = 1024
"""Devices of one node."""
_MIB: Final = 2**20
_MOST_MIB: Final = 2**30
_MOST_NODES: Final = 256
"""Processors and GPUs of one node in AMD's topology."""
_BEST_LINK: Final = NVLINK + 32
_UNCORRECTED: Final = re.compile(r"^ue: ([0-9]{1,9})$", re.MULTILINE)


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
    if report.vendor == "amd":
        return _amd_node(report, at)
    if report.vendor == "ascend":
        return ProbedNode(at, _ascend_devices(report.devices))
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
        fault = _fault(count)
        found.append(ProbedDevice(uuid, model[:128], int(memory) * _MIB, (), fault))
    return found


def _fault(errors: int) -> str:
    return f"{errors} uncorrectable memory errors since the driver was loaded" if errors else ""


def _amd_node(report: ProbeReport, at: float) -> ProbedNode:
    """The AMD GPUs of a node, in the kernel's order."""
    try:
        if len({path.partition("/")[0] for path in report.files}) > _MOST_NODES:
            raise ValueError
        found, numbers = amd.described(report.files), amd.gpu_nodes(report.files)
    except (ValueError, KeyError):
        raise InvalidInput("bad-probe", "The topology of AMD's driver cannot be read.") from None
    devices = []
    for number, each in zip(numbers, found.devices, strict=True):
        good = _UUID.fullmatch(each.id) and each.model.isprintable() and 0 <= each.memory_bytes <= _MOST_MIB * _MIB
        if not good or any(quality > _BEST_LINK for quality in found.links[each.index]):
            raise InvalidInput("bad-probe", f"AMD's driver tells a GPU {number} that none can be.")
        errors = _UNCORRECTED.search(report.files.get(f"{number}/umc_err_count", ""))
        fault = _fault(int(errors[1]) if errors else 0)
        devices.append(ProbedDevice(each.id, each.model[:128], each.memory_bytes, each.cells, fault))
    return ProbedNode(at, tuple(devices), found.links)


def _ascend_devices(text: str) -> tuple[ProbedDevice, ...]:
    """The NPUs of the lines `davinciN`. YARN counts them from 0, so their numbers may have no gap."""
    names = text.split()
    if len(names) > _MOST or names != [f"davinci{number}" for number in range(len(names))]:
        raise InvalidInput("bad-probe", "The numbers of the Ascend NPUs do not go from 0 on without a gap.")
    return tuple(ProbedDevice(name, "Ascend", 0) for name in names)
