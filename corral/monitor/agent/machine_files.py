"""Read the machine's own figures from `/proc` and `/sys`, as Prometheus' node exporter counts them.

Sources: proc(5); Linux, Documentation/admin-guide/iostats.rst and Documentation/ABI/stable/sysfs-class-infiniband.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from corral.monitor.agent.bounded_files import numbers, read_number, read_text, whole

MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SECTOR: Final = 512
"""Bytes of a sector in `/proc/diskstats`, whatever the disk's own."""
_PARTS: Final = re.compile(r"(ram|loop|fd|(h|s|v|xv)d[a-z]+|nvme\d+n\d+p)\d+")
"""Devices that node exporter leaves out: partitions, and what is no disk."""
DISK_SYSTEMS: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"})
"""Those of a file server are left out: one that does not answer would hold the collector for ever."""
MOST_LINES: Final = 512
"""Interfaces, disks, file systems or ports that are told."""
MOST_CPUS: Final = 1024
_LANE_BYTES: Final = 4
"""Bytes of a unit of `port_rcv_data` and `port_xmit_data`."""


class FileSystem(NamedTuple):
    """One mounted file system."""

    device: str
    kind: str
    mount: str


class Port(NamedTuple):
    """One RDMA port, with its counters; None is what its driver does not count."""

    device: str
    port: str
    state: int | None
    received: int | None
    """Bytes."""
    sent: int | None
    downed: int | None
    errors: int | None


def memory_bytes(text: str) -> dict[str, int]:
    """Return the bytes of each line of `/proc/meminfo`."""
    return {name: 1024 * value for name, value in numbers(text.splitlines()[:200]).items()}


def cpu_seconds(text: str, ticks: int) -> Iterator[tuple[str, str, float]]:
    """Yield processor number, mode and seconds from `/proc/stat`; `ticks` are those of a second."""
    for line in text.splitlines()[: MOST_CPUS + 1]:
        name, *counts = line.split()[:9] or [""]
        if name.startswith("cpu") and name != "cpu":
            for mode, count in zip(MODES, counts, strict=False):
                if (found := whole(count)) is not None:
                    yield name[3:], mode, found / ticks


def disk_bytes(text: str) -> dict[str, tuple[int, int]]:
    """Return the bytes read and written of each whole disk from `/proc/diskstats`."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 10 or not is_whole_disk(words[2]) or len(found) >= MOST_LINES:
            continue
        read, written = whole(words[5]), whole(words[9])
        if read is not None and written is not None:
            found[words[2]] = read * _SECTOR, written * _SECTOR
    return found


def is_whole_disk(device: str) -> bool:
    """Whether a device is a disk, and no partition, loop device or memory."""
    return _PARTS.fullmatch(device) is None


def interface_bytes(text: str) -> dict[str, tuple[int, int]]:
    """Return the bytes received and sent of each interface but loopback from `/proc/net/dev`."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines()[2 : MOST_LINES + 2]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) >= 9 and name.strip() != "lo":
            received, sent = whole(words[0]), whole(words[8])
            if received is not None and sent is not None:
                found[name.strip()] = received, sent
    return found


def link_downs(sysfs: str = "/sys/class/net") -> dict[str, int]:
    """Return how often the link of each network interface with hardware went down."""
    counts = {name: read_number(f"{sysfs}/{name}/carrier_down_count") for name in _names(sysfs)}
    return {
        name: count for name, count in counts.items() if count is not None and os.path.exists(f"{sysfs}/{name}/device")
    }


def file_systems(text: str) -> list[FileSystem]:
    """Return the file systems on disks from `/proc/mounts`, each once."""
    found: dict[str, FileSystem] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[2] in DISK_SYSTEMS and len(found) < MOST_LINES:
            mount = words[1].replace("\\040", " ")
            found.setdefault(words[0], FileSystem(words[0], words[2], mount))
    return list(found.values())


def rdma_ports(sysfs: str = "/sys/class/infiniband") -> list[Port]:
    """Return all RDMA ports of the machine with their counters."""
    found: list[Port] = []
    for device in _names(sysfs):
        for port in _names(f"{sysfs}/{device}/ports"):
            folder = f"{sysfs}/{device}/ports/{port}"
            state, _, _ = read_text(f"{folder}/state", 64).partition(":")
            received = read_number(f"{folder}/counters/port_rcv_data")
            sent = read_number(f"{folder}/counters/port_xmit_data")
            found.append(
                Port(
                    device,
                    port,
                    whole(state),
                    None if received is None else received * _LANE_BYTES,
                    None if sent is None else sent * _LANE_BYTES,
                    read_number(f"{folder}/counters/link_downed"),
                    read_number(f"{folder}/counters/port_rcv_errors"),
                )
            )
    return found[:MOST_LINES]


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:MOST_LINES]
    except OSError:
        return []
