"""One metric: its name, type, labels and meaning."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

QUEUE: Final = "queue"
"""The label whose values people have chosen; pages for everybody have sums without it."""
PERSONAL: Final = frozenset({QUEUE, "username", "job_name", "virtual_cluster"})
"""Labels that name people, what they do, or whom they belong to."""


class Kind(StrEnum):
    """Prometheus' types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "untyped"
    """A counter whose given name does not end in `_total`, which the text format asks of one."""


class Family(NamedTuple):
    """One metric with all its series."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets, without the infinite one."""
    in_totals: bool = True
    """Whether its sum over all queues has a meaning, and is told to everybody."""
    named_by: str = "Corral"
    """Whose name it is: one given by others keeps their form."""
    kept: bool = True
    """Whether the store of series keeps it; not where other series tell the same with fewer labels."""

    @property
    def names_somebody(self) -> bool:
        """Whether its labels are told to administrators only."""
        return not PERSONAL.isdisjoint(self.labels)
