"""Read the machine's own figures from `/proc` and `/sys`, as Prometheus' node exporter counts them.

Sources: proc(5); Linux, Documentation/admin-guide/iostats.rst and Documentation/ABI/stable/sysfs-class-infiniband.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from corral.monitor.agent.bounded_files import numbers, read_number, read_text, whole

MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SECTOR: Final = 512
"""Bytes of a sector in `/proc/diskstats`, whatever the disk's own."""
_PARTS: Final = re.compile(r"(ram|loop|fd|(h|s|v|xv)d[a-z]+|nvme\d+n\d+p)\d+")
"""Devices that node exporter leaves out: partitions, and what is no disk."""
DISK_SYSTEMS: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"})
"""File systems on the machine's own disks."""
SERVER_SYSTEMS: Final = frozenset(
    {
        "nfs", "nfs4", "lustre", "cifs", "smb3", "ceph", "beegfs", "gpfs", "wekafs", "pvfs2", "afs",
        "fuse.glusterfs", "fuse.juicefs", "fuse.ceph-fuse",
    }
)  # fmt: skip
"""File systems of servers: one that does not answer holds whoever asks it, so they are asked elsewhere."""
_SHARED_NAMES: Final = frozenset({"ceph-fuse", "beegfs_nodev", "AFS"})
"""Names of devices that all file systems of their kind have."""
MOST_SERVERS: Final = 32
"""File systems of servers that are told."""
MOST_LINES: Final = 512
"""Interfaces, disks, file systems or ports that are told."""
MOST_CPUS: Final = 1024
COMMANDS: Final = "commands"
FILE_SYSTEM: Final = "file-system"
"""The kinds of errors of a disk that are counted."""
_CPU: Final = re.compile(r"cpu([0-9]{1,5})")
_OCTAL: Final = re.compile(r"\\(0[0-7]{2}|1[0-7]{2})")
"""How the kernel writes spaces, tabs, line feeds and backslashes of names."""
_NEVER_ENDS: Final = "timeout=0"
"""The option of an automounter that never ends a mount, as systemd's without an idle timeout."""
_HEX: Final = re.compile(r"0x[0-9a-fA-F]{1,16}")
_LANE_BYTES: Final = 4
"""Bytes of a unit of `port_rcv_data` and `port_xmit_data`."""


class FileSystem(NamedTuple):
    """One mounted file system."""

    device: str
    kind: str
    mount: str

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells it from others, on all machines alike."""
        return (*self[:2], self.mount) if self.device in _SHARED_NAMES else self[:2]


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
    return [each for each, _ in _once(_mounts(text, DISK_SYSTEMS), MOST_LINES)]


def server_file_systems(text: str) -> dict[FileSystem, bool]:
    """Return the file systems of servers from `/proc/mounts`, each once, and whether it is mounted read-only.

    Left out are those that users mounted by FUSE, as root may not look at them, and those that an automounter ends when
    they are not used: a question is a use, and would keep them.
    """
    ending = {each.mount for each, options in _mounts(text, {"autofs"}) if _NEVER_ENDS not in options}
    asked = (
        (each, options)
        for each, options in _mounts(text, SERVER_SYSTEMS)
        if not _is_of_user(each, options) and ending.isdisjoint(_at_and_above(each.mount))
    )
    return {each: "ro" in options for each, options in _once(asked, MOST_SERVERS)}


def _mounts(text: str, kinds: Collection[str]) -> Iterator[tuple[FileSystem, list[str]]]:
    """The mounts of these kinds with their options. Fields end at spaces alone: a user's name may have other blanks."""
    for line in text.split("\n"):
        words = line.split(" ")
        if len(words) >= 4 and words[2] in kinds:
            device, mount = (_OCTAL.sub(lambda code: chr(int(code[1], 8)), word) for word in words[:2])
            if device.isprintable() and mount.isprintable():
                yield FileSystem(device, words[2], mount), words[3].split(",")


def _once(mounts: Iterable[tuple[FileSystem, list[str]]], most: int) -> Collection[tuple[FileSystem, list[str]]]:
    """Of a file system that is mounted several times the first mount."""
    found: dict[tuple[str, ...], tuple[FileSystem, list[str]]] = {}
    for each, options in mounts:
        if len(found) < most:
            found.setdefault(each.identity, (each, options))
    return found.values()


def _is_of_user(each: FileSystem, options: Iterable[str]) -> bool:
    """Whether a user other than root mounted it by FUSE, with names of his choice."""
    return each.kind.startswith("fuse.") and any(
        option.startswith("user_id=") and option != "user_id=0" for option in options
    )


def _at_and_above(mount: str) -> Iterator[str]:
    while mount:
        yield mount
        mount, _, _ = mount.rpartition("/")


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


def throttled_seconds(cpus: str = "/sys/devices/system/cpu") -> dict[str, float]:
    """Return for how many seconds heat held the clocks of each processor package down; nothing where that is not counted.

    Intel's processors count it since Linux 5.11. One processor of each package is asked.
    """
    found: dict[str, float] = {}
    numbered = sorted(int(match[1]) for name in _names(cpus) if (match := _CPU.fullmatch(name)))
    for number in numbered:
        folder = f"{cpus}/cpu{number}"
        package = read_number(f"{folder}/topology/physical_package_id")
        if package is None or str(package) in found:
            continue
        milliseconds = read_number(f"{folder}/thermal_throttle/package_throttle_total_time_ms")
        if milliseconds is None:
            return found
        found[str(package)] = milliseconds / 1000
    return found


def disk_errors(block: str = "/sys/block", ext4: str = "/sys/fs/ext4") -> dict[tuple[str, str], int]:
    """Return the errors that the kernel has counted, by device and kind.

    Of fixed disks of the SCSI layer, SATA's among them, commands that ended with an error: of healthy ones too, as
    `smartctl` sends some that end so on purpose. Of ext4 the errors that it has in its superblock.
    """
    found: dict[tuple[str, str], int] = {}
    for disk in _names(block):
        count = read_text(f"{block}/{disk}/device/ioerr_cnt", 64).strip()
        if _HEX.fullmatch(count) and not read_number(f"{block}/{disk}/removable"):  # readers are asked for a medium
            found[disk, COMMANDS] = int(count, 16)
    for device in _names(ext4):
        errors = read_number(f"{ext4}/{device}/errors_count")
        if errors is not None:
            found[device, FILE_SYSTEM] = errors
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:MOST_LINES]
    except OSError:
        return []
