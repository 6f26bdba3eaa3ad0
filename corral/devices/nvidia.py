"""Discover NVIDIA GPUs through NVML: ids, memory, health and links.

NVML needs no CUDA context and no parsing of text.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corral.devices.discovery_result import DiscoveryResult
from corral.model.inventory import Device
from corral.spec.device_topology import Wiring
from corral.spec.link_quality import NVLINK, QUALITY, SAME_BOARD, symmetric

SYSFS = Path("/sys/bus/pci/devices")
_COMMON_ANCESTOR = {0: SAME_BOARD} | dict(zip((10, 20, 30, 40, 50), QUALITY.values(), strict=True))
"""Link quality by NVML topology level: internal, single, multiple, host bridge, node, system."""
_SWITCH = 2
"""NVML_NVLINK_DEVICE_TYPE_SWITCH: all GPUs on the switch reach each other at full speed."""
_LOST = "the device does not answer"


def discover(library: Any = None, sysfs: Path = SYSFS) -> DiscoveryResult:
    """Return the GPUs of this machine in PCI order, each MIG instance as its own device; none without a driver."""
    if library is None:
        if not has_driver():
            return DiscoveryResult(note="NVML: NVML Shared Library Not Found")
        library = importlib.import_module("pynvml")
    try:
        library.nvmlInit()
    except library.NVMLError as error:
        return DiscoveryResult(note=f"NVML: {error}")
    try:
        found = handles(library)
        return _devices(library, found, _wiring(library, found, sysfs))
    finally:
        library.nvmlShutdown()


def handles(library: Any) -> list[Any]:
    """Return the handles of the boards that an open NVML shows, in PCI order; None for one that is lost.

    A board that the process has no permission for, such as one of another container, is none of this machine: CUDA does
    not count it either.
    """
    found: list[Any] = []
    for index in range(library.nvmlDeviceGetCount()):
        try:
            found.append(library.nvmlDeviceGetHandleByIndex(index))
        except library.NVMLError as error:
            if getattr(error, "value", 0) != library.NVML_ERROR_NO_PERMISSION:
                found.append(None)
    return found


def has_driver() -> bool:
    """Return whether the driver's library loads. Checked first because importing pynvml costs 3 MB."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def _devices(library: Any, handles: list[Any], boards: Wiring) -> DiscoveryResult:
    cells = boards.cells()
    devices: list[Device] = []
    owners: list[int] = []
    for board, handle in enumerate(handles):
        reason = _fault(library, handle)
        for part in _slices(library, handle) or [handle]:
            devices.append(
                Device(
                    index=len(devices),
                    id=_ask(library, library.nvmlDeviceGetUUID, part, default=f"GPU-unknown-{board}"),
                    kind="gpu",
                    model=_ask(library, library.nvmlDeviceGetName, part, default="NVIDIA"),
                    cells=cells[board],
                    memory_bytes=_memory(library, part),
                    healthy=not reason,
                    health_reason=reason,
                )
            )
            owners.append(board)
    links = [[SAME_BOARD if a == b else boards.links[a][b] for b in owners] for a in owners]
    return DiscoveryResult(tuple(devices), symmetric(links))


def _wiring(library: Any, handles: list[Any], sysfs: Path) -> Wiring:
    """Return the links between all boards: PCIe by common ancestor, and NVLink where present."""
    places = {_bus(library, handle): index for index, handle in enumerate(handles)}
    pcie = [[0] * len(handles) for _ in handles]
    rows = [[0] * len(handles) for _ in handles]
    switched = [0] * len(handles)
    for a, first in enumerate(handles):
        for b, second in enumerate(handles):
            if a != b:
                level = _ask(library, library.nvmlDeviceGetTopologyCommonAncestor, first, second, default=50)
                pcie[a][b] = rows[a][b] = _COMMON_ANCESTOR.get(int(level), QUALITY["SYS"])
        direct, switched[a] = _nvlinks(library, first, places)
        for b, number in direct.items():
            rows[a][b] = NVLINK + number
    for a in range(len(handles)):
        for b in range(len(handles)):
            if a != b and switched[a] and switched[b]:
                rows[a][b] = max(rows[a][b], NVLINK + min(switched[a], switched[b]))
    return Wiring(
        names=tuple(f"GPU{index}" for index in range(len(handles))),
        links=symmetric(rows),
        pcie=symmetric(pcie),
        numa=tuple(_numa(library, handle, sysfs) for handle in handles),
    )


def _nvlinks(library: Any, handle: Any, places: dict[str, int]) -> tuple[dict[int, int], int]:
    """Return the active NVLinks per peer GPU, and the number of links to a switch."""
    direct: dict[int, int] = {}
    switched = 0
    for link in range(library.NVML_NVLINK_MAX_LINKS):
        if not _ask(library, library.nvmlDeviceGetNvLinkState, handle, link, default=0):
            continue
        if _ask(library, library.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link, default=-1) == _SWITCH:
            switched += 1
            continue
        remote = _ask(library, library.nvmlDeviceGetNvLinkRemotePciInfo, handle, link, default=None)
        other = places.get(_text(remote.busId).lower()) if remote is not None else None
        if other is not None:
            direct[other] = direct.get(other, 0) + 1
    return direct, switched


def _slices(library: Any, handle: Any) -> list[Any]:
    """Return the MIG devices of a board, [] when MIG is off."""
    mode = _ask(library, library.nvmlDeviceGetMigMode, handle, default=(0, 0))
    if not mode[0]:
        return []
    found = []
    for index in range(_ask(library, library.nvmlDeviceGetMaxMigDeviceCount, handle, default=0)):
        part = _ask(library, library.nvmlDeviceGetMigDeviceHandleByIndex, handle, index, default=None)
        if part is not None:
            found.append(part)
    return found


def _fault(library: Any, handle: Any) -> str:
    """Return why a board must not be used, "" if it is healthy."""
    if handle is None:
        return _LOST
    try:
        library.nvmlDeviceGetUUID(handle)
    except library.NVMLError:
        return _LOST
    errors = _ask(
        library,
        library.nvmlDeviceGetTotalEccErrors,
        handle,
        library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        library.NVML_VOLATILE_ECC,
        default=0,
    )
    if errors:
        return f"{errors} uncorrectable memory errors since the driver was loaded"
    rows = _ask(library, library.nvmlDeviceGetRemappedRows, handle, default=(0, 0, 0, 0))
    return "a memory row could not be remapped" if rows[3] else ""


def _memory(library: Any, handle: Any) -> int:
    memory = _ask(library, library.nvmlDeviceGetMemoryInfo, handle, default=None)
    return int(memory.total) if memory is not None else 0


def _numa(library: Any, handle: Any, sysfs: Path) -> int:
    """Return the NUMA node of a board, 0 if unknown. The kernel reports -1 on a machine with one node."""
    bus = _bus(library, handle)
    # NVML writes the PCI domain with eight digits, the kernel with four.
    for name in (bus, bus[4:]):
        try:
            return max(0, int((sysfs / name / "numa_node").read_text()))
        except (OSError, ValueError):
            continue
    return 0


def _bus(library: Any, handle: Any) -> str:
    info = _ask(library, library.nvmlDeviceGetPciInfo, handle, default=None)
    return _text(info.busId).lower() if info is not None else ""


def _ask(library: Any, call: Callable[..., Any], *arguments: Any, default: Any) -> Any:
    """Return the answer, or `default` if this board is lost, or it or the driver does not support the call."""
    if None in arguments:
        return default
    try:
        answer = call(*arguments)
    except library.NVMLError:
        return default
    return _text(answer) if isinstance(answer, bytes) else answer


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
