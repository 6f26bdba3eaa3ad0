"""The latest ended jobs, from which run times are drawn, read from the store a page at a time."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final, Protocol

from corral.model.records import JobFilter, JobSummary, Page
from corral.model.what_if import PastRun

PAST_RUNS: Final = 5000
"""The latest ended jobs from which run times are drawn, at most."""
_PAGE: Final = 1000
_NEW_ONES: Final = 50
"""Jobs in the first page of a later read, which most often has all new ones."""


class EndedJobs(Protocol):
    """The part of the store that lists jobs."""

    async def list_jobs(self, wanted: JobFilter, *, limit: int = 50, after_cursor: str = "") -> Page[JobSummary]:
        """One page of the jobs that match a filter."""
        ...


class PastRuns:
    """Remembers the runs that it has read; a later read takes only what has ended since."""

    def __init__(self, store: EndedJobs) -> None:
        self._store = store
        self._runs: dict[str, PastRun | None] = {}
        """By job, the latest first; None for one that ended without a run time."""
        self._reading = asyncio.Lock()

    async def read(self) -> tuple[PastRun, ...]:
        """The runs of jobs that succeeded, the latest first, at most `PAST_RUNS`."""
        async with self._reading:
            found: dict[str, PastRun | None] = {}
            after, limit = "", _NEW_ONES if self._runs else _PAGE
            while len(found) < PAST_RUNS:
                wanted = JobFilter(phases=("succeeded",), order="ended")
                page = await self._store.list_jobs(wanted, limit=limit, after_cursor=after)
                new = {each.id: _past_run(each) for each in page.items if each.id not in self._runs}
                found |= new
                if page.next is None or len(new) < len(page.items):
                    break
                after, limit = page.next, _PAGE
            runs = [*found.items(), *self._runs.items()]
            self._runs = dict(runs[:PAST_RUNS])
            return tuple(run for run in self._runs.values() if run is not None)


def _past_run(job: JobSummary) -> PastRun | None:
    if job.started_at is None or job.ended_at is None:
        return None
    seconds = (datetime.fromisoformat(job.ended_at) - datetime.fromisoformat(job.started_at)).total_seconds()
    return PastRun(job.user, job.name, job.queue, float(job.devices), seconds) if seconds > 0 else None
