"""Judge the network of a gang: which pairs of tasks are slower than others that are as close, or farther apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple

import msgspec

from corral.model.records import Record

SAME_NODE: Final = "node"
NO_CELL: Final = "cluster"
"""The level of two nodes that no named cell has together."""
LEAST_PART: Final = 0.7
"""The least part of the usual rate that a way may have."""
MOST_TIMES: Final = 2.0
MOST_SECONDS: Final = 50e-6
"""A way is late when its latency is twice the usual one, and so much more than it."""
LEAST_LIKE: Final = 4
"""Ways of a level that must be known before one of them is compared with the others."""
_MOST_FINDINGS: Final = 20


class Place(NamedTuple):
    """Where a task is: its node, and the cells above it, outermost first."""

    node: str
    cells: tuple[tuple[str, str], ...] = ()


class TaskNetwork(msgspec.Struct, frozen=True):
    """What one task told, with the names of other tasks: bytes in a second and seconds of latency to each."""

    tasks: int = 0
    seconds: float = 0.0
    ways: tuple[tuple[str, float, float | None], ...] = ()
    missed: tuple[tuple[str, str], ...] = ()
    next: str = ""
    ring: float | None = None


class NetworkWay(Record, frozen=True):
    """The network from one task to another."""

    source: str
    target: str
    level: str
    """The narrowest level that both are in: node, rack and so on; "cluster" when they share none."""
    bytes_per_second: float
    latency_seconds: float | None = None
    """Half of a round trip."""
    slow: str = ""
    """Why it is slower than the topology lets expect; "" where it is not."""


class NetworkLevel(Record, frozen=True):
    """The usual figures of the ways of one level: medians."""

    level: str
    ways: int
    bytes_per_second: float
    latency_seconds: float | None = None


class NetworkReport(Record, frozen=True):
    """The network between the tasks of a job, as they measured it before their commands began."""

    at: str
    tasks: int
    seconds: float
    """How long the slowest task took for it."""
    levels: tuple[NetworkLevel, ...]
    """From the narrowest to the widest."""
    ways: tuple[NetworkWay, ...]
    ring: tuple[NetworkWay, ...]
    """The ways of the ring while all tasks send at once."""
    findings: tuple[str, ...]
    """What is slower than the topology lets expect, or could not be measured, in sentences."""


def judge(told: Mapping[str, TaskNetwork], places: Mapping[str, Place], at: str) -> NetworkReport:
    """The report of what the tasks told, each by its name."""
    order = _levels(places.values())
    latencies = {
        frozenset((task, other)): late
        for task, each in told.items()
        for other, _, late in each.ways
        if late is not None
    }
    ways = [
        NetworkWay(task, other, level_of(places, task, other), rate, latencies.get(frozenset((task, other))))
        for task, each in told.items()
        for other, rate, _ in each.ways
    ]
    ring = [
        NetworkWay(task, each.next, level_of(places, task, each.next), each.ring)
        for task, each in told.items()
        if each.ring is not None and each.next
    ]
    levels = [_level(level, [way for way in ways if way.level == level]) for level in order]
    known = [level for level in levels if level.ways]
    judged = [msgspec.structs.replace(way, slow=_slow(way, known, order)) for way in ways]
    ring_levels = [_level(level, [way for way in ring if way.level == level]) for level in order]
    judged_ring = [msgspec.structs.replace(way, slow=_slow(way, ring_levels, order)) for way in ring]
    tasks = max((each.tasks for each in told.values()), default=0)
    findings = [*_unmeasured(told, tasks), *_slow_places(judged, places), *_slow_ring(judged_ring, places)]
    cut = findings[:_MOST_FINDINGS]
    if len(findings) > len(cut):
        cut.append(f"There are {len(findings) - len(cut)} more findings.")
    seconds = max((each.seconds for each in told.values()), default=0.0)
    return NetworkReport(at, tasks, seconds, tuple(known), tuple(judged), tuple(judged_ring), tuple(cut))


def level_of(places: Mapping[str, Place], one: str, other: str) -> str:
    """The narrowest level that two tasks share."""
    first, second = places.get(one), places.get(other)
    if first is None or second is None:
        return NO_CELL
    if first.node == second.node:
        return SAME_NODE
    shared = [
        level for (level, cell), theirs in zip(first.cells, second.cells, strict=False) if (level, cell) == theirs
    ]
    return shared[-1] if shared else NO_CELL


def _levels(places: Iterable[Place]) -> list[str]:
    """All levels from the narrowest to the widest."""
    found = [SAME_NODE]
    for place in places:
        found += [level for level, _ in reversed(place.cells) if level not in found]
    return [*found, NO_CELL]


def _level(level: str, ways: Sequence[NetworkWay]) -> NetworkLevel:
    late = [way.latency_seconds for way in ways if way.latency_seconds is not None]
    rate = median(way.bytes_per_second for way in ways) if ways else 0.0
    return NetworkLevel(level, len(ways), rate, median(late) if late else None)


def _slow(way: NetworkWay, levels: Sequence[NetworkLevel], order: Sequence[str]) -> str:
    """Why a way is slow: compared with its own level, and with wider ones, which promise no more than it."""
    reasons = []
    for level in levels:
        if level.ways < LEAST_LIKE or order.index(level.level) < order.index(way.level):
            continue
        if way.bytes_per_second < LEAST_PART * level.bytes_per_second:
            usual = rate_text(level.bytes_per_second)
            reasons.append(f"{rate_text(way.bytes_per_second)}, and {usual} is usual {_where(level.level)}")
            break
    for level in levels:
        if level.level == way.level and level.ways >= LEAST_LIKE and level.latency_seconds and way.latency_seconds:
            usual_late = level.latency_seconds
            if way.latency_seconds > max(MOST_TIMES * usual_late, usual_late + MOST_SECONDS):
                reasons.append(
                    f"a latency of {late_text(way.latency_seconds)}, and {late_text(usual_late)} is usual "
                    f"{_where(level.level)}"
                )
    return "; ".join(reasons)


def _unmeasured(told: Mapping[str, TaskNetwork], tasks: int) -> list[str]:
    found = []
    if tasks > len(told):
        found.append(f"{len(told)} of {tasks} tasks told what they measured.")
    for task, each in told.items():
        for other, why in each.missed:
            found.append(f"{task} could not measure its network to {other}: {why}.")
    return found


def _slow_places(ways: Sequence[NetworkWay], places: Mapping[str, Place]) -> list[str]:
    """A task whose ways are all slow is named once; other slow pairs are named one by one."""
    of_task: dict[str, list[NetworkWay]] = {}
    for way in ways:
        for task in (way.source, way.target):
            of_task.setdefault(task, []).append(way)
    odd = {task for task, own in of_task.items() if len(own) >= LEAST_LIKE and all(way.slow for way in own)}
    if len(odd) == len(of_task):
        odd = set()
    found = [
        f"{_named(task, places)} is slow to every other task, such as {_other(task, of_task[task][0])}: "
        f"{of_task[task][0].slow}."
        for task in sorted(odd)
    ]
    worst: dict[frozenset[str], NetworkWay] = {}
    for way in ways:
        pair = frozenset((way.source, way.target))
        if way.slow and not pair & odd:
            before = worst.get(pair)
            if before is None or way.bytes_per_second < before.bytes_per_second:
                worst[pair] = way
    for way in sorted(worst.values(), key=lambda way: way.bytes_per_second):
        found.append(f"From {_named(way.source, places)} to {_named(way.target, places)}: {way.slow}.")
    return found


def _slow_ring(ring: Sequence[NetworkWay], places: Mapping[str, Place]) -> list[str]:
    return [
        f"While all tasks send at once, from {_named(way.source, places)} to {_named(way.target, places)}: {way.slow}."
        for way in ring
        if way.slow
    ]


def _other(task: str, way: NetworkWay) -> str:
    return way.target if way.source == task else way.source


def _named(task: str, places: Mapping[str, Place]) -> str:
    place = places.get(task)
    return f"{task} on {place.node}" if place and place.node else task


def _where(level: str) -> str:
    if level == SAME_NODE:
        return "within a node"
    return "between nodes without a common cell" if level == NO_CELL else f"within a {level}"


def rate_text(rate: float) -> str:
    """A rate in words: 1.25 GB/s, 80.2 MB/s."""
    return f"{rate / 1e9:.3g} GB/s" if rate >= 1e9 else f"{rate / 1e6:.3g} MB/s"


def late_text(seconds: float) -> str:
    """A latency in words: 25.1 us, 3.2 ms."""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"
