"""Find signs of trouble in what was measured: throttled devices and processors, errors, links, clocks, disks, mounts.

A value without I/O: it is given the figures of each node at each look, and compares them with those of before.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from statistics import median_low
from typing import Final, NamedTuple

import msgspec

from corral.devices.figures.device_figures import Held
from corral.kernel.units import counted, format_duration
from corral.model.health.signs import NODE, Sign, SignKind
from corral.model.metrics.agent_page import CheckTold
from corral.model.metrics.device_families import DeviceMetric
from corral.model.metrics.node_families import NodeMetric
from corral.model.metrics.samples import Samples, Value
from corral.monitor.agent.machine_files import FILE_SYSTEM, SERVER_SYSTEMS, FileSystem
from corral.monitor.health.check_scripts import Checked

LASTING_SECONDS: Final = 600.0
"""Seconds for which clocks must be held down, or a mount of a server have an error, in each look."""
REPLAYS: Final = 80
"""Repeated PCIe transfers, or errors, within ten minutes: DCGM's health check warns of more than 8 a minute."""
REPLAY_SECONDS: Final = 600.0
HELD_PART: Final = 0.1
"""The part of the time for which the clocks of an AMD GPU or an Ascend NPU must be held down in each look."""
HOT_SECONDS: Final = 60.0
"""Seconds of ten minutes for which heat must hold the clocks of a processor down."""
ERROR_SECONDS: Final = 3600.0
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
_CHECKED_SECONDS: Final = 86_400.0
"""Seconds for which the last run of a check script is remembered that is not told any more."""
_HARDWARE: Final = ("hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown")
"""Reasons that lie with cooling or power; a power cap and an idle device are usual."""
_HELD: Final = {
    Held.HEAT: "heat",
    Held.PROCHOT: "a signal of the board (PROCHOT)",
    Held.UNKNOWN: "something of which its tool tells no reason",
}
"""The same of AMD's and Ascend's devices, in words."""
_READ: Final = frozenset(
    {
        DeviceMetric.NVIDIA_STATE, DeviceMetric.PCIE_REPLAY, DeviceMetric.REPLAYS, NodeMetric.PORT_DOWNED,
        NodeMetric.LINK_DOWN, NodeMetric.FILE_SYSTEM_READ_ONLY, NodeMetric.THROTTLED, NodeMetric.DISK_ERRORS,
        DeviceMetric.PCIE_ERRORS, DeviceMetric.ECC, DeviceMetric.HELD_DOWN,
    }
)  # fmt: skip
_CLOCKS: Final = "clocks"
"""The one source of all clocks of a node: programs make heat, and caps of power are usual, so neither closes a node."""
_MOUNTS: Final = "mounts"
"""The one source of all mounts of a node: one server, or its network, often has several of them."""
_MOST_NAMED: Final = 3
"""Devices or mounts that one reason names."""
_MOST_COUNTED: Final = 1e9
"""The most by which a counter grows: an agent may tell any number, and a sentence has few letters for it."""
_MOST_WATCHED: Final = 100_000
"""Series that are remembered."""

Key = tuple[str, str, tuple[str, ...]]
"""A node, a family and labels."""


class Figures(NamedTuple):
    """What was measured of a node."""

    samples: Samples
    ahead: float | None = 0.0
    """Seconds by which its clock is surely ahead of the server's, below 0 behind; None if it is the server's own."""
    checks: tuple[CheckTold, ...] = ()
    """The last runs of its check scripts."""


