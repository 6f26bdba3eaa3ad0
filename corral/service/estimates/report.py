"""Report how good estimates were: how many intervals held, how wide they were, bias and error, by queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from math import inf, isfinite

from corral.kernel.quantile import quantile
from corral.model.estimates import EstimateReport, LivedEstimate, QueueEstimates
from corral.model.records import rfc3339


class Verdict(Enum):
    """What became of an interval from P10 to P90."""

    HELD = "held"
    EARLY = "early"
    """The job started before it."""
    LATE = "late"
    """The job started after it, or still waits after it."""
    UNDECIDED = "undecided"
    """The job still waits within it, ended without a start, or there is no interval."""


def verdict(lived: LivedEstimate, now: float) -> Verdict:
    """Judge an interval at a time; one whose upper end is after the horizon holds for all later starts."""
    waited = lived.waited(now)
    if lived.given.courses < 2 or waited is None:
        return Verdict.UNDECIDED
    low, high = interval(lived)
    if waited > high:
        return Verdict.LATE
    if lived.is_open:
        return Verdict.UNDECIDED
    return Verdict.EARLY if waited < low else Verdict.HELD


def interval(lived: LivedEstimate) -> tuple[float, float]:
    """The interval in seconds after the estimate: an end that is not told is the horizon below, and infinite above."""
    given = lived.given
    return (given.horizon if given.p10 is None else given.p10), (inf if given.p90 is None else given.p90)


def report(found: Collection[LivedEstimate], *, now: float, days: int) -> EstimateReport:
    """The report of the estimates that were given in the last `days`; O(n log n)."""
    recent = [each for each in found if each.given.at >= now - days * 86_400]
    by_queue: dict[str, list[LivedEstimate]] = defaultdict(list)
    for each in recent:
        by_queue[each.given.queue].append(each)
    queues = tuple(_figures(queue, by_queue[queue], now) for queue in sorted(by_queue))
    return EstimateReport(rfc3339(now), days, queues, _figures("", recent, now))


def _figures(queue: str, found: Sequence[LivedEstimate], now: float) -> QueueEstimates:
    verdicts = [verdict(each, now) for each in found]
    held, early, late = (verdicts.count(each) for each in (Verdict.HELD, Verdict.EARLY, Verdict.LATE))
    judged = held + early + late
    intervals = [interval(each) for each in found if each.given.courses > 1]
    waits = sorted(each.started - each.given.at for each in found if each.started is not None)
    misses = [
        each.started - each.given.at - each.given.p50
        for each in found
        if each.started is not None and each.given.p50 is not None
    ]
    return QueueEstimates(
        queue,
        given=len(found),
        jobs=len({each.given.job for each in found}),
        started=len(waits),
        waiting=sum(each.is_open for each in found),
        not_started=sum(each.ended is not None for each in found),
        held=held,
        early=early,
        late=late,
        coverage=held / judged if judged else None,
        width=_median(high - low for low, high in intervals),
        past_width=quantile(waits, 0.9) - quantile(waits, 0.1) if waits else None,
        bias=_median(misses),
        error=_median(map(abs, misses)),
    )


def _median(values: Iterable[float]) -> float | None:
    found = sorted(values)
    middle = quantile(found, 0.5) if found else inf
    return middle if isfinite(middle) else None
