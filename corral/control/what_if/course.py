"""One course of the cluster: a copy of the core that is played to the horizon, and what became of jobs and queues."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import Final

from corral.control.core.core import Core
from corral.control.core.driver import Driver, Work
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.control.what_if.adoption import Ending, adopt_tasks
from corral.control.what_if.changes import Changes
from corral.control.what_if.run_times import RunTimes
from corral.control.what_if.stays import Stays
from corral.control.what_if.tally import Tally, whole_devices
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.model.store_writes import LiveJob
from corral.model.what_if import DAY, Course, PastRun
from corral.scheduler.explain.start_estimate import head_job

SAMPLES: Final = 96
"""How often devices and waiting jobs are counted, at equal distances."""
_MOST_SHAPES: Final = 100
"""Shapes of gangs that wait at the horizon of which is looked whether they could ever start."""
_PIECES: Final = 8
"""Pieces in which the time between two samples is played; after each, a course may be ended."""


def play(
    core: Core,
    changes: Changes,
    past: Iterable[PastRun],
    *,
    now: float,
    horizon: float,
    seed: int,
    timeline: bool = False,
    looked: Callable[[], None] = lambda: None,
) -> Course:
    """Play a copy of a core from `now` for `horizon` seconds, with changes that take effect at once; O(events).

    No failures are drawn, and nobody submits anything but the changes. A preempted job begins anew. With `timeline` the
    course tells what ran where. `looked` is called `SAMPLES` + 1 times on the way.
    """
    stays = Stays() if timeline else None
    twin = core.fork(unexplained=True, unrecorded=True)
    return Play(twin, changes, RunTimes(past, seed), now, stays).run(horizon, looked)


class Play:
    """One course as it is played."""

    def __init__(self, core: Core, changes: Changes, run_times: RunTimes, now: float, stays: Stays | None) -> None:
        self.core = core
        self.stays = stays
        self.now = now
        self.run_times = run_times
        self.store = MemoryStore(users=changes.users, first_intent=core.intents.cursor + 1)
        self.driver = Driver(core, self.store, self._work, now)
        self.tally = Tally(now)
        self.head: JobId | None = None
        """The job that is first in the queue order at the beginning."""
        self.drawn_since = inf
        """From when on the course depends on drawn run times, in seconds since 1970."""
        self.completions: dict[float, list[JobId]] = {}
        """The jobs that ended, by time in seconds since 1970."""
        self._ends: dict[JobId, tuple[int, float]] = {}
        """The attempt of each job, and when it ends by itself."""
        for job in core.world.jobs.values():
            self._take_over(job)
        for new in changes.submitted:
            self.tally.expect(new.id, new.queue, now)
            self.driver.at(now, new)
        for new in changes.arrivals:
            self.tally.expect(new.id, new.queue, new.created_at)
            self.driver.at(new.created_at, new)
        self._arrivals = len(changes.arrivals)
        changes.apply(self.driver)

    def run(self, horizon: float, looked: Callable[[], None] = lambda: None) -> Course:
        """Play to the horizon and tell what became of everything; `looked` is called after each sample."""
        self.run_while(horizon, lambda: True, looked)
        return self.told()

    def run_while(
        self, horizon: float, go_on: Callable[[], bool], looked: Callable[[], None] = lambda: None
    ) -> bool:  # fmt: skip
        """Play to the horizon, or until `go_on` says no; returns whether it came to the horizon."""
        with rarely_collected():
            for number in range(_PIECES * SAMPLES + 1):
                if not go_on():
                    self._collect()
                    return False
                sample, piece = divmod(number, _PIECES)
                at = horizon * sample / SAMPLES
                self.driver.run(self.now + at + horizon * piece / (_PIECES * SAMPLES))
                if number == 0:
                    self.head = head_job(self.core.world.queue, self.now)
                if not piece:
                    self._collect()
                    self.tally.look(at, self.core)
                    looked()
        return True

    def told(self) -> Course:
        """What became of everything until now; to be asked for once."""
        never = self._never()
        course = self.tally.course(self.driver.now, self.core, self.run_times.known)
        course.never = never
        course.arrivals = self._arrivals
        if self.stays is not None:
            course.stays, course.stays_left_out = self.stays.told()
            nodes = self.core.machines.nodes
            course.nodes = {name: len(whole_devices(node)) for name, node in sorted(nodes.items())}
        return course

    def _never(self) -> tuple[str, ...]:
        """The told jobs that wait and could never start on the nodes that there are; of many shapes the first ones."""
        planner, possible = self.core.world.planner, dict[Hashable, bool]()
        found = []
        for job in sorted(self.tally.unstarted):
            entry = planner.queue.first(job)
            if entry is None or (entry.shape not in possible and len(possible) >= _MOST_SHAPES):
                continue
            if entry.shape not in possible:
                possible[entry.shape] = planner.could_ever_fit(entry.request) is None
            if not possible[entry.shape]:
                found.append(job)
        return tuple(found)

    def run_on(self, until: float, go_on: Callable[[], bool]) -> None:
        """Play on, a day at a time, while jobs that waited at the beginning still wait and `go_on` allows it."""
        while self.tally.unstarted and self.driver.now < until and not self.driver.idle and go_on():
            self.driver.run(min(until, self.driver.now + DAY))
            self._collect()

    # ---- jobs that are there

    def _take_over(self, job: Job) -> None:
        self.store.hold(live_record(job))
        self.tally.take_over(job)
        for task in adopt_tasks(self.driver, job, lambda task: Ending(self._end_of(job))):
            if self.stays is not None:
                self.stays.begin(job, task, 0.0)

    def _work(self, job: Job, attempt: AttemptId) -> Work:
        """Answer the driver: a start lasts as long as its job's attempt, a stop is obeyed at once."""
        if self.driver.runs(attempt):
            return Work(0.0)
        if self.stays is not None:
            name = parse_attempt_id(attempt)
            self.stays.begin(job, job.tasks[TaskKey(name.role, name.index)], self.driver.now - self.now)
        return Work(max(0.0, self._end_of(job) - self.driver.now))

    def _end_of(self, job: Job) -> float:
        """When the present attempt of a job ends by itself: all its tasks at once."""
        known = self._ends.get(job.id)
        if known is None or known[0] != job.run.attempt:
            now = self.driver.now
            begun = job.run.started_at or now
            seconds = self.run_times.drawn(job, now - begun)
            known = self._ends[job.id] = (job.run.attempt, begun + seconds)
            if seconds < inf and not job.view.max_duration_seconds:
                self.drawn_since = min(self.drawn_since, now)
        return known[1]

    def _collect(self) -> None:
        facts = self.store.facts
        self.tally.collect(facts, self.core)
        for each in facts:
            if each.fact.kind == "job.completed":
                self.completions.setdefault(each.at, []).append(each.job)
        if self.stays is not None:
            for each in facts:
                if each.fact.kind == "task.exited":
                    self.stays.end(AttemptId(each.fact.attempt), each.at - self.now)
        facts.clear()


def live_record(job: Job) -> LiveJob:
    """A job of a core as a store would have it."""
    return LiveJob(
        id=job.id,
        name=job.name,
        user=job.user,
        queue=job.terms.queue,
        priority=job.terms.priority,
        created_at=job.created_at,
        doc=job.text,
        run=job.run,
        summary=job.summary,
        revision=job.revision,
        tasks=job.tasks,
        account=job.account,
    )
