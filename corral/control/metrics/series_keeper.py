"""Feed the store of series from control, beside its loop: its gauges every 15 s, and what jobs report as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from corral.kernel.ids import JobId
from corral.model.metrics.job_figures import figures_of
from corral.model.metrics.samples import Samples, Value
from corral.model.runs import WorkReport
from corral.model.series import SeriesQuestion, SeriesView
from corral.model.store_writes import ControlBatch
from corral.monitor.series.grid import FINE
from corral.monitor.series.of_machines import kept_of_machine
from corral.monitor.series.store import SeriesStore

log = structlog.get_logger()

EVERY_SECONDS: Final = 15.0
_FLUSH_EVERY: Final = 3
"""Rounds after which values are stored: a kill loses less than a minute."""
_BREATH_SECONDS: Final = 0.05
"""Seconds between two parts of upkeep, so that it never has more than a part of a core."""
_MOST_REPORTS: Final = 20_000
"""Reports of jobs that wait for the next round; of more, the oldest are dropped."""
_MOST_SCALARS: Final = 100_000
"""Scalars of event files that wait for the next round; of more, the oldest are dropped."""
_OLDEST_REPORT: Final = 60.0
"""Seconds; a report that is older is one from before a restart."""
_MOST_JOBS: Final = 20_000
_TOLD_ROUNDS: Final = 1.6
"""Rounds in which an agent's figures must have come to be kept: a late answer leaves no gap, and a silent agent at most
one step in which its last figures are kept again."""


class SeriesKeeper:
    """Gives the values of control's metrics and the reports of jobs to a store of series."""

    def __init__(
        self,
        store: SeriesStore,
        samples: Callable[[], Samples | None],
        now: Callable[[], float],
        machines: Callable[[float], Mapping[str, Samples]] = lambda rounds: {},
    ) -> None:
        """`samples` are control's metrics; None while it cannot tell them. `now` is its clock.

        `machines` are, by node, what agents of other machines told within a number of rounds.
        """
        self._machines = machines
        self.store = store
        self._samples, self._now = samples, now
        self.every_seconds = EVERY_SECONDS
        self.rounds = 0
        """How often values were taken, or failed to be."""
        self._reports: deque[tuple[JobId, WorkReport]] = deque(maxlen=_MOST_REPORTS)
        self._scalars: deque[tuple[float, Value]] = deque(maxlen=_MOST_SCALARS)
        """Values of jobs' own curves, each with its time."""
        self._told: dict[JobId, float] = {}
        """The time of the latest report of each job, the jobs that reported last at the end."""

    def stored(self, writes: ControlBatch) -> None:
        """Take what jobs reported, from what control has stored."""
        for write in writes.jobs:
            report = write.run.report
            if report is not None and self._told.get(write.id) != report.at:
                self._told.pop(write.id, None)
                if len(self._told) >= _MOST_JOBS:
                    del self._told[next(iter(self._told))]
                self._told[write.id] = report.at
                self._reports.append((write.id, report))

    def take_scalars(self, scalars: Iterable[tuple[float, Value]]) -> None:
        """Take values of jobs' own curves, each with its time in seconds since 1970; it is called in any thread."""
        self._scalars.extend(scalars)

    async def run(self, begins: asyncio.Event) -> None:
        """Keep values from when control leads until cancelled; what fails is logged once, and tried again."""
        await begins.wait()
        failing = False
        try:
            while True:
                await asyncio.sleep(self.every_seconds)
                self.rounds += 1
                try:
                    await self.keep(store_them=self.rounds % _FLUSH_EVERY == 0)
                    failing = False
                except Exception as error:  # what is wrong with series must never end control
                    if not failing:
                        log.exception("series are not kept", error=str(error))
                    failing = True
        finally:
            self._add(None, self._now(), list(self._reports))
            self.store.close()

    async def keep(self, *, store_them: bool) -> None:
        """Take the values of now; with `store_them`, store what has come since, and do what upkeep is due."""
        samples = self._samples()
        reports = list(self._reports)
        self._reports.clear()
        await asyncio.to_thread(self._add, samples, self._now(), reports)
        if store_them:
            await asyncio.to_thread(self.store.flush)
            more = True
            while more:
                more = await asyncio.to_thread(self.store.maintain)
                await asyncio.sleep(_BREATH_SECONDS)

    async def read(self, question: SeriesQuestion) -> tuple[list[SeriesView], int]:
        """The series that a question is about, and how many were left out."""
        if self._reports or self._scalars:
            reports = list(self._reports)
            self._reports.clear()
            await asyncio.to_thread(self._add, None, self._now(), reports)
        return await asyncio.to_thread(self.store.read, question)

    def _add(self, samples: Samples | None, at: float, reports: list[tuple[JobId, WorkReport]]) -> None:
        for job, report in reports:
            if report.at > at - _OLDEST_REPORT:
                when = min(at, max(report.at, at - 2 * EVERY_SECONDS))
                self.store.add(Samples(tuple(figures_of(job, report))), when)
        if samples is not None:
            self.store.add(samples, at)
            for node, told in self._machines(_TOLD_ROUNDS).items():
                tasks, machine = kept_of_machine(told)
                self.store.add(tasks, at, others=True)
                self.store.add(machine, at, node, others=True)
        self._add_scalars(at)

    def _add_scalars(self, now: float) -> None:
        """Give the store what came of jobs' own curves, all values of a time together; a later one of a step wins."""
        steps = defaultdict[int, list[Value]](list)
        with contextlib.suppress(IndexError):  # another thread may add some meanwhile, or take them
            while True:
                at, value = self._scalars.popleft()
                steps[FINE.step(min(at, now))].append(value)
        for step in sorted(steps):
            self.store.add_past(Samples(tuple(steps[step])), float(step * FINE.seconds))
