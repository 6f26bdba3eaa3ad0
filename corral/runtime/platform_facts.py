"""Read what a machine is like from /proc and /sys: processors, memory, NUMA, PCIe links, disks, throttling and versions.

Nothing is started and nothing is changed. A file that is not there leaves its fact out.
"""

from __future__ import annotations

import os
import re
import socket
from typing import Any

_MOST_BYTES = 1 << 20
_MOST = {"pci": 32, "disks": 16, "numa": 16, "governors": 8}
_WORDS = 100
_CLASSES = {"0x0108": "NVMe", "0x0302": "accelerator", "0x02": "network", "0x03": "display", "0x12": "accelerator"}
"""The classes of PCI devices that are told, by the beginning of their numbers; the first match counts."""
_DRIVERS = ("nvidia", "amdgpu", "habanalabs", "mlx5_core", "i915", "xe")
_VIRTUAL_DISKS = re.compile(r"(loop|ram|zram|dm-|md|sr|fd)\d")


def facts_of(folder: str, root: str = "/") -> dict[str, Any]:
    """The facts by name; `folder` is on the disk that the task works on, `root` is where /proc and /sys are."""
    machine = _Tree(root)
    found: dict[str, Any] = {
        "host": machine.line("proc/sys/kernel/hostname") or socket.gethostname(),
        "kernel": machine.line("proc/sys/kernel/osrelease"),
        "os": machine.field("etc/os-release", "PRETTY_NAME", "=").strip('"'),
        "clock": machine.line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "hugePages": _chosen(machine.line("sys/kernel/mm/transparent_hugepage/enabled")),
        "swappiness": machine.number("proc/sys/vm/swappiness"),
        "numaBalancing": machine.number("proc/sys/kernel/numa_balancing"),
        **_processors(machine),
        "memory": _memory(machine),
        "numa": _numa(machine),
        "pci": _pci(machine),
        "disks": _disks(machine),
        "drivers": _drivers(machine),
        "pressure": _pressure(machine),
        "workFolder": _work_folder(folder),
    }
    return {name: value for name, value in found.items() if value not in (None, "", [], {})}


def versions_of(root: str = "/") -> tuple[str, tuple[str, ...]]:
    """The version of the kernel, and the operating system with the drivers of devices that tell a version.

    In a container that sees the machine's processes, and may look there, the system is that of the machine's first
    one; in another container it is the image's.
    """
    machine = _Tree(root)
    places = ("proc/1/root/etc/os-release", "etc/os-release")
    system = next(filter(None, (machine.field(each, "PRETTY_NAME", "=").strip('"') for each in places)), "")
    drivers = [f"{name} {version}" for name, version in _drivers(machine).items()]
    return machine.line("proc/sys/kernel/osrelease"), tuple(filter(None, (system, *drivers)))


class _Tree:
    """Files below a root; what cannot be read is empty."""

    def __init__(self, root: str) -> None:
        self._root = root

    def text(self, path: str) -> str:
        try:
            with open(os.path.join(self._root, path), encoding="utf-8", errors="replace") as file:
                return file.read(_MOST_BYTES)
        except OSError:
            return ""

    def line(self, path: str) -> str:
        return self.text(path).strip().partition("\n")[0][:_WORDS]

    def number(self, path: str) -> int | None:
        return _number(self.line(path))

    def field(self, path: str, name: str, mark: str = ":") -> str:
        for line in self.text(path).splitlines():
            key, _, value = line.partition(mark)
            if key.strip() == name:
                return value.strip()[:_WORDS]
        return ""

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(os.path.join(self._root, path)))
        except OSError:
            return []

    def link(self, path: str) -> str:
        try:
            return os.path.basename(os.readlink(os.path.join(self._root, path)))[:_WORDS]
        except OSError:
            return ""


def _number(text: str) -> int | None:
    try:
        return int(text.split()[0], 0)
    except (ValueError, IndexError):
        return None


def _chosen(text: str) -> str:
    """The word in brackets of `always [madvise] never`."""
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else ""


