"""The text that Prometheus reads, written by its own client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from corral.model.metrics.families import FAMILIES, QUEUE, Family, Kind
from corral.model.metrics.samples import Distribution, Samples, Value, totals

if TYPE_CHECKING:
    from prometheus_client import core
    from prometheus_client.core import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def page_of(told: bytes, own: Samples, everybody: bool) -> bytes:
    """The text of front's `own` series and of those that the scheduler `told` as JSON, if it told any.

    Raises msgspec.ValidationError for an answer that has no such series.
    """
    scheduler = msgspec.json.decode(told, type=Samples) if told else Samples()
    return page(own + scheduler, everybody=everybody)


def write_page(told: str, target: str, own: Samples, everybody: bool) -> None:
    """Write the text into the file `target`; the scheduler's JSON is in the file `told`.

    Raises OSError, msgspec.ValidationError for an answer that has no such series.
    """
    with open(told, "rb") as file:
        found = file.read()
    made = page_of(found, own, everybody)
    with open(target, "wb") as file:
        file.write(made)


def page(samples: Samples, *, everybody: bool) -> bytes:
    """The text of all series; for everybody only totals over all queues."""
    from prometheus_client.exposition import generate_latest  # needs a megabyte, and many servers are never asked

    found = totals(samples) if everybody else samples
    return generate_latest(_Source(found, everybody=everybody))


class _Source:
    """Stands for a registry of the client library, of which its writer asks the series alone."""

    def __init__(self, samples: Samples, *, everybody: bool) -> None:
        self._everybody = everybody
        self._series: dict[str, list[Value | Distribution]] = {}
        for each in samples.series():
            self._series.setdefault(each.family, []).append(each)

    def collect(self) -> Iterator[Metric]:
        """The metrics that have series, in the order of the table."""
        for name, family in FAMILIES.items():
            if name in self._series:
                yield self._metric(family, self._series[name])

    def _metric(self, family: Family, series: list[Value | Distribution]) -> Metric:
        labels = [each for each in family.labels if not (self._everybody and each == QUEUE)]
        if family.kind is Kind.HISTOGRAM:
            from prometheus_client import core

            histogram = core.HistogramMetricFamily(family.name, family.help, labels=labels)
            for each in series:
                assert isinstance(each, Distribution)
                histogram.add_metric(each.labels, _cumulated(family, each), each.sum)
            return histogram
        metric = _empty(family, labels)
        for each in series:
            assert isinstance(each, Value)
            metric.add_metric(each.labels, each.value)
        return metric


def _empty(
    family: Family, labels: list[str]
) -> core.CounterMetricFamily | core.GaugeMetricFamily | core.UnknownMetricFamily:
    from prometheus_client import core

    if family.kind is Kind.COUNTER:
        return core.CounterMetricFamily(family.name, family.help, labels=labels)
    made = core.UnknownMetricFamily if family.kind is Kind.UNTYPED else core.GaugeMetricFamily
    return made(family.name, family.help, labels=labels)


def _cumulated(family: Family, each: Distribution) -> list[tuple[str, float]]:
    total, found = 0, []
    for bound, count in zip((*map(str, family.buckets), "+Inf"), each.counts, strict=True):
        total += count
        found.append((bound, float(total)))
    return found
