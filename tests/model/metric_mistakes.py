"""Compare samples with the table of metrics."""

from __future__ import annotations

from collections.abc import Iterable

from corral.model.metrics.families import FAMILIES, Kind
from corral.model.metrics.samples import Distribution, Samples


def mistakes(samples: Samples) -> Iterable[str]:
    """What does not agree with the table of metrics, a sentence each."""
    seen = set[tuple[str, tuple[str, ...]]]()
    for each in samples.series():
        family = FAMILIES.get(each.family)
        if family is None:
            yield f"{each.family} is not in the table."
        elif len(each.labels) != len(family.labels):
            yield f"{each.family} has the labels {', '.join(family.labels)}, not {each.labels}."
        elif (family.kind is Kind.HISTOGRAM) != isinstance(each, Distribution):
            yield f"{each.family} is a {family.kind}."
        elif isinstance(each, Distribution) and len(each.counts) != len(family.buckets) + 1:
            yield f"{each.family} has {len(family.buckets) + 1} buckets, not {len(each.counts)}."
        elif (each.family, each.labels) in seen:
            yield f"{each.family} has the series {each.labels} twice."
        seen.add((each.family, each.labels))