class FigureSigns:
    """Remembers what signs need of the past."""

    def __init__(self) -> None:
        self._seen: dict[Key, float] = {}
        """When a series was seen last."""
        self._since: dict[Key, float] = {}
        """Since when a condition has held in each look."""
        self._counts: dict[Key, deque[tuple[float, float]]] = {}
        """The counters of the last hour, by time."""
        self._checked: dict[tuple[str, str], tuple[float, float]] = {}
        """By node and check script, the run that was seen last, and when; those that were seen last are at the end."""
        self._begun: float | None = None
        """When the first look was."""
        self._writable: set[Key] = set()
        """File systems that could be written to when they were seen first."""

    def look(self, nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
        """Yield the signs of all nodes now, in seconds since 1970; the ledger counts a repetition once an hour."""
        self._forget(now)
        for sign in self._signs(nodes, now):  # with texts of agents, as they came
            yield msgspec.structs.replace(sign, reason=_plain(sign.reason), source=_plain(sign.source))

    def _signs(self, nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
        for node, figures in nodes.items():
            read = (value for value in figures.samples.values if value.family in _READ)
            yield from _with_one_of_clocks([sign for value in read for sign in self._of(node, value, now)])
            yield from _full_disks(node, figures.samples, now)
        yield from self._hanging_mounts(nodes, now)
        yield from self._failed_checks(nodes, now)
        yield from _clocks(nodes, now)

    def _of(self, node: str, value: Value, now: float) -> Iterator[Sign]:
        family, labels, told = value
        match family:
            case DeviceMetric.NVIDIA_STATE:
                yield from self._throttled(node, labels, now)
            case DeviceMetric.PCIE_REPLAY | DeviceMetric.REPLAYS:
                number = labels[0 if family == DeviceMetric.PCIE_REPLAY else 1]
                grown = self._grown(node, value, REPLAY_SECONDS, now)
                if grown > REPLAYS:
                    reason = f"device {number} repeated {grown:.0f} transfers on PCI Express within ten minutes"
                    yield _of_device(SignKind.PCIE_ERRORS, node, number, now, reason)
            case DeviceMetric.PCIE_ERRORS | DeviceMetric.ECC | DeviceMetric.HELD_DOWN:
                yield from self._of_kind(node, value, now)
            case NodeMetric.PORT_DOWNED | NodeMetric.LINK_DOWN:
                grown = self._grown(node, value, FLAP_SECONDS, now)
                if grown >= FLAPS:
                    link = " port ".join(labels)
                    reason = f"the link of {link} went down {grown:.0f} times within an hour"
                    yield Sign(SignKind.LINK_FLAPS, node, now, reason, source=link)
            case NodeMetric.THROTTLED:
                grown = self._grown(node, value, LASTING_SECONDS, now)
                if grown >= HOT_SECONDS:
                    reason = f"heat held the clocks of processor {labels[0]} down for {grown:.0f} s within ten minutes"
                    yield Sign(SignKind.THROTTLED, node, now, reason, source=_CLOCKS)
            case NodeMetric.DISK_ERRORS if labels[1] == FILE_SYSTEM:  # commands end with errors on healthy disks too
                grown = self._grown(node, value, ERROR_SECONDS, now)
                if grown >= 1:
                    reason = f"the kernel counted {grown:.0f} errors of the file system on {labels[0]} within an hour"
                    yield Sign(SignKind.DISK_ERRORS, node, now, reason, source=" ".join(labels))
            case NodeMetric.FILE_SYSTEM_READ_ONLY if labels[1] not in SERVER_SYSTEMS:
                key = self._key(node, value, now)
                if not told:
                    self._writable.add(key)
                elif key in self._writable:
                    reason = f"the file system {labels[2]} on {labels[0]} has become read-only"
                    yield Sign(SignKind.READ_ONLY_DISK, node, now, reason, source=labels[2])

    def _of_kind(self, node: str, value: Value, now: float) -> Iterator[Sign]:
        """Signs in series of devices whose last label says of what kind an error is, or why clocks are held down."""
        family, labels, told = value
        number, kind = labels[1], labels[4]
        match family:
            case DeviceMetric.PCIE_ERRORS:
                most, seconds = (0, ERROR_SECONDS) if kind == "fatal" else (REPLAYS, REPLAY_SECONDS)
                grown = self._grown(node, value, seconds, now)
                if grown > most:
                    errors = f"{counted(int(grown), f'{kind} error')} of device {number} on PCI Express"
                    reason = f"the kernel counted {errors} within {format_duration(int(seconds))}"
                    yield _of_device(SignKind.PCIE_ERRORS, node, number, now, reason)
            case DeviceMetric.ECC if kind == "uncorrected":
                grown = self._grown(node, value, ERROR_SECONDS, now)
                if grown >= 1:
                    errors = counted(int(grown), "error")
                    reason = f"the memory of device {number} had {errors} within an hour that ECC did not correct"
                    yield _of_device(SignKind.ECC, node, number, now, reason)
            case DeviceMetric.HELD_DOWN if kind in _HELD:
                if self._lasts(node, value, told >= HELD_PART, now):
                    words = _HELD[Held(kind)]
                    reason = f"the clocks of device {number} have been held down for ten minutes by {words}"
                    yield Sign(SignKind.THROTTLED, node, now, reason, source=_CLOCKS)

    def _failed_checks(self, nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
        """Yield a sign of each run of a check script that found a problem, once.

        One that ended before the first look is an earlier server's.
        """
        self._begun = now if self._begun is None else min(now, self._begun)
        for node, figures in nodes.items():
            for script, code, message, at in map(msgspec.structs.astuple, figures.checks):
                before = self._checked.pop((node, script), None)
                self._checked[node, script] = at, now
                sign = Checked(script, node, code, message).sign(now)
                is_new = at >= self._begun if before is None else at != before[0]
                if sign is not None and is_new:
                    yield sign
        while self._checked:
            oldest, (_, seen) = next(iter(self._checked.items()))
            if len(self._checked) <= _MOST_WATCHED and 0 <= now - seen <= _CHECKED_SECONDS:
                break
            del self._checked[oldest]

    def _hanging_mounts(self, nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
        """Signs of file systems of servers that have had an error on one node, and none on most others that mount them."""
        mounted = defaultdict[tuple[str, ...], dict[str, tuple[FileSystem, bool]]](dict)
        for node, figures in nodes.items():
            for family, labels, told in figures.samples.values:
                if family == NodeMetric.FILE_SYSTEM_ERROR and labels[1] in SERVER_SYSTEMS:
                    each = FileSystem(*labels)
                    mounted[each.identity][node] = each, bool(told)
        hanging = defaultdict[str, list[str]](list)
        for identity, by_node in mounted.items():
            is_servers = 2 * sum(hangs for _, hangs in by_node.values()) >= len(by_node)  # or only one node mounts it
            for node, (each, hangs) in by_node.items():
                value = Value(NodeMetric.FILE_SYSTEM_ERROR, identity, 0.0)
                if not hangs or is_servers:
                    self._since.pop((node, *value[:2]), None)
                elif self._lasts(node, value, True, now):
                    hanging[node].append(f"{each.device} at {each.mount}")
        for node, mounts in hanging.items():
            has = "has an error" if len(mounts) == 1 else "have errors"
            reason = f"{_listed(mounts, ', ')} {has} on this node and none on most others"
            yield Sign(SignKind.HANGING_MOUNT, node, now, reason, source=_MOUNTS)

    def _throttled(self, node: str, labels: tuple[str, ...], now: float) -> Iterator[Sign]:
        _, number, told = labels
        held = [each for each in _HARDWARE if any(reason.endswith(f"_{each}") for reason in told.split(","))]
        if self._lasts(node, Value(DeviceMetric.NVIDIA_STATE, (number,), 0.0), bool(held), now):
            reason = f"the hardware has held the clocks of device {number} down for ten minutes: {', '.join(held)}"
            yield Sign(SignKind.THROTTLED, node, now, reason, source=_CLOCKS)

    def _lasts(self, node: str, value: Value, holds: bool, now: float) -> bool:
        """Whether a condition has held in each look of ten minutes."""
        key = self._key(node, value, now)
        if not holds:
            self._since.pop(key, None)
            return False
        return now - self._since.setdefault(key, now) >= LASTING_SECONDS

    def _grown(self, node: str, value: Value, seconds: float, now: float) -> float:
        """By how much a counter has grown within so many seconds; one that begins anew begins at 0."""
        counts = self._counts.setdefault(self._key(node, value, now), deque())
        if counts and value.value < counts[-1][1]:
            counts.clear()
        if not counts or now - counts[-1][0] >= _COUNT_SECONDS:
            counts.append((now, value.value))
        while len(counts) > 1 and counts[0][0] < now - seconds:
            counts.popleft()
        return min(value.value - counts[0][1], _MOST_COUNTED)

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


def _plain(text: str) -> str:
    """A text of an agent on one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _of_device(kind: SignKind, node: str, number: str, now: float, reason: str) -> Sign:
    device = int(number) if number.isascii() and number.isdigit() and len(number) < 5 else NODE
    return Sign(kind, node, now, reason, device=device)


def _with_one_of_clocks(signs: list[Sign]) -> Iterator[Sign]:
    """The signs of a node, of which one names all whose clocks are held down."""
    held = [each for each in signs if each.kind is SignKind.THROTTLED]
    yield from (each for each in signs if each.kind is not SignKind.THROTTLED)
    if held:
        yield msgspec.structs.replace(held[0], reason=_listed([each.reason for each in held], "; "))


def _listed(texts: list[str], between: str) -> str:
    more = len(texts) - _MOST_NAMED
    return between.join([*texts[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else ())])


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
        if free is None or size <= 0 or labels in closed or labels[1] in SERVER_SYSTEMS:
            continue
        if free < LEFT_PART * size and free < LEFT_BYTES:
            percent = 100 * free / size
            reason = f"the file system {labels[2]} on {labels[0]} has {percent:.1f} % left ({free / 2**30:.1f} GiB)"
            yield Sign(SignKind.FULL_DISK, node, now, reason, source=labels[2])


def _clocks(nodes: Mapping[str, Figures], now: float) -> Iterator[Sign]:
    """Signs of clocks that differ; none where most differ, because then the server's own is wrong."""
    others = {node: each.ahead for node, each in nodes.items() if each.ahead is not None}
    if not others or median_low(map(abs, others.values())) > CLOCK_SECONDS:
        return
    for node, ahead in others.items():
        if abs(ahead) > CLOCK_SECONDS:
            side = "ahead of" if ahead > 0 else "behind"
            yield Sign(SignKind.CLOCK_SKEW, node, now, f"its clock is {abs(ahead):.1f} s {side} the server's")
