"""Find signs of trouble in what agents measure: throttled devices, PCIe errors, link flaps, clocks, disks.

A value without I/O: it is given the figures of each node at each look, and compares them with those of before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from statistics import median_low
from typing import Final, NamedTuple

from corral.model.health.signs import NODE, Sign, SignKind
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value

THROTTLED_SECONDS: Final = 600.0
"""Seconds for which the hardware must hold a device's clocks down in each look."""
REPLAYS: Final = 80
"""Repeated PCIe transfers within ten minutes: DCGM's health check warns of more than 8 a minute."""
REPLAY_SECONDS: Final = 600.0
FLAPS: Final = 3
FLAP_SECONDS: Final = 3600.0
CLOCK_SECONDS: Final = 1.0
"""Seconds by which a clock must surely differ from the server's."""
LEFT_PART: Final = 0.05
LEFT_BYTES: Final = 20 * 2**30
"""A file system is nearly full with less than both left: a twentieth of a large one is much."""
_COUNT_SECONDS: Final = 60.0
"""Seconds between two values of a counter that are remembered."""
_GAP_SECONDS: Final = 300.0
"""Seconds without figures after which what was seen before says nothing."""
_HARDWARE: Final = ("hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
"""Reasons that lie with cooling or power; a power cap and an idle device are usual."""
_READ: Final = frozenset(
    {
        DeviceMetric.NVIDIA_STATE, DeviceMetric.PCIE_REPLAY, NodeMetric.PORT_DOWNED, NodeMetric.LINK_DOWN,
        NodeMetric.FILE_SYSTEM_READ_ONLY,
    }
)  # fmt: skip
_MOST_WATCHED: Final = 100_000
"""Series that are remembered."""

Key = tuple[str, str, tuple[str, ...]]
"""A node, a family and labels."""


class Figures(NamedTuple):
    """What was measured of a node, and by how many seconds its clock is surely ahead of the server's."""

    samples: Samples
    ahead: float = 0.0


class FigureSigns:
    """Remembers what signs need of the past."""

    def __init__(self) -> None:
        self._seen: dict[Key, float] = {}
        """When a series was seen last."""
        self._since: dict[Key, float] = {}
        """Since when a condition has held in each look."""
        self._counts: dict[Key, deque[tuple[float, float]]] = {}
        """The counters of the last hour, by time."""
        self._writable: set[Key] = set()
        """File systems that could be written to when they were seen first."""

    def look(self, nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
        """Yield the signs of all nodes now, in seconds since 1970; the ledger counts a repetition once an hour."""
        self._forget(now)
        for node, figures in nodes.items():
            for value in figures.samples.values:
                if value.family in _READ:
                    yield from self._of(node, value, now)
            yield from _full_disks(node, figures.samples, now)
        yield from _clocks(nodes, now)

    def _of(self, node: str, value: Value, now: float) -> Iterator[Sign]:
        family, labels, number = value
        match family:
            case DeviceMetric.NVIDIA_STATE:
                yield from self._throttled(node, labels, now)
            case DeviceMetric.PCIE_REPLAY:
                grown = self._grown(node, value, REPLAY_SECONDS, now)
                if grown > REPLAYS:
                    reason = f"device {labels[0]} repeated {grown:.0f} transfers on PCI Express within ten minutes"
                    yield _of_device(SignKind.PCIE_ERRORS, node, labels[0], now, reason)
            case NodeMetric.PORT_DOWNED | NodeMetric.LINK_DOWN:
                grown = self._grown(node, value, FLAP_SECONDS, now)
                if grown >= FLAPS:
                    link = " port ".join(labels)
                    reason = f"the link of {link} went down {grown:.0f} times within an hour"
                    yield Sign(SignKind.LINK_FLAPS, node, now, reason, source=link)
            case NodeMetric.FILE_SYSTEM_READ_ONLY:
                key = self._key(node, value, now)
                if not number:
                    self._writable.add(key)
                elif key in self._writable:
                    reason = f"the file system {labels[2]} on {labels[0]} has become read-only"
                    yield Sign(SignKind.READ_ONLY_DISK, node, now, reason, source=labels[2])

    def _throttled(self, node: str, labels: tuple[str, ...], now: float) -> Iterator[Sign]:
        _, number, told = labels
        held = [each for each in _HARDWARE if any(reason.endswith(f"_{each}") for reason in told.split(","))]
        key = self._key(node, Value(DeviceMetric.NVIDIA_STATE, (number,), 0.0), now)
        if not held:
            self._since.pop(key, None)
        elif now - self._since.setdefault(key, now) >= THROTTLED_SECONDS:
            reason = f"the hardware has held the clocks of device {number} down for ten minutes: {', '.join(held)}"
            yield _of_device(SignKind.THROTTLED, node, number, now, reason)

    def _grown(self, node: str, value: Value, seconds: float, now: float) -> float:
        """By how much a counter has grown within so many seconds; one that begins anew begins at 0."""
        counts = self._counts.setdefault(self._key(node, value, now), deque())
        if counts and value.value < counts[-1][1]:
            counts.clear()
        if not counts or now - counts[-1][0] >= _COUNT_SECONDS:
            counts.append((now, value.value))
        while len(counts) > 1 and counts[0][0] < now - seconds:
            counts.popleft()
        return value.value - counts[0][1]

    def _key(self, node: str, value: Value, now: float) -> Key:
        key = node, value.family, value.labels
        if len(self._seen) < _MOST_WATCHED or key in self._seen:
            self._seen[key] = now
        return key

    def _forget(self, now: float) -> None:
        """Forget series that were not seen lately, or were seen in the future: the clock was set back."""
        for key in [key for key, at in self._seen.items() if not 0 <= now - at <= _GAP_SECONDS]:
            del self._seen[key]
        for known in (self._since, self._counts):
            for key in [key for key in known if key not in self._seen]:
                del known[key]
        self._writable &= self._seen.keys()


def _of_device(kind: SignKind, node: str, number: str, now: float, reason: str) -> Sign:
    device = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else NODE
    return Sign(kind, node, now, reason, device=device)


def _full_disks(node: str, samples: Samples, now: float) -> Iterator[Sign]:
    sizes, left, closed = dict[tuple[str, ...], float](), dict[tuple[str, ...], float](), set[tuple[str, ...]]()
    for family, labels, number in samples.values:
        if family == NodeMetric.FILE_SYSTEM:
            sizes[labels] = number
        elif family == NodeMetric.FILE_SYSTEM_AVAILABLE:
            left[labels] = number
        elif family == NodeMetric.FILE_SYSTEM_READ_ONLY and number:
            closed.add(labels)
    for labels, size in sizes.items():
        free = left.get(labels)
        if free is None or size <= 0 or labels in closed:
            continue
        if free < LEFT_PART * size and free < LEFT_BYTES:
            percent = 100 * free / size
            reason = f"the file system {labels[2]} on {labels[0]} has {percent:.1f} % left ({free / 2**30:.1f} GiB)"
            yield Sign(SignKind.FULL_DISK, node, now, reason, source=labels[2])


def _clocks(nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
    """Signs of clocks that differ; none where most differ, because then the server's own is wrong."""
    if not nodes or median_low(abs(each.ahead) for each in nodes.values()) > CLOCK_SECONDS:
        return
    for node, figures in nodes.items():
        if abs(figures.ahead) > CLOCK_SECONDS:
            side = "ahead of" if figures.ahead > 0 else "behind"
            yield Sign(SignKind.CLOCK_SKEW, node, now, f"its clock is {abs(figures.ahead):.1f} s {side} the server's")
