"""A short history of samples as the series that rules read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from corral.model.alerts.matchers import Matcher
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.samples import Distribution, Samples, Value
from corral.monitor.rules.memory_series import MemorySeries
from corral.monitor.rules.series import NAME, Labels, labels_of, selected

JOB: Final = "corral"
"""The label `job` of all series, as examples/prometheus/prometheus.yml names the server."""


class SampleSeries(MemorySeries):
    """Keeps those series of samples that some rule reads, for as long as a rule looks back."""

    def __init__(self, selectors: Sequence[tuple[Matcher, ...]], past: float, instance: str) -> None:
        """`past` is in seconds; `instance` is the label of that name of all series."""
        super().__init__(past)
        self._selectors = selectors
        self._shared = {"job": JOB, "instance": instance}

    def read(self, samples: Samples, at: float) -> None:
        """Add the samples of one time, in seconds since 1970."""
        found = {}
        for labels, value in self._series_of(samples):
            if any(selected(labels, each) for each in self._selectors):
                found[labels] = value
        self.add(found, at)

    def _series_of(self, samples: Samples) -> Iterator[tuple[Labels, float]]:
        yield labels_of({NAME: "up", **self._shared}), 1.0
        yield labels_of({NAME: "corral_scheduler_up", **self._shared}), 1.0
        for each in samples.series():
            family = FAMILIES[each.family]
            labels = {**dict(zip(family.labels, each.labels, strict=True)), **self._shared}
            if isinstance(each, Value):
                yield labels_of({**labels, NAME: str(family.name)}), each.value
            else:
                yield from _buckets(each, labels, family.buckets)


def _buckets(each: Distribution, labels: dict[str, str], bounds: Sequence[float]) -> Iterator[tuple[Labels, float]]:
    total = 0
    for bound, count in zip((*map(str, bounds), "+Inf"), each.counts, strict=True):
        total += count
        yield labels_of({**labels, NAME: f"{each.family}_bucket", "le": bound}), float(total)
    yield labels_of({**labels, NAME: f"{each.family}_count"}), float(total)
    yield labels_of({**labels, NAME: f"{each.family}_sum"}), each.sum
