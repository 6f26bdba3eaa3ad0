"""What became of a workload: waits by class, throughput, makespan, and the use of the units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from corral.benchmarks.results.lines import NodeResult
from corral.kernel.quantile import quantile

QUANTILES: Final = (50, 95, 99)


class Life(NamedTuple):
    """The times of one gang, in seconds of any one clock; None: that did not happen."""

    kind: str
    units: int
    """Of all its tasks."""
    submitted: float
    started: float | None
    """When all its tasks ran."""
    ended: float | None
    """When it succeeded."""


class Waits(NamedTuple):
    """The waits of a class, in seconds from submission to the start of its last task."""

    kind: str
    gangs: int
    started: int
    ended: int
    quantiles: tuple[float, ...]
    """At QUANTILES of the waits of those that started; empty if none did."""
    longest: float


class Outcome(NamedTuple):
    """The figures of a played workload."""

    gangs: int
    ended: int
    makespan: float
    """Seconds from the first submission to the last end."""
    throughput: float
    """Gangs that ended in each second of the makespan."""
    most_units: int
    """Units of running gangs at the time when they were most."""
    unit_seconds: float
    """Units times seconds of all gangs that ended."""
    use: float | None
    """Part of the capacity, over the makespan; None without a known capacity."""
    waits: tuple[Waits, ...]


def outcome(lives: Sequence[Life], capacity: int = 0) -> Outcome:
    """Return the figures of gangs on a cluster of `capacity` units; 0: not known."""
    ended = [each for each in lives if each.started is not None and each.ended is not None]
    begin = min((each.submitted for each in lives), default=0.0)
    makespan = max((each.ended - begin for each in ended if each.ended is not None), default=0.0)
    unit_seconds = sum(each.units * _length(each) for each in ended)
    use = unit_seconds / (capacity * makespan) if capacity and makespan > 0 else None
    kinds = dict.fromkeys(each.kind for each in lives)
    return Outcome(
        len(lives),
        len(ended),
        makespan,
        len(ended) / makespan if makespan > 0 else 0.0,
        _most_units(ended),
        unit_seconds,
        use,
        tuple(_waits(kind, [each for each in lives if each.kind == kind]) for kind in kinds),
    )


def _length(life: Life) -> float:
    return 0.0 if life.started is None or life.ended is None else max(0.0, life.ended - life.started)


def _most_units(ended: Iterable[Life]) -> int:
    """An end at the time of a start comes first: its units are free then."""
    changes: list[tuple[float, int]] = []
    for each in ended:
        if each.started is not None and each.ended is not None:
            changes += [(each.started, each.units), (max(each.started, each.ended), -each.units)]
    most = now = 0
    for _, units in sorted(changes):
        now += units
        most = max(most, now)
    return most


def _waits(kind: str, lives: Sequence[Life]) -> Waits:
    waits = sorted(max(0.0, each.started - each.submitted) for each in lives if each.started is not None)
    ended = sum(each.ended is not None for each in lives)
    quantiles = tuple(quantile(waits, part / 100) for part in QUANTILES) if waits else ()
    return Waits(kind, len(lives), len(waits), ended, quantiles, waits[-1] if waits else 0.0)


def result_of(found: Outcome, workload: str, scheduler: str) -> NodeResult:
    """Return the figures as a line of a results file, under the scheduler's name; times are milliseconds."""
    metrics = {
        f"{workload}/makespan_time": found.makespan * 1000,
        f"{workload}/gangs_throughput": found.throughput,
        f"{workload}/most_units": float(found.most_units),
        f"{workload}/return_code": float(found.ended != found.gangs),
    }
    if found.use is not None:
        metrics[f"{workload}/use"] = found.use
    for waits in found.waits:
        for part, seconds in zip(QUANTILES, waits.quantiles, strict=False):
            metrics[f"{workload}/{waits.kind}_wait_p{part}_time"] = seconds * 1000
    return NodeResult(scheduler, metrics)
