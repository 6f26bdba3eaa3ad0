"""What a task did with its machine during a profile: processors, memory, page cache, disk, network and devices.

The program in the task answers counters; differences between two looks make the figures over time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec

from corral.kernel.errors import InvalidInput
from corral.profiles.curves import Curve, curve

_MIB: Final = 2**20
_MOST: Final = 1e18
_MOST_LOOKS: Final = 2_000
_MOST_DEVICES: Final = 16


class _Thread(msgspec.Struct, frozen=True):
    ran: float
    waited: float
    disk: float
    ready: float
    kernel: float = 0.0


class _Facts(msgspec.Struct, frozen=True):
    """What the program in the task answers."""

    looks: list[dict[str, float]]
    threads: list[_Thread]
    processors: int
    limits: dict[str, float] = {}
    devices: list[tuple[float, float, float, float, float]] = []
    hit: float = 0.0


_READ: Final = msgspec.json.Decoder(_Facts)


class Device(NamedTuple):
    """The mean use of a device, as a share, and the most memory in use, as a share of its memory; -1 is unknown."""

    number: int
    use: float
    memory: float


class SystemReport(NamedTuple):
    """What a task did with its machine; shares are of the time of the profile."""

    rank: str
    seconds: float
    processors: float
    """Those that it may use: of its machine, and of its control group's limit."""
    used: float
    """Processors that it kept busy, in the mean."""
    wanted: float
    """Processors that its threads wanted: those that ran, and those that waited for one."""
    busiest: float
    """The same of the one thread that wanted most; 1 is always."""
    queued: float
    """Of the time in which its threads wanted a processor, the share in which they waited for one."""
    throttled: float
    """The share of the periods in which its control group was throttled."""
    throttled_seconds: float
    """Of a second, so much it was throttled."""
    disk: float
    """The share of the time in which the thread that waited most for the disk did so."""
    kernel: float
    """Processors that the same thread used within the kernel."""
    hit: float
    """Processor seconds in which the kernel gives a byte that the page cache holds; 0 is not known."""
    read: float
    """Bytes that came from the disk."""
    asked: float
    """Bytes that it asked files and pipes for."""
    written: float
    major: float
    """Pages of files that had to be read from the disk."""
    resident: float
    """The most memory of its processes, in bytes."""
    curves: tuple[Curve, ...]
    devices: tuple[Device, ...] = ()


def read_system(rank: str, text: str) -> SystemReport:
    """Read what a task answered. Raises InvalidInput `bad-profile`."""
    facts = _facts(text)
    first, last = facts.looks[0], facts.looks[-1]
    seconds = last["at"] - first["at"]

    def rose(name: str) -> float:
        return last.get(name, 0.0) - first.get(name, 0.0)

    wanted = rose("ran") + rose("waited")
    periods = rose("periods")
    waits = max(facts.threads, key=lambda each: each.disk, default=_Thread(0.0, 0.0, 0.0, 0.0))
    return SystemReport(
        rank=rank,
        seconds=seconds,
        processors=min(float(facts.processors), facts.limits.get("processors", math.inf)),
        used=(rose("user") + rose("system")) / seconds,
        wanted=wanted / seconds,
        busiest=min(1.0, max((each.ran + each.waited for each in facts.threads), default=0.0) / seconds),
        queued=rose("waited") / wanted if wanted > 0 else 0.0,
        throttled=rose("throttled") / periods if periods > 0 else 0.0,
        throttled_seconds=rose("throttled_seconds") / seconds,
        disk=min(1.0, waits.disk),
        kernel=min(1.0, waits.kernel / seconds),
        hit=facts.hit,
        read=rose("read"),
        asked=rose("rchar"),
        written=rose("written"),
        major=rose("major"),
        resident=max(each.get("resident", 0.0) for each in facts.looks),
        curves=tuple(_curves(facts, seconds)),
        devices=tuple(_devices(facts)),
    )


