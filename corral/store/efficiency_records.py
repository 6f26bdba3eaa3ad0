"""What the attempts of jobs held by role, for reports on efficiency."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from corral.model.efficiency.verdict import JobHeld, RoleHeld
from corral.model.usage import Use
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import clean
from corral.store.usage_records import amounts_between, bounds_between, ran_between

_jobs, _attempts = tables.jobs, tables.attempts
_ABOUT: Final = (_jobs.c.id, _jobs.c.name, _jobs.c.user, _jobs.c.queue, _jobs.c.phase, _jobs.c.longest_seconds)
_AT_ONCE: Final = 500
_ENDLESS: Final = 1e15
"""A time that no attempt reaches, in seconds since 1970."""


class EfficiencyRecords(Database):
    """What jobs held."""

    async def held_between(self, begin: float, end: float, jobs: Sequence[str], *, now: float) -> list[JobHeld]:
        """What some jobs held between two times, in seconds since 1970, in the order of `jobs`.

        What runs is counted to `now`. Jobs of which no attempt ran in that time are left out.
        """
        named = list(dict.fromkeys(clean(job) for job in jobs))
        query = _by_role(begin, min(end, now), now)

        def run(connection: Connection) -> list[Any]:
            found: list[Any] = []
            for part in range(0, len(named), _AT_ONCE):
                found += rows(connection, query.where(_jobs.c.id.in_(named[part : part + _AT_ONCE])))
            return found

        by_job = defaultdict(list)
        for row in await self.read(run):
            by_job[row.id].append(row)
        return [_held(by_job[job]) for job in named if job in by_job]


def _by_role(begin: float, end: float, now: float) -> Select[Any]:
    """A line for each role of each job."""
    first, last = bounds_between(begin, end, now)
    began, over = bounds_between(0.0, _ENDLESS, now)
    sums = [func.sum(each).label(each.name) for each in amounts_between(begin, end, now)]
    return (
        select(
            *_ABOUT,
            _attempts.c.role,
            func.count(_attempts.c.index.distinct()).label("tasks"),
            func.min(first).label("begun"),
            func.max(last).label("ended"),
            func.max(over - began).label("longest"),
            func.max(_attempts.c.millis).label("millis"),
            func.max(_attempts.c.cpu_millis).label("cpu_millis"),
            func.max(_attempts.c.memory_bytes).label("memory_bytes"),
            *sums,
        )
        .select_from(_attempts)
        .join(_jobs, _jobs.c.id == _attempts.c.job)
        .outerjoin(tables.attempt_use, tables.attempt_use.c.attempt == _attempts.c.id)
        .where(*ran_between(begin, end, now))
        .group_by(*_ABOUT, _attempts.c.role)
        .order_by(_jobs.c.id, _attempts.c.role)
    )


def _held(found: Sequence[Any]) -> JobHeld:
    """One job, from the lines of its roles."""
    job = found[0]
    roles = tuple(
        RoleHeld(
            row.role,
            row.tasks,
            Use(*(float(getattr(row, name)) for name in Use._fields)),
            row.millis,
            row.cpu_millis,
            row.memory_bytes,
        )
        for row in found
    )
    return JobHeld(
        job.id,
        job.name,
        job.user,
        job.queue,
        job.phase,
        min(row.begun for row in found),
        max(row.ended for row in found),
        max(row.longest for row in found),
        job.longest_seconds,
        roles,
    )
