"""Answer what-if questions: prepare them in control's process, play the courses in forked ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from corral.control.configuration import Presenter
from corral.control.core.core import Core
from corral.control.forecast.courses import HORIZON
from corral.control.forecast.forecasts import Forecast, Forecasts, Moment
from corral.control.journal.folder import recorded
from corral.control.what_if.arrivals import Arrivals, drawn, recorded_arrivals
from corral.control.what_if.changes import Changes, changes_of, submitted
from corral.control.what_if.course import play
from corral.control.what_if.forked import USUAL, Fork, ForkLimits
from corral.control.what_if.progress import ProcessProgress, QuestionProgress
from corral.control.what_if.turns import PATIENCE, Turns
from corral.kernel.errors import InvalidInput
from corral.kernel.units import DEVICE
from corral.model.phases import Phase, phase
from corral.model.what_if import DAY, Course, Courses, Question, WaitingJob
from corral.model.what_if_progress import AFTER, BEFORE, READING, WhatIfProgress
from corral.scheduler import Policy


class _Part(msgspec.Struct, frozen=True):
    """One course that is to be played: with the changes, or as things are."""

    seed: int
    changed: bool


class _Played(msgspec.Struct):
    """Courses by seed, and the days of the journal from which their arrivals were drawn."""

    before: dict[int, Course]
    """Without those that a forecast has played."""
    after: dict[int, Course]
    arrival_days: float = 0.0


class Questions:
    """Answers one question at a time; the next one waits for a while, and is then refused."""

    def __init__(
        self,
        forecasts: Forecasts,
        core: Callable[[], Core],
        *,
        default: Callable[[], Policy],
        presenter: Presenter,
        limits: ForkLimits = USUAL,
        journal: Path | None = None,
    ) -> None:
        """`core` gives the present core between two of its steps; `default` is the policy that no document names.

        `journal` is the folder of the server's journal, if it keeps one. `forecasts` knows the moment that a question is
        about, and may have played it as things are.
        """
        self._forecasts = forecasts
        self._core = core
        self._default = default
        self._presenter = presenter
        self._limits = limits
        self._journal = journal
        self._turns = Turns("question-busy", "Another what-if question is being answered; ask again in a moment.")
        self._progress: dict[str, QuestionProgress] = {}
        """By the number that the asker gave to a question, how far it is."""

    async def answer(self, question: Question, number: str = "", patience: float = PATIENCE) -> Courses:
        """Play the courses that a question asks for; its processes end when the caller is cancelled.

        `progress` tells of it under its `number`. It waits `patience` seconds for its turn.

        Raises Unavailable `question-busy` while others are answered, the errors of `Fork.answer`, and what the changes are
        refused with.
        """
        progress = QuestionProgress(len(question.seeds))
        if number:
            self._progress[number] = progress
        try:
            async with self._turns.taken(patience):
                return await self._answered(question, progress)
        finally:
            self._progress.pop(number, None)

    def progress(self, number: str) -> WhatIfProgress | None:
        """How far a question is; None if none of this number is being answered."""
        found = self._progress.get(number)
        return None if found is None else found.told()

    async def _answered(self, question: Question, progress: QuestionProgress) -> Courses:
        moment = await self._forecasts.moment()
        core = self._core()
        forecast = self._forecasts.of(moment)
        known = {} if forecast is None or question.arrivals else _known_courses(forecast, question)
        jobs, cursor = _asked_jobs(core, question, moment.at), core.intents.cursor
        # Every fork is made before the next await, so all children have the same core.
        forks: list[Fork] = []
        shares = _shared(_parts(question.seeds, known), os.cpu_count() or 1)
        counters = progress.shared_by([len(parts) for parts in shares])
        try:
            for parts, counter in zip(shares, counters, strict=True):
                played = partial(self._played, core, question, moment, parts, counter)
                forks.append(Fork(played, self._limits))
            found = await asyncio.gather(*(fork.answer() for fork in forks))
        finally:
            await asyncio.gather(*(fork.end() for fork in forks))
        shared = [msgspec.msgpack.decode(each, type=_Played) for each in found]
        before = dict(chain(known.items(), *(each.before.items() for each in shared)))
        after = dict(chain.from_iterable(each.after.items() for each in shared))
        return Courses(
            moment.at, cursor, jobs,
            tuple(before[seed] for seed in question.seeds), tuple(after[seed] for seed in question.seeds),
            moment.revision, moment.correction, shared[0].arrival_days,
        )  # fmt: skip

    def _recorded(self, now: float) -> Arrivals:
        """The arrivals of the journal; raises InvalidInput if there is none."""
        if self._journal is None or not self._journal.is_dir():
            raise InvalidInput("no-journal", "This server keeps no journal from which arrivals could be drawn.")
        return recorded_arrivals(recorded(self._journal), now)

    def _played(
        self, core: Core, question: Question, moment: Moment, parts: Sequence[_Part], counter: ProcessProgress
    ) -> bytes:
        """Play some courses; runs in a forked child."""
        made = _Played({}, {})
        changes = Changes()
        if any(part.changed for part in parts):
            changes = changes_of(question, core, moment.at, self._default(), self._presenter.described)
        arrivals = None
        if question.arrivals:
            counter.begin(READING)
            arrivals = self._recorded(moment.at)
            made.arrival_days = (moment.at - arrivals.since) / DAY
        horizon = question.horizon_seconds
        undrawn: dict[bool, Course] = {}
        """The courses, with the changes or without, that are the same for every seed."""
        for part in parts:
            played = made.after if part.changed else made.before
            if part.changed in undrawn:
                played[part.seed] = undrawn[part.changed]
                counter.course_known()
                continue
            what = changes if part.changed else Changes()
            if arrivals is not None:
                what = _with_arrivals(what, arrivals, core, moment.at, horizon, part.seed)
            counter.begin(AFTER if part.changed else BEFORE)
            timeline = question.timeline and part.seed == question.seeds[0]
            course = play(
                core, what, moment.past, now=moment.at, horizon=horizon, seed=part.seed, timeline=timeline,
                looked=counter.look,
            )  # fmt: skip
            played[part.seed] = course
            if arrivals is None and not course.drawn:
                undrawn[part.changed] = course.without_stays
            counter.course_done()
        return msgspec.msgpack.encode(made)


def _with_arrivals(
    changes: Changes, found: Arrivals, core: Core, now: float, horizon: float, seed: int
) -> Changes:  # fmt: skip
    """The changes, and the jobs that arrive: the same ones before and after."""
    new = tuple(drawn(found, now, horizon, seed, core.configured.now.queues))
    return replace(changes, arrivals=new, users=(*found.users, *changes.users))


def _known_courses(forecast: Forecast, question: Question) -> dict[int, Course]:
    """The courses as things are that the forecast has played already."""
    if question.horizon_seconds != HORIZON:
        return {}
    seeds = question.seeds[1:] if question.timeline else question.seeds
    first = forecast.course(0)
    if first is not None and not first.drawn:
        return dict.fromkeys(seeds, first)
    return {seed: course for seed in seeds if (course := forecast.course(seed)) is not None}


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


def _parts(seeds: Sequence[int], known: Collection[int]) -> list[_Part]:
    """The courses to be played, without those as things are that are `known`.

    Those of one kind are beside each other: where nothing is drawn, a process plays one of them for all seeds.
    """
    return [
        _Part(seed, changed) for changed in (False, True) for seed in seeds if changed or seed not in known
    ]  # fmt: skip


def _shared(parts: Sequence[_Part], processes: int) -> list[Sequence[_Part]]:
    """Courses in equal runs, in order, one for each process."""
    count = min(len(parts), processes)
    return [parts[len(parts) * at // count : len(parts) * (at + 1) // count] for at in range(count)]