def _facts(text: str) -> _Facts:
    try:
        facts = _READ.decode(text)
    except msgspec.DecodeError:
        raise InvalidInput("bad-profile", "What the task told of its machine cannot be read.") from None
    numbers = [value for look in facts.looks for value in look.values()]
    numbers += [value for each in facts.threads for value in msgspec.structs.astuple(each)]
    numbers += [facts.hit, *facts.limits.values(), *(value + 1 for each in facts.devices for value in each)]
    times = [each.get("at", -1.0) for each in facts.looks]
    grows = all(before < after for before, after in pairwise(times))
    bounded = all(0 <= each <= _MOST for each in numbers)
    if not 2 <= len(times) <= _MOST_LOOKS or times[0] < 0 or not grows or not bounded or facts.processors < 1:
        raise InvalidInput("bad-profile", "What the task told of its machine is empty or out of bounds.")
    return facts


_RATES: Final[tuple[tuple[str, str, Callable[[dict[str, float]], float]], ...]] = (
    ("processors in use", "", lambda look: look.get("user", 0) + look.get("system", 0)),
    ("waiting for a processor", "threads", lambda look: look.get("waited", 0)),
    ("throttled", "of a second", lambda look: look.get("throttled_seconds", 0)),
    ("read from the disk", "MiB/s", lambda look: look.get("read", 0) / _MIB),
    ("written to the disk", "MiB/s", lambda look: look.get("written", 0) / _MIB),
    ("read in all", "MiB/s", lambda look: look.get("rchar", 0) / _MIB),
    ("major page faults", "/s", lambda look: look.get("major", 0)),
    ("minor page faults", "/s", lambda look: look.get("minor", 0)),
    ("voluntary switches", "/s", lambda look: look.get("voluntary", 0)),
    ("forced switches", "/s", lambda look: look.get("involuntary", 0)),
    ("network received", "MiB/s", lambda look: look.get("received", 0) / _MIB),
    ("network sent", "MiB/s", lambda look: look.get("sent", 0) / _MIB),
    ("machine stalled on processors", "of a second", lambda look: look.get("stalled_cpu", 0)),
    ("machine stalled on the disk", "of a second", lambda look: look.get("stalled_io", 0)),
    ("machine stalled on memory", "of a second", lambda look: look.get("stalled_memory", 0)),
)
"""Figures that are the rise of counters in a second."""
_LEVELS: Final = (("memory of the processes", "resident"), ("memory of the group", "group"), ("page cache", "cached"))


def _curves(facts: _Facts, seconds: float) -> Iterator[Curve]:
    for name, unit, of in _RATES:
        most = 1.0 if name.startswith("machine") else math.inf  # the kernel adds up stalls later than it is asked
        points = [
            (after["at"], min(most, max(0.0, of(after) - of(before)) / (after["at"] - before["at"])))
            for before, after in pairwise(facts.looks)
        ]
        if any(value for _, value in points):
            yield curve(name, unit, points, seconds)
    for name, key in _LEVELS:
        if levels := [(each["at"], each[key] / _MIB) for each in facts.looks if key in each]:
            yield curve(name, "MiB", levels, seconds)
    for index, looks in _by_device(facts):
        yield curve(f"device {index} in use", "%", [(at, use) for at, use, _, _ in looks if use >= 0], seconds)
        yield curve(f"device {index} memory", "MiB", [(at, used) for at, _, used, _ in looks if used >= 0], seconds)


def _by_device(facts: _Facts) -> Iterator[tuple[int, list[tuple[float, float, float, float]]]]:
    indexes = sorted({int(each[1]) for each in facts.devices})[:_MOST_DEVICES]
    for index in indexes:
        yield index, [(at, use, used, whole) for at, which, use, used, whole in facts.devices if which == index]


def _devices(facts: _Facts) -> Iterator[Device]:
    for index, looks in _by_device(facts):
        uses: Sequence[float] = [use for _, use, _, _ in looks if use >= 0]
        filled = [used / whole for _, _, used, whole in looks if used >= 0 and whole > 0]
        yield Device(index, sum(uses) / len(uses) / 100 if uses else -1.0, max(filled, default=-1.0))
