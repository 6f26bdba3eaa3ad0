"""Fairness of a week: what queues were owed and got, Jain's index, finish-time ratios and waits.

What a queue is owed is its weighted max-min share of the devices that jobs held, hour by hour: of those, each queue with
demand is due what it deserves, and of the rest a part by its weight, never more than its jobs wanted. So the measure needs
no history of the machines, and says of what was given out who should have got it.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from math import ceil
from typing import NamedTuple

from corral.model.records import Record

HOUR = 3600
"""Seconds."""
WEEK_HOURS = 168
SHORT_SECONDS = 60.0
"""A job that needed less counts as one that needed so long, because short jobs have huge ratios."""


class Entitlement(NamedTuple):
    """What a queue may expect beside the others."""

    weight: float = 1.0
    deserved: float = 0.0
    """Devices."""


class FairnessRow(Record, frozen=True):
    """One queue at the top of the tree; the queues below it count for it."""

    queue: str
    owed: float = 0.0
    """Device-seconds."""
    got: float = 0.0
    """Device-seconds that its jobs held."""
    ratio: float | None = None
    """What it got divided by what it was owed; null where nothing was owed."""
    started: int = 0
    """Jobs that started in the week."""
    wait_p50: float | None = None
    """Seconds from submission to start; null where no job started."""
    wait_p95: float | None = None
    worst_finish_time_ratio: float | None = None
    """Of its jobs that succeeded in the week: seconds from submission to end, by those that it needed its devices for."""
    worst_job: str = ""


class JobFairness(Record, frozen=True):
    """One job that succeeded in the week."""

    job: str
    name: str
    user: str
    queue: str
    devices: float
    seconds: float
    """From submission to end."""
    needed_seconds: float
    """For which it needed its devices."""
    rho: float
    """Its finish-time fairness: `seconds` by those that it would have taken on an equal share of the devices that was its
    alone. 1 is as on such a share, above it is worse."""


class UserFairness(Record, frozen=True):
    """One user whose jobs succeeded in the week."""

    user: str
    jobs: int
    rho_p50: float
    worst_rho: float
    worst_job: str


class FairnessReport(Record, frozen=True):
    """The fairness of a week, which begins on Monday in UTC."""

    begin: str
    end: str
    items: tuple[FairnessRow, ...] = ()
    jain: float | None = None
    """Jain's index of the ratios, from 1/n (one queue got all) to 1 (all ratios are equal); null without a ratio."""
    worst_finish_time_ratio: float | None = None
    wait_p50: float | None = None
    wait_p95: float | None = None
    users: tuple[UserFairness, ...] = ()
    """The worst off first, at most 1,000."""
    jobs: tuple[JobFairness, ...] = ()
    """The worst off first: ten of everybody's, or at most 1,000 of one user's."""
    unknown: tuple[str, ...] = ()
    """What the records do not tell."""


class Hours:
    """Device-seconds of one queue by the hour of a week: held, and wanted by its live jobs."""

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.held = array("d", bytes(8 * WEEK_HOURS))
        self.wanted = array("d", bytes(8 * WEEK_HOURS))

    def add(self, into: array[float], start: float, end: float, devices: float) -> None:
        """Add devices from one time to another."""
        start, end = max(start - self.begin, 0.0), min(end - self.begin, float(WEEK_HOURS * HOUR))
        for hour in range(int(start // HOUR), ceil(end / HOUR)):
            into[hour] += devices * (min(end, (hour + 1) * HOUR) - max(start, hour * HOUR))


def jain(ratios: Sequence[float]) -> float | None:
    """The fairness index of Jain, Chiu and Hawe (DEC Research Report TR-301, 1984): (sum x)^2 / (n sum x^2)."""
    squares = sum(each * each for each in ratios)
    return sum(ratios) ** 2 / (len(ratios) * squares) if squares else None


def percentile(values: Sequence[float], part: float) -> float | None:
    """The nearest-rank percentile; None of no values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else None


def shares(
    amount: float, wanted: Mapping[str, float], entitled: Mapping[str, Entitlement], seconds: float
) -> dict[str, float]:
    """Divide device-seconds among queues: what each deserves in so many seconds, then the rest by weight.

    No queue gets more than it wants. If the deserved amounts exceed `amount`, they are cut in proportion. O(queues^2).
    """
    due = {name: min(want, entitled[name].deserved * seconds) for name, want in wanted.items()}
    whole = sum(due.values())
    if whole > amount:
        return {name: part * amount / whole for name, part in due.items()}
    left, open_queues = amount - whole, {name for name, want in wanted.items() if want > due[name]}
    while open_queues and left > 1e-9:
        weights = sum(entitled[name].weight for name in open_queues)
        parts = {
            name: left * (entitled[name].weight / weights if weights else 1 / len(open_queues)) for name in open_queues
        }
        full = {name for name in open_queues if wanted[name] - due[name] <= parts[name]}
        for name in full or open_queues:
            more = wanted[name] - due[name] if full else parts[name]
            due[name] += more
            left -= more
        open_queues = open_queues - full if full else set()
    return due


def owed(hours: Mapping[str, Hours], entitled: Mapping[str, Entitlement]) -> dict[str, float]:
    """What each queue is owed of the device-seconds that were held, hour by hour."""
    sums = dict.fromkeys(hours, 0.0)
    for hour in range(WEEK_HOURS):
        wanted = {name: max(each.wanted[hour], each.held[hour]) for name, each in hours.items()}
        wanted = {name: want for name, want in wanted.items() if want}
        held = sum(each.held[hour] for each in hours.values())
        for name, part in shares(held, wanted, entitled, HOUR).items():
            sums[name] += part
    return sums


def week_of(text: str, now: float) -> tuple[float, float]:
    """Begin and end of a week such as `2026-W48`; of the last whole week for "".

    Raises ValueError for what is no week since 1970.
    """
    if text:
        year, mark, number = text.partition("-W")
        if not (mark and year.isascii() and year.isdigit() and number.isascii() and number.isdigit() and len(text) < 9):
            raise ValueError(text)
        day = date.fromisocalendar(int(year), int(number), 1)
        begin = datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
        if begin < 0:
            raise ValueError(text)
    else:
        today = datetime.fromtimestamp(now, UTC)
        monday = date.fromordinal(today.toordinal() - today.weekday() - 7)
        begin = datetime(monday.year, monday.month, monday.day, tzinfo=UTC).timestamp()
    return begin, begin + WEEK_HOURS * HOUR
