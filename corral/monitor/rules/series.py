"""Series that rules read: their labels, their points, and the source that gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from corral.model.alerts.matchers import Matcher, match_all

NAME: Final = "__name__"
"""The label that holds the name of a metric."""

Labels = tuple[tuple[str, str], ...]
"""The labels of a series, sorted by name. An empty value is an absent label, so that none is empty."""

Point = tuple[float, float | None]
"""Time in seconds since 1970, and the value; None where the series ends until its next value."""


class Series(NamedTuple):
    """A series within a range, its points in the order of time."""

    labels: Labels
    points: tuple[Point, ...]


class SeriesSource(Protocol):
    """Series over a bounded past."""

    def select(self, matchers: tuple[Matcher, ...], begin: float, end: float) -> Iterable[Series]:
        """All series that meet all conditions, with their points from `begin` to `end`, both included.

        Times are in seconds since 1970. A metric that does not exist gives nothing.
        """
        ...


def labels_of(labels: Mapping[str, str]) -> Labels:
    """Labels of a mapping, without the empty ones."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def without(labels: Labels, *names: str) -> Labels:
    """The labels without some of them."""
    return tuple(pair for pair in labels if pair[0] not in names)


def only(labels: Labels, names: Iterable[str]) -> Labels:
    """Those labels alone."""
    kept = frozenset(names)
    return tuple(pair for pair in labels if pair[0] in kept)


def selected(labels: Labels, matchers: tuple[Matcher, ...]) -> bool:
    """Whether a series with these labels meets all conditions."""
    return match_all(matchers, dict(labels))
