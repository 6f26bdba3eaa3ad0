"""Read the rows that belong to one job: its tags, tasks, attempts and events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, func, select

from corral.model.records import EventRecord
from corral.model.runs import TaskRun
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.job_views import event_record

_AT_ONCE: Final = 500
"""Ids in one query at most."""
_MOST_EVENTS: Final = 10_000
_TASK: Final = msgspec.json.Decoder(TaskRun)
_tags, _tasks, _attempts, _events = tables.job_tags, tables.tasks, tables.attempts, tables.events


class JobRows(Database):
    """The rows of one job."""

    async def tags_of(self, job: str) -> tuple[str, ...]:
        """The current tags of one job."""
        return (await self.read(lambda connection: tags_of_jobs(connection, [job]))).get(job, ())

    async def tasks_of(self, job: str) -> list[TaskRun]:
        """All tasks of a job's current attempt, by role and index."""
        query = select(_tasks.c.run).where(_tasks.c.job == job).order_by(_tasks.c.role, _tasks.c.index)
        return await self.read(lambda connection: [_TASK.decode(text) for (text,) in connection.execute(query)])

    async def attempts_of(
        self, job: str, job_attempt: int, *, role: str | None = None, index: int | None = None
    ) -> list[Any]:
        """The attempts of the tasks of one job attempt, by role, index and number."""
        query = select(_attempts).where(_attempts.c.job == job, _attempts.c.job_attempt == job_attempt)
        if role is not None:
            query = query.where(_attempts.c.role == role, _attempts.c.index == index)
        query = query.order_by(_attempts.c.role, _attempts.c.index, _attempts.c.task_attempt)
        return await self.read(lambda connection: rows(connection, query))

    async def attempt_ends(self, job: str) -> dict[int, float]:
        """By job attempt, the time at which its last task ended."""
        query = (
            select(_attempts.c.job_attempt, func.max(_attempts.c.ended_at))
            .where(_attempts.c.job == job, _attempts.c.ended_at.is_not(None))
            .group_by(_attempts.c.job_attempt)
        )
        found = await self.read(lambda connection: rows(connection, query))
        return {row[0]: row[1] for row in found}

    async def events_of(self, job: str, *, kinds: tuple[str, ...] = ()) -> list[EventRecord]:
        """The last 10,000 events of a job (of some kinds), newest first."""
        query = select(_events).where(_events.c.job == job).order_by(_events.c.seq.desc()).limit(_MOST_EVENTS)
        if kinds:
            query = query.where(_events.c.kind.in_(kinds))
        return [event_record(row) for row in await self.read(lambda connection: rows(connection, query))]


def tags_of_jobs(connection: Connection, jobs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tags of some jobs by id, in alphabetic order."""
    found: dict[str, list[str]] = defaultdict(list)
    for begin in range(0, len(jobs), _AT_ONCE):
        query = select(_tags.c.job, _tags.c.tag).where(_tags.c.job.in_(jobs[begin : begin + _AT_ONCE]))
        for job, tag in connection.execute(query):
            found[job].append(tag)
    return {job: tuple(sorted(tags)) for job, tags in found.items()}
