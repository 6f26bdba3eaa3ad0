"""A short history of samples as the series that rules read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from corral.model.alerts.matchers import Matcher, match_all
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.samples import Distribution, Samples
from corral.monitor.rules.memory_series import MemorySeries
from corral.monitor.rules.series import NAME, Labels, labels_of

JOB: Final = "corral"
"""The label `job` of the server's series, as examples/prometheus/prometheus.yml names it."""
AGENTS: Final = "corral-node-agent"
"""The label `job` of the series of other machines, whose label `instance` is the node."""

Conditions = tuple[Matcher, ...]
_NOTHING: Final[Mapping[str, Samples]] = MappingProxyType({})


class SampleSeries(MemorySeries):
    """Keeps those series of samples that some rule reads, for as long as a rule looks back."""

    def __init__(self, selectors: Sequence[tuple[Matcher, ...]], past: float, instance: str) -> None:
        """`past` is in seconds; `instance` is the label of that name of all series."""
        super().__init__(past)
        self._selectors = selectors
        self._shared = {"job": JOB, "instance": instance}
        self._conditions: dict[str, tuple[Conditions, ...]] = {}
        """By name of a metric, the other conditions of those selectors that choose this name."""

    def read(self, samples: Samples, at: float, machines: Mapping[str, Samples] = _NOTHING) -> None:
        """Add the samples of one time, in seconds since 1970, and those of other machines by node."""
        found = dict(self._selected_of(samples, self._shared, ("up", "corral_scheduler_up")))
        for node, told in machines.items():
            found |= dict(self._selected_of(told, {"job": AGENTS, "instance": node}, ("up",)))
        self.add(found, at)

    def _selected_of(
        self, samples: Samples, shared: dict[str, str], up: Sequence[str]
    ) -> Iterator[tuple[Labels, float]]:
        """The series that some rule reads; those named `up` are 1."""
        for name in up:
            yield from self._chosen(name, shared, 1.0)
        for value in samples.values:
            if self._read(value.family):  # a page has many series that no rule reads
                labels = dict(zip(FAMILIES[value.family].labels, value.labels, strict=True))
                yield from self._chosen(value.family, {**labels, **shared}, value.value)
        for each in samples.distributions:
            family = FAMILIES[each.family]
            labels = {**dict(zip(family.labels, each.labels, strict=True)), **shared}
            for name, more, number in _buckets(each, family.buckets):
                yield from self._chosen(name, {**labels, **more}, number)

    def _chosen(self, name: str, labels: dict[str, str], value: float) -> Iterator[tuple[Labels, float]]:
        if any(match_all(each, labels) for each in self._read(name)):
            yield labels_of({**labels, NAME: str(name)}), value

    def _read(self, name: str) -> tuple[Conditions, ...]:
        known = self._conditions.get(name)
        if known is None:
            chosen = (each for each in self._selectors if all(m.matches(name) for m in each if m.label == NAME))
            known = tuple(tuple(m for m in each if m.label != NAME) for each in chosen)
            self._conditions[name] = known
        return known


def _buckets(each: Distribution, bounds: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
    """The names, further labels and values of a histogram's series."""
    total = 0
    for bound, count in zip((*map(str, bounds), "+Inf"), each.counts, strict=True):
        total += count
        yield f"{each.family}_bucket", {"le": bound}, float(total)
    yield f"{each.family}_count", {}, float(total)
    yield f"{each.family}_sum", {}, each.sum
