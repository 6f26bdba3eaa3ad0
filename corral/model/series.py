"""Questions for series and their answers: the values of metrics over time."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.model.records import Record

MOST_SERIES: Final = 100
"""Series of one answer."""
MOST_POINTS: Final = 1500
"""Steps of one answer."""


class SeriesQuestion(msgspec.Struct, frozen=True):
    """Which series, and when."""

    begin: float
    """Seconds since 1970."""
    end: float
    step: int
    """Seconds; a multiple of 15."""
    families: tuple[str, ...] = ()
    """None are all families of the job."""
    job: str = ""
    """The id of a job; its series alone."""
    labels: dict[str, str] = {}
    """Only series with these values of labels."""

    @property
    def steps(self) -> int:
        """How many steps lie between its times."""
        return int(self.end // self.step) - int(self.begin // self.step)


class SeriesView(Record, frozen=True):
    """One series; its columns have one value for each step, and null where there is none."""

    family: str
    labels: dict[str, str]
    mean: tuple[float | None, ...]
    low: tuple[float | None, ...]
    """The least value of each step."""
    high: tuple[float | None, ...]
    """The greatest value of each step."""


class SeriesAnswer(Record, frozen=True):
    """Series on a common grid of times."""

    begin: str
    """When the first step begins."""
    end: str
    """When the last step ends."""
    step: int
    """The length of a step in seconds."""
    items: tuple[SeriesView, ...] = ()
    left_out: int = 0
    """Further series that fit the question."""
