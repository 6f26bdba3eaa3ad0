"""What a process of the server uses and whether it is well, as metrics."""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from pathlib import Path
from typing import Final

from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples, Value
from corral.model.metrics.service_families import ServiceMetric

_SHORTEST: Final = 1.0
"""Seconds over which processor use is taken at least."""
_NAMESPACE: Final = "corral"
_MOST: Final = 4096
"""Bytes of a file of the kernel that are read."""
_GROUP_LIMIT: Final = "/sys/fs/cgroup/memory.max"
"""The limit of a container, which sees its own control group there."""


class ProcessFigures:
    """The figures of this process, under a name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._at = time.monotonic()
        self._seconds = _seconds()
        self._percent: float | None = None
        """Processor use between the last two readings."""

    def samples(self) -> Samples:
        """Processor time, memory and block I/O up to now; what the system does not tell is missing."""
        name, seconds = (self._name,), _seconds()
        self._measure(seconds)
        memory, limit = _resident(), _limit()
        found = (
            (Metric.PROCESS_CPU, seconds),
            (Metric.PROCESS_MEMORY, memory),
            (ServiceMetric.CPU, self._percent),
            (ServiceMetric.MEMORY, memory),
            (ServiceMetric.MEMORY_LIMIT, limit),
            (ServiceMetric.MEMORY_PERCENT, None if memory is None or not limit else 100 * memory / limit),
            *_block_bytes(),
        )
        return Samples(tuple(Value(family, name, float(value)) for family, value in found if value is not None))

    def _measure(self, seconds: float) -> None:
        now = time.monotonic()
        if now - self._at >= _SHORTEST:
            self._percent = 100 * (seconds - self._seconds) / (now - self._at)
            self._at, self._seconds = now, seconds


def part_of_server(name: str, *, ready: bool, phase: str = "running") -> Value:
    """The watchdog's gauge of a part of the server that is on this machine."""
    told = "true" if ready else "false"
    return Value(ServiceMetric.SERVICES, (name, name, _NAMESPACE, phase, told, told, "true", _host()), 1.0)


@cache
def _host() -> str:
    return socket.gethostname()


def _seconds() -> float:
    """Processor time of this process and of its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _resident() -> int | None:
    try:
        return int(_text("/proc/self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def _limit() -> int | None:
    """Bytes of memory that the process can have."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None
    try:
        return min(machine, int(_text(_GROUP_LIMIT)))
    except (OSError, ValueError):  # no such file, or "max"
        return machine


def _block_bytes() -> list[tuple[ServiceMetric, int | None]]:
    try:
        lines = _text("/proc/self/io").splitlines()
        told = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    except (OSError, ValueError):
        told = {}
    return [(ServiceMetric.BLOCK_IN, told.get("read_bytes")), (ServiceMetric.BLOCK_OUT, told.get("write_bytes"))]


def _text(path: str) -> str:
    with Path(path).open(encoding="ascii") as file:
        return file.read(_MOST)
