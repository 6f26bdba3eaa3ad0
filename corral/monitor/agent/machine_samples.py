"""Make samples of the machine's own figures."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from typing import Final

from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Value
from corral.monitor.agent.bounded_files import read_text
from corral.monitor.agent.machine_files import (
    cpu_seconds,
    disk_bytes,
    disk_errors,
    file_systems,
    interface_bytes,
    link_downs,
    memory_bytes,
    rdma_ports,
    throttled_seconds,
)
from corral.monitor.agent.server_file_systems import ServerFileSystems

_MEMORY: Final = {
    "MemTotal": NodeMetric.MEMORY_TOTAL,
    "MemFree": NodeMetric.MEMORY_FREE,
    "MemAvailable": NodeMetric.MEMORY_AVAILABLE,
    "Buffers": NodeMetric.MEMORY_BUFFERS,
    "Cached": NodeMetric.MEMORY_CACHED,
}
_UNSYNCHRONISED: Final = 5
"""TIME_ERROR of adjtimex(2): no time source keeps the clock."""
_NANOSECONDS: Final = 0x2000
"""STA_NANO of adjtimex(2): the offset is in nanoseconds, else in microseconds."""


class MachineReader:
    """Reads the machine from the kernel's files, and asks for the file systems of servers beside them."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc, self._servers = proc, ServerFileSystems()

    def read(self) -> list[Value]:
        """Return the series of now. No server is waited for."""
        servers = self._servers.values(read_text(f"{self._proc}/mounts"))
        return [*machine_values(self._proc), *servers]

    def close(self) -> None:
        """End questions that are open."""
        self._servers.close()


def machine_values(
    proc: str = "/proc", infiniband: str = "/sys/class/infiniband", net: str = "/sys/class/net"
) -> list[Value]:
    """Return the series of processors, memory, disks, file systems, networks, RDMA ports and the clock."""
    memory = memory_bytes(read_text(f"{proc}/meminfo"))
    values = [Value(name, (), float(memory[key])) for key, name in _MEMORY.items() if key in memory]
    ticks = os.sysconf("SC_CLK_TCK")
    values += (
        Value(NodeMetric.CPU, (cpu, mode), seconds)
        for cpu, mode, seconds in cpu_seconds(read_text(f"{proc}/stat"), ticks)
    )
    for disk, (read, written) in disk_bytes(read_text(f"{proc}/diskstats")).items():
        values += (Value(NodeMetric.DISK_READ, (disk,), read), Value(NodeMetric.DISK_WRITTEN, (disk,), written))
    for name, (received, sent) in interface_bytes(read_text(f"{proc}/net/dev")).items():
        values += (Value(NodeMetric.NETWORK_IN, (name,), received), Value(NodeMetric.NETWORK_OUT, (name,), sent))
    values += (Value(NodeMetric.LINK_DOWN, (name,), float(count)) for name, count in link_downs(net).items())
    machine = os.uname()
    values.append(Value(NodeMetric.UNAME, (machine.nodename, machine.release, machine.machine), 1.0))
    return [*values, *_spaces(proc), *_ports(infiniband), *clock_values(), *fault_values()]


def fault_values(
    cpus: str = "/sys/devices/system/cpu", block: str = "/sys/block", ext4: str = "/sys/fs/ext4"
) -> list[Value]:
    """Return what the kernel counts of hot processors and of disks with errors, which node exporter does not tell."""
    throttled = throttled_seconds(cpus).items()
    return [
        *(Value(NodeMetric.THROTTLED, (package,), seconds) for package, seconds in throttled),
        *(Value(NodeMetric.DISK_ERRORS, key, float(count)) for key, count in disk_errors(block, ext4).items()),
    ]


def _spaces(proc: str) -> Iterator[Value]:
    for each in file_systems(read_text(f"{proc}/mounts")):
        try:
            found = os.statvfs(each.mount)
        except OSError:
            yield Value(NodeMetric.FILE_SYSTEM_ERROR, tuple(each), 1.0)
            continue
        yield Value(NodeMetric.FILE_SYSTEM_ERROR, tuple(each), 0.0)
        yield Value(NodeMetric.FILE_SYSTEM, tuple(each), float(found.f_blocks * found.f_frsize))
        yield Value(NodeMetric.FILE_SYSTEM_READ_ONLY, tuple(each), float(bool(found.f_flag & os.ST_RDONLY)))
        yield Value(NodeMetric.FILE_SYSTEM_AVAILABLE, tuple(each), float(found.f_bavail * found.f_frsize))


def _ports(infiniband: str) -> Iterator[Value]:
    for port in rdma_ports(infiniband):
        figures = (
            (NodeMetric.PORT_STATE, port.state),
            (NodeMetric.PORT_IN, port.received),
            (NodeMetric.PORT_OUT, port.sent),
            (NodeMetric.PORT_DOWNED, port.downed),
            (NodeMetric.PORT_ERRORS, port.errors),
        )
        for name, value in figures:
            if value is not None:
                yield Value(name, (port.device, port.port), float(value))


class _Timex(ctypes.Structure):
    """The first fields of `struct timex` (adjtimex(2)), and room for the others."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def clock_values() -> list[Value]:
    """Return what the kernel knows of its clock's offset; nothing where it does not say."""
    told = _Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(told))
    except (AttributeError, OSError):
        return []
    if state < 0:
        return []
    seconds = told.offset / (1e9 if told.status & _NANOSECONDS else 1e6)
    return [Value(NodeMetric.CLOCK, (), seconds), Value(NodeMetric.CLOCK_IN_STEP, (), float(state != _UNSYNCHRONISED))]
