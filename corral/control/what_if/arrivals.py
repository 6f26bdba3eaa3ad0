"""Future arrivals, drawn from those of a journal: an hour to come is like the same hour of the week before."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import ceil
from operator import attrgetter
from random import Random
from typing import Final, NamedTuple

import msgspec

from corral.control.core.intents import IntentsRead
from corral.control.core.new_jobs import stored_job
from corral.control.journal.records import Step, decoded, time_of
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import job_id
from corral.model.accounts import User
from corral.model.store_writes import IntentKind, LiveJob, NewJob
from corral.model.what_if import DAY

MOST_ARRIVALS: Final = 20_000
"""The most jobs that arrive in one course."""
_HOUR: Final = 3600.0
_WEEK: Final = 7 * DAY
_LOOKED_BACK: Final = 4 * _WEEK
_NUMBERS_FROM: Final = 1 << 19
"""The first number of an id of a job that arrives; those that a question submits have lower ones."""


class Arrived(NamedTuple):
    """A job that was submitted."""

    at: float
    job: LiveJob
    groups: tuple[str, ...]


class Arrivals(NamedTuple):
    """The jobs that a journal has, by their submission, and what was played of it."""

    jobs: tuple[Arrived, ...]
    since: float
    """When the journal begins, in seconds since 1970; at most four weeks ago."""

    @property
    def users(self) -> tuple[User, ...]:
        """The accounts of those who submitted them."""
        return tuple({each.job.user: User(each.job.user, groups=each.groups) for each in self.jobs}.values())


def recorded_arrivals(records: Iterable[bytes], now: float) -> Arrivals:
    """The jobs that a journal's steps submit, those that another controller runs left out; O(records).

    Raises InvalidInput where it has no whole hour.
    """
    found: list[Arrived] = []
    since = now
    for data in records:
        at = time_of(data)
        if not now - _LOOKED_BACK <= at <= now:
            continue
        since = min(since, at)
        record = decoded(data)
        if isinstance(record, Step):
            for each in record.inputs:
                if isinstance(each, IntentsRead):
                    found += _submitted(each, at)
    if now - since < _HOUR:
        message = "The server's journal has no whole hour from which arrivals could be drawn; ask without them."
        raise InvalidInput("no-arrivals", message)
    return Arrivals(tuple(sorted(found, key=attrgetter("at"))), since)


def drawn(arrivals: Arrivals, now: float, horizon: float, seed: int, queues: Iterable[str]) -> Iterator[NewJob]:
    """The jobs that arrive until the horizon in the course of a seed, those of other than these queues left out.

    For each hour to come one of the hours like it is drawn, and as many of their jobs, with replacement, as came in it.
    """
    draw, known, number = Random(f"arrivals {seed}"), frozenset(queues), 0
    times = [each.at for each in arrivals.jobs]
    for hour in range(ceil(horizon / _HOUR)):
        begin = now + hour * _HOUR
        alike = [arrivals.jobs[bisect_left(times, at):bisect_left(times, at + _HOUR)]
                 for at in _hours_like(begin, now, arrivals.since)]  # fmt: skip
        pool = [each for jobs in alike for each in jobs]
        for _ in draw.choice(alike) if pool else ():
            chosen = draw.choice(pool)
            at = begin + draw.uniform(0.0, _HOUR)
            if chosen.job.queue in known and at < now + horizon and number < MOST_ARRIVALS:
                number += 1
                yield _new(chosen.job, at, number)


def _hours_like(begin: float, now: float, since: float) -> list[float]:
    """When the hours of the journal began that are like one to come: of the same hour of the week, else of the day."""
    for step in (_WEEK, DAY, _HOUR):
        last = begin - step * ceil((begin + _HOUR - now) / step)
        found = [at for back in range(ceil(_LOOKED_BACK / step)) if (at := last - back * step) >= since]
        if found:
            return found
    return []


def _submitted(read: IntentsRead, at: float) -> Iterator[Arrived]:
    for each in read.intents:
        job = read.jobs.get(each.job)
        if each.kind == IntentKind.SUBMITTED and job is not None and not job.run.external:
            yield Arrived(at, job, read.groups.get(job.user, ()))


def _new(job: LiveJob, at: float, number: int) -> NewJob:
    """The job once more, at another time, without those that it depended on."""
    document = json.loads(job.doc)
    document["spec"]["dependsOn"] = []
    identity = job_id(int(at * 1000), _NUMBERS_FROM + number)
    text = msgspec.json.encode(document).decode()
    return stored_job(
        identity, at, text, name=job.name, user=job.user, queue=job.queue, priority=job.priority,
        job_type=job.summary.job_type,
    )  # fmt: skip
