"""A short history of samples as the series that rules read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from corral.model.alerts.matchers import Matcher
from corral.model.metrics.families import FAMILIES, Kind
from corral.model.metrics.samples import Distribution, Samples, Value
from corral.monitor.rules.memory_series import MemorySeries
from corral.monitor.rules.series import NAME, Labels, labels_of, selected

JOB: Final = "corral"
"""The label `job` of the server's series, as examples/prometheus/prometheus.yml names it."""
AGENTS: Final = "corral-node-agent"
"""The label `job` of the series of other machines, whose label `instance` is the node."""

_NOTHING: Final[Mapping[str, Samples]] = MappingProxyType({})


class SampleSeries(MemorySeries):
    """Keeps those series of samples that some rule reads, for as long as a rule looks back."""

    def __init__(self, selectors: Sequence[tuple[Matcher, ...]], past: float, instance: str) -> None:
        """`past` is in seconds; `instance` is the label of that name of all series."""
        super().__init__(past)
        self._selectors = selectors
        self._shared = {"job": JOB, "instance": instance}
        self._read: dict[str, bool] = {}
        """By family, whether a rule can read a series of it."""

    def read(self, samples: Samples, at: float, machines: Mapping[str, Samples] = _NOTHING) -> None:
        """Add the samples of one time, in seconds since 1970, and those of other machines by node."""
        found = dict(self._of(samples, self._shared))
        for name in ("up", "corral_scheduler_up"):
            found |= self._wanted(labels_of({NAME: name, **self._shared}), 1.0)
        for node, told in machines.items():
            shared = {"job": AGENTS, "instance": node}
            found |= self._wanted(labels_of({NAME: "up", **shared}), 1.0)
            found |= dict(self._of(told, shared))
        self.add(found, at)

    def _of(self, samples: Samples, shared: dict[str, str]) -> Iterator[tuple[Labels, float]]:
        read = (each for each in samples.series() if self._is_read(each.family))
        for labels, value in _series_of(read, shared):
            yield from self._wanted(labels, value).items()

    def _wanted(self, labels: Labels, value: float) -> dict[Labels, float]:
        return {labels: value} if any(selected(labels, each) for each in self._selectors) else {}

    def _is_read(self, family: str) -> bool:
        """Whether a rule can read a series of a family, by its name alone: a page has many that none reads."""
        known = self._read.get(family)
        if known is None:
            suffixes = ("_bucket", "_count", "_sum") if FAMILIES[family].kind is Kind.HISTOGRAM else ("",)
            names = [f"{family}{suffix}" for suffix in suffixes]
            of_name = [[each for each in matchers if each.label == NAME] for matchers in self._selectors]
            known = any(all(one.matches(name) for one in matchers) for matchers in of_name for name in names)
            self._read[family] = known
        return known


def _series_of(found: Iterable[Value | Distribution], shared: dict[str, str]) -> Iterator[tuple[Labels, float]]:
    for each in found:
        family = FAMILIES[each.family]
        labels = {**dict(zip(family.labels, each.labels, strict=True)), **shared}
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
