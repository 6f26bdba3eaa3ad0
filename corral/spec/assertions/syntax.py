"""What an assertion is made of: metrics of jobs, numbers, `base`, arithmetic, and one comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from corral.kernel.units import format_duration


class Unit(Enum):
    """What a value counts."""

    NUMBER = "number"
    DURATION = "duration"
    """In seconds."""


class Kind(NamedTuple):
    """One metric that assertions may name."""

    unit: Unit
    meaning: str
    """For documentation."""
    statistic: str = ""
    """The statistic that counts where none is named; "": one must be named."""
    by_job: bool = True
    """Whether each job has a value, of which statistics are taken; else all jobs have one value together."""


METRICS: Final[dict[str, Kind]] = {
    "wait": Kind(Unit.DURATION, "from the submission of a job to its first start"),
    "run": Kind(Unit.DURATION, "from the first start of a job to its end"),
    "completion": Kind(Unit.DURATION, "from the submission of a job to its end"),
    "slowdown": Kind(Unit.NUMBER, "`completion` over the time that the job takes alone"),
    "rho": Kind(Unit.NUMBER, "finish-time fairness"),
    "preemptions": Kind(Unit.NUMBER, "starts of a job after its first one", "sum"),
    "lost": Kind(Unit.DURATION, "device time of work that interruptions of a job cost", "sum"),
    "utilisation": Kind(Unit.NUMBER, "the part of all device time that the jobs held", by_job=False),
}
"""The metrics by name."""
STATISTICS: Final = ("mean", "min", "max", "sum", "median")
"""The named statistics; pN is the Nth percentile."""
FILTERS: Final = ("queue", "user", "size")


@dataclass(frozen=True)
class Size:
    """From how many devices to how many a job asks for; None: no bound."""

    least: int | None
    most: int | None

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        return "..".join("" if end is None else str(end) for end in (self.least, self.most))

    def __contains__(self, devices: int) -> bool:
        return (self.least is None or self.least <= devices) and (self.most is None or devices <= self.most)


@dataclass(frozen=True)
class Metric:
    """A statistic of a metric over the jobs that the filters leave."""

    name: str
    statistic: str = ""
    """"": the metric has one value for all jobs."""
    queue: str = ""
    user: str = ""
    size: Size | None = None
    columns: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """Where the name and each filter's value stand in the text, counted from 1."""

    @property
    def unit(self) -> Unit:
        """What its value counts."""
        return METRICS[self.name].unit

    def column_of(self, part: str) -> int:
        """The column of `metric` or of a filter's value."""
        return dict(self.columns).get(part, 1)

    def __str__(self) -> str:
        filters = [f"{name}={_quoted(str(value))}" for name in FILTERS if (value := getattr(self, name))]
        statistic = f".{self.statistic}" if self.statistic else ""
        return self.name + statistic + (f"({', '.join(filters)})" if filters else "")


@dataclass(frozen=True)
class Number:
    """A number, or a duration in seconds."""

    value: float
    unit: Unit = Unit.NUMBER

    def __str__(self) -> str:
        if self.unit is Unit.DURATION:
            return format_duration(round(self.value))
        return f"{self.value:.12f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Base:
    """The left side of the comparison, measured under the base."""

    def __str__(self) -> str:
        return "base"


@dataclass(frozen=True)
class Operation:
    """Two terms and one of `+ - * /`."""

    operator: str
    left: Term
    right: Term
    column: int = field(default=1, compare=False)
    """Where the operator stands in the text."""

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


Term: TypeAlias = Metric | Number | Base | Operation


@dataclass(frozen=True)
class Assertion:
    """Two terms and one of `<= < >= > ==`."""

    text: str = field(compare=False)
    """As it was written."""
    left: Term
    comparison: str
    right: Term
    unit: Unit = Unit.NUMBER
    """Of both sides."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics that it names."""
        return tuple(each for side in (self.left, self.right) for each in leaves(side) if isinstance(each, Metric))

    @property
    def needs_base(self) -> bool:
        """Whether it compares with the base."""
        return any(isinstance(each, Base) for each in leaves(self.right))

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"


def leaves(term: Term) -> Iterator[Metric | Number | Base]:
    """The metrics, numbers and `base` of a term, from left to right."""
    if isinstance(term, Operation):
        yield from leaves(term.left)
        yield from leaves(term.right)
    else:
        yield term


def _quoted(text: str) -> str:
    return text if all(each.isalnum() or each in "._@/-" for each in text) else f'"{text}"'
