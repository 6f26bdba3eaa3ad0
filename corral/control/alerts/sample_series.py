"""A short history of samples as the series that rules read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from corral.control.alerts.reported_figures import Named
from corral.model.alerts.matchers import Matcher, match_all
from corral.model.metrics.families import FAMILIES
from corral.model.metrics.samples import Distribution, Samples
from corral.monitor.rules.memory_series import MemorySeries
from corral.monitor.rules.series import NAME, Labels, Point, labels_of

JOB: Final = "corral"
"""The label `job` of the server's series, as examples/prometheus/prometheus.yml names it."""
AGENTS: Final = "corral-node-agent"
"""The label `job` of the series of other machines, whose label `instance` is the node."""

_FILL_SECONDS: Final = 300.0
"""Seconds after the first evaluation in which series that appear have their past read: agents may answer late."""

History = Callable[[Collection[Labels], float], Mapping[Labels, Sequence[Point]]]
"""The points of series before a time."""
Conditions = tuple[Matcher, ...]
_NOTHING: Final[Mapping[str, Samples]] = MappingProxyType({})


class SampleSeries(MemorySeries):
    """Keeps those series of samples that some rule reads, for as long as a rule looks back."""

    def __init__(
        self, selectors: Sequence[tuple[Matcher, ...]], past: float, instance: str, history: History | None = None
    ) -> None:
        """`past` is in seconds; `instance` is the label of that name of all series.

        `history` tells what was kept of series that are first seen soon after the beginning.
        """
        super().__init__(past)
        self._selectors = selectors
        self._shared = {"job": JOB, "instance": instance}
        self._history = history
        self._fill_until: float | None = None
        self._conditions: dict[str, tuple[Conditions, ...]] = {}
        """By name of a metric, the other conditions of those selectors that choose this name."""

    def read(
        self,
        samples: Samples,
        at: float,
        machines: Mapping[str, Samples] = _NOTHING,
        reported: Iterable[Named] = (),
    ) -> None:
        """Add the samples of one time, in seconds since 1970, those of other machines by node, and what jobs reported."""
        found = dict(self._selected_of(samples, self._shared, ("up", "corral_scheduler_up")))
        for node, told in machines.items():
            found |= dict(self._selected_of(told, {"job": AGENTS, "instance": node}, ("up",)))
        for name, labels, value in reported:
            found |= dict(self._chosen(name, {**labels, **self._shared}, value))
        if self._history is not None:
            self._fill(self._history, found, at)
        self.add(found, at)

    def _fill(self, history: History, found: Mapping[Labels, float], at: float) -> None:
        """Read the past of those series that are new."""
        if self._fill_until is None:
            self._fill_until = at + _FILL_SECONDS
        if at > self._fill_until:
            self._history = None
            return
        for labels, points in history([each for each in found if each not in self], at).items():
            self.fill(labels, points)

    def reads(self, names: Iterable[str]) -> bool:
        """Whether any rule reads a metric of one of these names."""
        return any(self._read(name) for name in names)

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