def _processors(machine: _Tree) -> dict[str, Any]:
    listed = machine.text("proc/cpuinfo").splitlines()
    values = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in listed)]
    cores = [name for name in machine.names("sys/devices/system/cpu") if re.fullmatch(r"cpu\d+", name)]
    governors: dict[str, int] = {}
    throttled = 0
    for core in cores:
        here = f"sys/devices/system/cpu/{core}"
        if governor := machine.line(f"{here}/cpufreq/scaling_governor"):
            governors[governor] = governors.get(governor, 0) + 1
        throttled += machine.number(f"{here}/thermal_throttle/core_throttle_count") or 0
    return {
        "processor": next((value for name, value in values if name in ("model name", "Model")), "")[:_WORDS],
        "processors": sum(name == "processor" for name, _ in values),
        "sockets": len({value for name, value in values if name == "physical id"}) or None,
        "governors": dict(sorted(governors.items())[: _MOST["governors"]]),
        "throttled": throttled if cores else None,
    }


def _memory(machine: _Tree) -> dict[str, int]:
    known = {
        "total": "MemTotal", "available": "MemAvailable", "pageCache": "Cached", "dirty": "Dirty",
        "swapTotal": "SwapTotal", "swapFree": "SwapFree", "hugePagesReserved": "Hugetlb",
    }  # fmt: skip
    read = {name: _number(machine.field("proc/meminfo", field)) for name, field in known.items()}
    return {name: value * 1024 for name, value in read.items() if value is not None}


def _numa(machine: _Tree) -> list[dict[str, Any]]:
    found = []
    numbers = [int(name[4:]) for name in machine.names("sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    for number in sorted(numbers)[: _MOST["numa"]]:
        here = f"sys/devices/system/node/node{number}"
        total = re.search(r"MemTotal:\s+(\d+) kB", machine.text(f"{here}/meminfo"))
        memory = int(total[1]) * 1024 if total else 0
        found.append({"node": number, "processors": machine.line(f"{here}/cpulist"), "memory": memory})
    return found


def _pci(machine: _Tree) -> list[dict[str, Any]]:
    found = []
    for address in machine.names("sys/bus/pci/devices"):
        here = f"sys/bus/pci/devices/{address}"
        number = machine.line(f"{here}/class")
        kind = next((kind for start, kind in _CLASSES.items() if number.startswith(start)), "")
        width, most = machine.number(f"{here}/current_link_width"), machine.number(f"{here}/max_link_width")
        if not kind or not width or not most:
            continue  # a device that is a part of the processor, or of a virtual machine, has no link
        found.append(
            {
                "address": address[:_WORDS],
                "kind": kind,
                "driver": machine.link(f"{here}/driver"),
                "speed": machine.line(f"{here}/current_link_speed"),
                "mostSpeed": machine.line(f"{here}/max_link_speed"),
                "width": width,
                "mostWidth": most,
                "numaNode": machine.number(f"{here}/numa_node"),
            }
        )
    return found[: _MOST["pci"]]


def _disks(machine: _Tree) -> list[dict[str, Any]]:
    found = []
    for name in machine.names("sys/block"):
        blocks = machine.number(f"sys/block/{name}/size")
        if _VIRTUAL_DISKS.match(name) or not blocks:
            continue
        found.append(
            {
                "name": name[:_WORDS],
                "bytes": blocks * 512,
                "rotational": machine.number(f"sys/block/{name}/queue/rotational") == 1,
                "scheduler": _chosen(machine.line(f"sys/block/{name}/queue/scheduler")),
            }
        )
    return found[: _MOST["disks"]]


def _drivers(machine: _Tree) -> dict[str, str]:
    found = {name: machine.line(f"sys/module/{name}/version") for name in _DRIVERS}
    return {name: version for name, version in found.items() if version}


def _pressure(machine: _Tree) -> dict[str, float]:
    """By resource, the part of the last minute in which some task waited for it."""
    found = {}
    for name in ("cpu", "memory", "io"):
        match = re.search(r"some avg10=\S+ avg60=([\d.]+)", machine.text(f"proc/pressure/{name}"))
        if match:
            found[name] = float(match[1]) / 100
    return found


def _work_folder(folder: str) -> dict[str, int]:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return {}
    return {"bytes": disk.f_blocks * disk.f_frsize, "free": disk.f_bavail * disk.f_frsize}
