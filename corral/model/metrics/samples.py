"""The values of metrics at one time, as control tells them to front."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from corral.model.metrics.families import FAMILIES, QUEUE


class Value(NamedTuple):
    """One series of a counter or gauge; `labels` are the values of its family's labels, in their order."""

    family: str
    labels: tuple[str, ...]
    value: float


class Distribution(NamedTuple):
    """One series of a histogram."""

    family: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    """Observations by bucket, the infinite one last; each is counted in one bucket."""
    sum: float


class Samples(msgspec.Struct, frozen=True):
    """All series of one source."""

    values: tuple[Value, ...] = ()
    distributions: tuple[Distribution, ...] = ()

    def series(self) -> Iterator[Value | Distribution]:
        """All series."""
        yield from self.values
        yield from self.distributions

    def __add__(self, other: Samples) -> Samples:
        return Samples(self.values + other.values, self.distributions + other.distributions)


def totals(samples: Samples) -> Samples:
    """The samples without the label `queue`: summed over all queues, and left out where a sum has no meaning."""
    values: dict[tuple[str, tuple[str, ...]], float] = {}
    for family, labels, value in samples.values:
        if FAMILIES[family].in_totals:
            key = family, _without_queue(family, labels)
            values[key] = values.get(key, 0.0) + value
    distributions: dict[tuple[str, tuple[str, ...]], Distribution] = {}
    for each in samples.distributions:
        if FAMILIES[each.family].in_totals:
            key = each.family, _without_queue(each.family, each.labels)
            distributions[key] = _sum(distributions.get(key), each._replace(labels=key[1]))
    return Samples(tuple(Value(*key, value) for key, value in values.items()), tuple(distributions.values()))


def _without_queue(family: str, labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value for name, value in zip(FAMILIES[family].labels, labels, strict=True) if name != QUEUE)


def _sum(one: Distribution | None, other: Distribution) -> Distribution:
    if one is None:
        return other
    counts = tuple(a + b for a, b in zip(one.counts, other.counts, strict=True))
    return one._replace(counts=counts, sum=one.sum + other.sum)
