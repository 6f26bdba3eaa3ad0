"""How long the jobs of queues waited for their start, by week."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, select

from corral.model.fairness import percentile
from corral.model.queue_history import WEEK
from corral.store import tables
from corral.store.database import Database

_PART = 1000
"""Rows in memory at once."""
_jobs = tables.jobs


class Waits(NamedTuple):
    """Jobs that started in a week, and the percentiles of their waits in seconds."""

    started: int
    p50: float | None
    p95: float | None


class QueueWaits(Database):
    """Waits of stored jobs."""

    async def waits_by_week(self, queues: Collection[str], begin: float) -> dict[int, Waits]:
        """The waits of jobs of some queues that started since a time, by the number of the week after it."""
        return await self.read(lambda connection: _waits(connection, queues, begin))


def _waits(connection: Connection, queues: Collection[str], begin: float) -> dict[int, Waits]:
    query = select(_jobs.c.created_at, _jobs.c.started_at)
    query = query.where(_jobs.c.queue.in_(list(queues)), _jobs.c.started_at >= begin)
    found: dict[int, array[float]] = defaultdict(lambda: array("d"))
    for row in connection.execution_options(yield_per=_PART).execute(query):
        found[int((row.started_at - begin) // WEEK)].append(max(0.0, row.started_at - row.created_at))
    return {week: Waits(len(waits), percentile(waits, 0.5), percentile(waits, 0.95)) for week, waits in found.items()}
