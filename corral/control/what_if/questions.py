"""Answer what-if questions: prepare them in control's process, play the courses in forked ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Final, Protocol

import msgspec

from corral.control.configuration import Presenter
from corral.control.core.core import Core
from corral.control.what_if.changes import Changes, changes_of, submitted
from corral.control.what_if.course import play
from corral.control.what_if.forked import USUAL, Fork, ForkLimits
from corral.kernel.errors import Unavailable
from corral.kernel.units import DEVICE
from corral.model.phases import Phase, phase
from corral.model.records import JobFilter, JobSummary, Page
from corral.model.what_if import Course, Courses, PastRun, Question, WaitingJob
from corral.scheduler import Policy

PAST_RUNS: Final = 5000
"""The latest ended jobs from which run times are drawn, at most."""
_PAGE: Final = 1000
_PATIENCE: Final = 20.0
"""Seconds that a question waits for the one before it."""
_RETRY: Final = 10


class EndedJobs(Protocol):
    """The part of the store that lists jobs."""

    async def list_jobs(self, wanted: JobFilter, *, limit: int = 50, after_cursor: str = "") -> Page[JobSummary]:
        """One page of the jobs that match a filter."""
        ...


class _Pair(msgspec.Struct):
    """The courses of some seeds."""

    before: list[Course]
    after: list[Course]


class Questions:
    """Answers one question at a time; the next one waits for a while, and is then refused."""

    def __init__(
        self,
        store: EndedJobs,
        core: Callable[[], Core],
        now: Callable[[], float],
        *,
        default: Callable[[], Policy],
        presenter: Presenter,
        limits: ForkLimits = USUAL,
    ) -> None:
        """`core` gives the present core between two of its steps; `default` is the policy that no document names."""
        self._store = store
        self._core = core
        self._now = now
        self._default = default
        self._presenter = presenter
        self._limits = limits
        self._turn = asyncio.Lock()

    async def answer(self, question: Question) -> Courses:
        """Play the courses that a question asks for.

        Raises Unavailable `question-busy` while others are answered, the errors of `Fork.answer`, and what the changes are
        refused with.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._turn.acquire()
        except TimeoutError:
            message = "Another what-if question is being answered; ask again in a moment."
            raise Unavailable("question-busy", message, retry_after=_RETRY) from None
        try:
            past = await self._past_runs()
            return await self._answered(question, past)
        finally:
            self._turn.release()

    async def _answered(self, question: Question, past: Sequence[PastRun]) -> Courses:
        core, now = self._core(), self._now()
        jobs, cursor = _asked_jobs(core, question, now), core.intents.cursor
        # Every fork is made before the next await, so all children have the same core.
        forks: list[Fork] = []
        try:
            for seeds in _shared(question.seeds, os.cpu_count() or 1):
                forks.append(Fork(partial(self._played, core, question, past, now, seeds), self._limits))
            found = await asyncio.gather(*(fork.answer() for fork in forks))
        finally:
            await asyncio.gather(*(fork.end() for fork in forks))
        pairs = [msgspec.msgpack.decode(each, type=_Pair) for each in found]
        before = chain.from_iterable(pair.before for pair in pairs)
        after = chain.from_iterable(pair.after for pair in pairs)
        return Courses(now, cursor, jobs, tuple(before), tuple(after))

    def _played(
        self, core: Core, question: Question, past: Sequence[PastRun], now: float, seeds: Sequence[int]
    ) -> bytes:
        """Play the courses of some seeds; runs in a forked child."""
        changes = changes_of(question, core, now, self._default(), self._presenter.described)
        horizon = question.horizon_seconds
        pair = _Pair([], [])
        for seed in seeds:
            timeline = question.timeline and seed == question.seeds[0]
            pair.before.append(play(core, Changes(), past, now=now, horizon=horizon, seed=seed, timeline=timeline))
            pair.after.append(play(core, changes, past, now=now, horizon=horizon, seed=seed, timeline=timeline))
        return msgspec.msgpack.encode(pair)

    async def _past_runs(self) -> list[PastRun]:
        found: list[PastRun] = []
        after = ""
        while len(found) < PAST_RUNS:
            page = await self._store.list_jobs(
                JobFilter(phases=("succeeded",), order="ended"), limit=_PAGE, after_cursor=after
            )
            found += [run for each in page.items if (run := _past_run(each)) is not None]
            if page.next is None:
                break
            after = page.next
        return found


def _past_run(job: JobSummary) -> PastRun | None:
    if job.started_at is None or job.ended_at is None:
        return None
    seconds = (datetime.fromisoformat(job.ended_at) - datetime.fromisoformat(job.started_at)).total_seconds()
    return PastRun(job.user, job.name, job.queue, float(job.devices), seconds) if seconds > 0 else None


def _asked_jobs(core: Core, question: Question, now: float) -> tuple[WaitingJob, ...]:
    """The jobs that wait now, oldest first, and those that the question submits."""
    waiting = [
        WaitingJob(
            job.id,
            job.name,
            job.user,
            job.terms.queue,
            job.asked_millis() / DEVICE,
            max(0.0, now - (job.run.waits_since or job.created_at)),
        )
        for job in sorted(core.world.jobs.values(), key=lambda job: job.id)
        if phase(job.run) is Phase.WAITING and not job.run.suspended
    ]
    added = [
        WaitingJob(job.id, job.name, job.user, job.queue, job.summary.devices, 0.0, added=True)
        for job in submitted(question.submit, now)
    ]
    return (*waiting, *added)


def _shared(seeds: Sequence[int], processes: int) -> list[tuple[int, ...]]:
    """Seeds in equal runs, in order, one for each process."""
    count = min(len(seeds), processes)
    return [tuple(seeds[len(seeds) * at // count : len(seeds) * (at + 1) // count]) for at in range(count)]
