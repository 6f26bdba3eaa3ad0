"""Play a core forward in virtual time, on engines that exist in memory only.

The driver stands where the asyncio shell stands in a server: it gives the core what happened, stores what each step
decides, and carries its commands out. A simulator adds traces and reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Final, NamedTuple, Protocol

from corral.control.core.core import Batch, Core
from corral.control.core.inputs import Input
from corral.control.core.intents import IntentsRead, named_jobs, needed_jobs
from corral.control.core.memory_store import MemoryStore
from corral.control.core.world import Job
from corral.kernel.agenda import Agenda
from corral.kernel.garbage import rarely_collected
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.commands import EngineCommand, ForgetTask, StartTask, StopTask
from corral.model.events import StartRefused
from corral.model.launch import Exited, Started
from corral.model.outcome import Completion
from corral.model.store_writes import Intent, NewJob

_TERMINATED: Final = 143
_INTENTS_AT_ONCE: Final = 1000
_IDLE_REVIEWS: Final = 60
"""Steps in a row without an input or a command after which plans by time alone may be further apart."""


class Work(NamedTuple):
    """What one attempt of a task does."""

    seconds: float
    """From its start to its end, if nobody stops it; inf: it runs until it is stopped."""
    code: int = 0
    start_seconds: float = 0.0
    """From the command to the moment that it runs."""
    stop_seconds: float = 0.0
    """From a request to end to the end; at most the grace period."""
    refusal: Completion | None = None
    """Why its engine refuses to start it for good; then it never runs."""


Works = Callable[[Job, AttemptId], Work]
"""What the attempts of jobs do."""


class Sayings(Protocol):
    """What attempts say of their work while they run."""

    def next_at(self) -> float:
        """When one of them says something next, in seconds since 1970; inf: none does.

        Asked after each step: ends that follow from what the step did may be changed here (`Driver.end_at`).
        """
        ...

    def due(self, now: float) -> Sequence[Intent]:
        """What is said up to now, each once."""
        ...


class Driver:
    """A core, its store, and the attempts that run; `now` is how far they have come, in seconds since 1970."""

    def __init__(self, core: Core, store: MemoryStore, works: Works, now: float) -> None:
        self.core = core
        self.store = store
        self.now = now
        self.steps = 0
        """How often the core was stepped."""
        self.stepped: Callable[[Core, Sequence[Input], float], Batch] = Core.step
        """Steps the core; a journal that is kept takes its place."""
        self.works = works
        """What attempts do; asked once at each start and stop."""
        self.sayings: Sayings | None = None
        """What attempts say while they run; None: nothing."""
        self._happenings: Agenda[NewJob | Input] = Agenda()
        self.idle_review_seconds = 0.0
        """Seconds between plans by time alone, once `_IDLE_REVIEWS` of them in a row began and ended nothing; 0: as often
        as the core asks."""
        self._idle_reviews = 0
        self._stepped_at = now
        self._ends: dict[AttemptId, tuple[float, int]] = {}
        """When each attempt that runs will end as far as is known, and with which code."""
        self._unread = False

    def at(self, time: float, happening: NewJob | Input) -> None:
        """Have a job be submitted, or the core told of something, at a time."""
        self._happenings.add(time, happening)

    def run(self, until: float = inf) -> None:
        """Go on through all that happens up to a time, or until nothing is to come."""
        with rarely_collected():
            while (at := self._next()) <= until and at < inf:
                self.now = max(self.now, at)
                self._step()
        if until < inf:
            self.now = max(self.now, until)

    @property
    def running(self) -> frozenset[AttemptId]:
        """The attempts that were started and whose ends the core has not seen."""
        return frozenset(self._ends)

    def runs(self, attempt: AttemptId) -> bool:
        """Whether an attempt is among those that are `running`."""
        return attempt in self._ends

    @property
    def idle(self) -> bool:
        """Whether nothing is to come, however far it runs."""
        return self._next() == inf

    def adopt(self, attempt: AttemptId, seconds: float, code: int = 0) -> None:
        """Take over an attempt that a core began elsewhere; it ends in so many seconds, if nobody stops it."""
        self._end(attempt, self.now + seconds, code)

    def end(self, attempt: AttemptId, code: int) -> None:
        """End a running attempt now, whatever its work is; `run` tells the core."""
        if attempt in self._ends:
            self._end(attempt, self.now, code)

    def end_at(self, attempt: AttemptId, at: float, code: int) -> None:
        """Have a running attempt end at another time, which is not past, if nobody stops it before."""
        if self._ends.get(attempt, (at, code)) != (at, code):
            self._end(attempt, at, code)

    def request(self, job: JobId, kind: str, actor: str = "", **data: object) -> None:
        """Store a request of a user now; `run` carries it out."""
        self.store.add_intent(job, kind, data, actor=actor, at=self.now)
        self._unread = True

    def _next(self) -> float:
        """When something happens next; a time that is past means now."""
        said = inf if self.sayings is None else self.sayings.next_at()
        idle = self.idle_review_seconds if self._idle_reviews >= _IDLE_REVIEWS else 0.0
        due = self.core.next_wakeup(reviews_from=self._stepped_at + idle if idle else -inf)
        return -inf if self._unread else min(self._happenings.next_at, said, inf if due is None else due)

    def _step(self) -> None:
        inputs: list[Input] = []
        for happening in self._happenings.due(self.now):
            if isinstance(happening, NewJob):
                self.store.submit(happening)
                self._unread = True
            elif not isinstance(happening, Exited) or self._is_end(happening):
                inputs.append(happening)
        if self._unread:
            inputs.insert(0, self._read())
        if self.sayings is not None and (said := self.sayings.due(self.now)):
            inputs.insert(0, self.with_jobs(said))
        batch = self.stepped(self.core, inputs, self.now)
        self.steps += 1
        changes = bool(inputs) or (batch.writes is not None and bool(batch.writes.outbox_add))
        self._stepped_at = self.now
        self._idle_reviews = 0 if changes else self._idle_reviews + 1
        if batch.writes is not None:
            result = self.store.write(batch.writes)
            self._carry_out(command for _, command in batch.writes.outbox_add)
            self.store.done(result.outbox)

    def _read(self) -> IntentsRead:
        """The stored requests that the core has not folded, with the jobs that it needs for them."""
        intents = self.store.intents_after(self.core.intents.cursor, _INTENTS_AT_ONCE)
        self._unread = len(intents) == _INTENTS_AT_ONCE
        return self.with_jobs(intents)

    def with_jobs(self, intents: Sequence[Intent]) -> IntentsRead:
        """Requests with the stored jobs that the core needs for them."""
        known = self.core.world.jobs
        named = self.store.jobs(named_jobs(intents, known))
        needed = self.store.jobs(needed_jobs(named, known))
        jobs = {each.id: each for each in (*named, *needed)}
        return IntentsRead(intents, jobs, self.store.groups({each.user for each in jobs.values()}))

    def _is_end(self, event: Exited) -> bool:
        """Whether an end is still to come: a stop may have brought it forward."""
        if self._ends.get(event.attempt) != (event.at, event.code):
            return False
        del self._ends[event.attempt]
        return True

    def _carry_out(self, commands: Iterable[EngineCommand]) -> None:
        for command in commands:
            match command:
                case StartTask(attempt=attempt):
                    self._start(attempt)
                case StopTask(attempt=attempt, grace_seconds=grace):
                    self._stop(attempt, grace)
                case ForgetTask():
                    pass

    def _start(self, attempt: AttemptId) -> None:
        job = self.core.world.jobs.get(parse_attempt_id(attempt).job)
        if job is None:
            return
        work = self.works(job, attempt)
        if work.refusal is not None:
            self.at(self.now, StartRefused(attempt, self.now, work.refusal))
            return
        begun = self.now + work.start_seconds
        self.at(begun, Started(attempt, begun))
        self._end(attempt, begun + work.seconds, work.code)

    def _stop(self, attempt: AttemptId, grace: float) -> None:
        """End an attempt earlier; one that ends by itself before that does so. One that never began ends at once."""
        job = self.core.world.jobs.get(parse_attempt_id(attempt).job)
        seconds = min(grace, self.works(job, attempt).stop_seconds) if job is not None else 0.0
        if self.now + seconds < self._ends.get(attempt, (inf, 0))[0]:
            self._end(attempt, self.now + seconds, _TERMINATED)

    def _end(self, attempt: AttemptId, at: float, code: int) -> None:
        self._ends[attempt] = at, code
        if at < inf:
            self.at(at, Exited(attempt, at, code))
