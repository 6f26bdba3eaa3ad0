"""Jobs in another life: how far their work has come there, when it ends, and what they say on the way.

The tasks of an elastic job end where its work comes to the position at which they ended in the journal. What jobs say of
their work is said at the same position, at whatever time and size that is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Final, NamedTuple

from corral.control.core.driver import Driver
from corral.control.core.world import Job
from corral.control.journal.pace import NOTHING, Pace, Size
from corral.control.journal.recorded_work import ReadWork, RecordedWork, Said, devices_by_role, size_of
from corral.control.journal.work_courses import Course, End, Unended, courses_of
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import counted
from corral.model.store_writes import Intent

_SAME: Final = 1e-6
"""The part of a course that may be missing at its end, by rounding errors of times."""
_MOMENT: Final = 1e-4
"""Seconds by which a time differs from another one at least; less is a rounding error."""
Expected = Callable[[Job, float], float]
"""How many seconds a job's attempt runs in all that has run for some already; infinite: it runs on."""


class _Task(NamedTuple):
    """A task that runs, or that will from `begun` on."""

    attempt: AttemptId
    begun: float
    devices: int
    node: str
    position: float
    """Where the work was when it was begun; its end is not before that."""


class _Call(NamedTuple):
    """What was done to a task at a time."""

    at: float
    task: TaskKey
    job_attempt: int
    begins: _Task | None
    """None: it was asked to end."""


@dataclass
class _State:
    """How far a job is."""

    at: float
    work: float = 0.0
    number: int = 0
    """Which of its courses it is on."""
    attempt: int | None = None
    tries: int = 0
    """The attempts that it has made on that course, before the present one."""
    tasks: dict[TaskKey, _Task] = field(default_factory=dict)
    first: Size = NOTHING
    """The size with which the attempt began."""
    begun: float = inf
    """When the attempt began."""
    passed: dict[TaskKey, int] = field(default_factory=dict)
    """How many of each task's own ends in the course are behind it."""
    last_ended: bool = False
    """Whether the task has ended in it that was the last one to end by itself in the journal."""

    def copy(self) -> _State:
        return replace(self, tasks=dict(self.tasks), passed=dict(self.passed))


class PlayedJob:
    """One job in another life, which it has in common with the journal up to `after`, in seconds since 1970."""

    def __init__(self, job: Job, recorded: RecordedWork | None, after: float, expected: Expected) -> None:
        self.elastic = recorded.devices is not None if recorded is not None else devices_by_role(job.text) is not None
        self._job = job
        self._recorded = recorded
        self._after = after
        self._expected = expected
        self._calls: list[_Call] = []
        self._courses: list[Course] = []
        self._unended: Unended | None = None
        self._pace = Pace()
        self._state = _State(after)
        self.matters = False
        """Whether it is elastic or says something; of other jobs only the calls are kept."""
        self._told = after
        """When the last that it said in the present course was said in the journal."""
        self.ends: dict[AttemptId, tuple[float, int]] = {}
        """When each of its tasks ends, as the driver was told, and with which code."""
        self._guess: tuple[tuple[object, ...], Course] | None = None
        """The present course of an end that is not known, and of what that was expected."""

    @property
    def measured(self) -> bool:
        """Whether its speed by size follows from its own reports."""
        return self._pace.measured

    def learn(self, recorded: RecordedWork | None, read_until: float) -> None:
        """Look anew at what the journal says of it, also for what has happened so far."""
        self._recorded, self._guess = recorded, None
        self.matters = self.elastic or (recorded is not None and not recorded.is_silent)
        if not self.matters:
            return
        self._pace = Pace() if recorded is None else recorded.pace()
        self._courses, self._unended = ([], None) if recorded is None else courses_of(recorded, self._pace, read_until)
        number = next((at for at, each in enumerate(self._courses) if each.until > self._after), len(self._courses))
        state = self._state = _State(self._after, number=number)
        if number < len(self._courses) or self._unended is not None:
            course = self._course(state)
            state.work, state.tries = course.position(self._after), course.attempt_at(self._after)
            state.passed = course.ended(self._after)
        for call in self._calls:
            self._take(call)

    @property
    def is_expected(self) -> bool:
        """Whether the end of its present course is only expected."""
        return self.elastic and self._guess is not None

    def begin(self, task: TaskKey, attempt: AttemptId, at: float, begun: float, node: str) -> None:
        """A task is begun at a time, and runs from `begun` on."""
        state, job_attempt = self._state, parse_attempt_id(attempt).job_attempt
        call = _Call(at, task, job_attempt, _Task(attempt, begun, self._devices(task), node, 0.0))
        self._calls.append(call)
        if not self.matters:
            return
        self._move(state, at)
        if state.attempt not in (None, job_attempt) and (self._is_done(state) or not self._course(state).resumes):
            self._told = -inf  # the course that begins says all of it
        self._take(call)

    def stop(self, task: TaskKey, at: float) -> None:
        """A task is asked to end."""
        self._calls.append(_Call(at, task, self._state.attempt or 0, None))
        if self.matters:
            self._take(self._calls[-1])

    def start_seconds(self, task: TaskKey) -> float:
        """How long the next start of a task takes: as long as it did, else as long as any of the job did."""
        starts = {} if self._recorded is None else self._recorded.starts
        of_task = [seconds for at, seconds in starts.get(task, ()) if at > self._after]
        if not of_task:
            return max((each[-1][1] for each in starts.values()), default=0.0)
        begun = sum(call.task == task and call.begins is not None and call.at > self._after for call in self._calls)
        return of_task[min(begun, len(of_task) - 1)]

    def forecast(self) -> tuple[dict[AttemptId, tuple[float, int]], float]:
        """When each task ends by itself and with which code, and when the job says something next; inf: never."""
        state, course = self._state.copy(), self._course(self._state)
        said = next((at for at, _ in self._unsaid(course, state.tries)), inf)
        ends = {task.attempt: (inf, 0) for task in state.tasks.values()}
        says = state.at if said <= state.work else inf
        while True:
            before, speed = state.work, self._speed(state)
            begun = state.at
            ended = self._step(state, inf)
            if ended is None:
                break
            if says == inf and before <= said <= state.work and speed > 0:
                says = begun + (said - before) / speed
            ends.update((task.attempt, (state.at, code)) for task, code in ended)
        if says == inf and said < inf and (speed := self._speed(state)) > 0:
            says = state.at + (said - state.work) / speed
        return ends, says

    def due(self, now: float, seq: int) -> list[Intent]:
        """What it says up to now, each once; of each kind the last, if several are due at once."""
        state = self._state
        self._move(state, now)
        latest = dict[str, Said]()
        for at, said in self._unsaid(self._course(state), state.tries):
            if at > state.work + self._speed(state) * _MOMENT:
                break
            latest[said.intent.kind] = said
            self._told = said.at
        if state.attempt is None:
            return []
        size = self._size(state)
        return [said.again(seq, now, state.attempt, self._pace, size) for said in latest.values()]

    def _unsaid(self, course: Course, tries: int) -> Iterable[tuple[float, Said]]:
        """What it is still to say, with positions."""
        said = course.said(tries)
        return islice(said, bisect_right(said, self._told, key=lambda each: each[1].at), None)

    # ---- the course

    def _course(self, state: _State) -> Course:
        """The course that it is on: the last one again after all of them, if the journal tells of no later attempt."""
        if state.number < len(self._courses):
            return self._courses[state.number]
        if self._unended is not None:
            return self._expecting(state, self._unended.course)
        return self._courses[-1] if self._courses else self._expecting(state, Course())

    def _expecting(self, state: _State, course: Course) -> Course:
        """A course whose end is not known, with what is to be expected of it.

        What is left takes as long as expected at the size that it had last, or with which it begins here.
        """
        if not self.elastic:
            return course
        asked = state.attempt, state.number, state.first
        if self._guess is None or self._guess[0] != asked:
            unended = self._unended
            seconds, done, speed = 0.0, 0.0, self._pace.of(state.first)
            if unended is not None:
                seconds, done, speed = unended.seconds, unended.done, unended.speed or speed
            total = inf  # until it has a size
            if speed > 0:
                total = done + (self._expected(self._job, seconds) - seconds) * speed
            last = End(total, 0) if total < inf else None
            self._guess = asked, replace(course, total=total, last=last)
        return self._guess[1]

    def _is_done(self, state: _State) -> bool:
        return state.work >= self._course(state).total * (1 - _SAME)

    def _take(self, call: _Call) -> None:
        """Have a call take effect."""
        state = self._state
        self._move(state, call.at)
        if call.begins is None:
            state.tasks.pop(call.task, None)
            return
        if call.job_attempt != state.attempt:
            if state.attempt is not None:
                state.tries += 1
                if self._is_done(state):
                    state.number, state.work, state.tries, state.passed = state.number + 1, 0.0, 0, {}
                elif not self._course(state).resumes:
                    state.work, state.passed = 0.0, {}
            state.attempt, state.begun, state.last_ended = call.job_attempt, call.at, False
            state.tasks.clear()
        state.tasks[call.task] = call.begins._replace(position=state.work)
        if call.at == state.begun:
            state.first = size_of((task.devices, task.node) for task in state.tasks.values())

    def _devices(self, task: TaskKey) -> int:
        if not self.elastic:
            return 1
        return (devices_by_role(self._job.text) or {}).get(task.role, 1)

    # ---- time

    def _move(self, state: _State, to: float) -> None:
        """Go on to a time."""
        while state.at < to and self._step(state, to) is not None:
            pass
        state.at = max(state.at, to)

    def _step(self, state: _State, to: float) -> Sequence[tuple[_Task, int]] | None:
        """Go on to the next start or end of a task, or to a time if that is earlier.

        Returns the tasks that end then, with their codes; None: nothing is to come.
        """
        speed = self._speed(state)
        begins = min((task.begun for task in state.tasks.values() if task.begun > state.at), default=inf)
        course = self._course(state)
        tasks = state.tasks.items() if self.elastic else ()
        ends = {key: self._end_of(course, key, task, state) for key, task in tasks}
        running = [end for key, end in ends.items() if state.tasks[key].begun <= state.at]
        position, _, _, was_at = min(running, key=lambda end: end.at, default=_NEVER)
        reached = inf
        if position <= state.work:
            reached = state.at
        elif speed > 0 and position < inf:
            reached = state.at + (position - state.work) / speed
            if abs(reached - was_at) <= _MOMENT:  # then what ended together does so here
                reached = max(state.at, was_at)
        until = min(begins, reached, to)
        if until == inf:
            return None
        if until == reached:
            state.at, state.work = until, max(state.work, position)
            over = [
                (key, ends[key].code)
                for key, task in state.tasks.items()
                if task.begun <= state.at and ends[key].at <= state.work
            ]
            state.last_ended |= any(ends[key] == course.last for key, _ in over)
            for key, _ in over:
                if ends[key].task is not None:
                    own = course.ends_of(state.tries, key)
                    state.passed[key] = own.index(ends[key], state.passed.get(key, 0)) + 1
            return [(state.tasks.pop(key), code) for key, code in over]
        state.work += (until - state.at) * speed
        state.at = until
        return []

    def _speed(self, state: _State) -> float:
        """The work in a second now."""
        size = self._size(state)
        return self._pace.of(size) if self.elastic else float(bool(size.devices))

    def _size(self, state: _State) -> Size:
        size = size_of((task.devices, task.node) for task in state.tasks.values() if task.begun <= state.at)
        return size if self.elastic else Size(min(1, size.devices), min(1, size.nodes))

    def _end_of(self, course: Course, key: TaskKey, task: _Task, state: _State) -> End:
        """Where a task ends by itself: where it did, else with the last one of its job."""
        for end in islice(course.ends_of(state.tries, key), state.passed.get(key, 0), None):
            if end.at >= task.position:
                return end
        last = course.last
        if last is None:
            return _NEVER
        is_there = state.last_ended or (last.task not in (None, key) and last.task in state.tasks)
        if is_there and (last.code or key in course.outlived):
            return _NEVER  # the launcher stops it when the other one has ended
        return last._replace(at=max(last.at, task.position), task=None)


_NEVER: Final = End(inf, 0)


def elastic_assumptions(measured: int, proportional: int) -> Iterable[str]:
    """What is assumed of so many elastic jobs, in sentences: some whose speed is measured, some in proportion."""
    if measured:
        yield f"Of {counted(measured, 'elastic job')} the speed by size is as {_their(measured)} own reports say."
    if proportional:
        yield f"Of {counted(proportional, 'elastic job')} the work is in proportion to {_their(proportional)} devices."


def _their(count: int) -> str:
    return "its" if count == 1 else "their"


class PlayedJobs:
    """The jobs of another life whose work follows their size, or that say something; the other jobs are left out.

    It is what attempts say in that life (`Driver.sayings`), and moves the ends of the tasks of elastic jobs.
    """

    def __init__(
        self,
        recorded: ReadWork,
        driver: Driver,
        expected: Expected,
        recorded_now: Callable[[JobId], None] = lambda job: None,
    ) -> None:
        """The other life begins now, and has all before in common with the journal.

        `recorded_now` hears of jobs whose run time is in what was read since it was expected.
        """
        self._recorded_now = recorded_now
        self._recorded = recorded
        self._driver = driver
        self._after = driver.now
        self._expected = expected
        self._read_until = driver.now
        self._jobs: dict[JobId, PlayedJob] = {}
        self._changed: dict[JobId, None] = {}
        self._says: dict[JobId, float] = {}
        self._agenda: list[tuple[float, JobId]] = []
        """When jobs say something; those that `_says` does not confirm are out of date."""
        self._over = {False: 0, True: 0}
        """The elastic jobs that were forgotten, by whether their speed was measured."""
        driver.sayings = self

    def learn(self, read_until: float) -> None:
        """Look at what the journal says by now; it was read up to a step at a time."""
        self._read_until = read_until
        for identity, job in self._jobs.items():
            was_expected = job.is_expected
            job.learn(self._recorded.jobs.get(identity), read_until)
            self._settle(identity, job)
            if was_expected and not job.is_expected:
                self._recorded_now(identity)

    def forget(self, jobs: AbstractSet[JobId]) -> None:
        """Drop jobs that are over."""
        for each in jobs:
            job = self._jobs.pop(each, None)
            self._changed.pop(each, None)
            self._says.pop(each, None)
            if job is not None and job.elastic:
                self._over[job.measured] += 1

    @property
    def elastic(self) -> tuple[int, int]:
        """The elastic jobs so far: those whose speed follows their reports, and those in proportion to their devices."""
        now = [job.measured for job in self._jobs.values() if job.elastic]
        return self._over[True] + sum(now), self._over[False] + len(now) - sum(now)

    # ---- what the lives tell

    def is_elastic(self, job: Job) -> bool:
        """Whether the ends of a job's tasks are known here."""
        return self._of(job).elastic

    def start_seconds(self, job: Job, attempt: AttemptId) -> float:
        """How long a task of an elastic job takes from the command to its start."""
        return self._of(job).start_seconds(parse_attempt_id(attempt).task)

    def begin(self, job: Job, attempt: AttemptId, begun: float) -> None:
        """A task is begun now, or taken over, and runs from a time on."""
        key = parse_attempt_id(attempt).task
        placement = job.tasks[key].placement
        now = self._driver.now
        self._of(job).begin(key, attempt, now, max(now, begun), "" if placement is None else placement.node)
        self._changed[job.id] = None

    def stop(self, job: Job, attempt: AttemptId) -> None:
        """A task is asked to end now."""
        if job.id in self._jobs:
            self._jobs[job.id].stop(parse_attempt_id(attempt).task, self._driver.now)
            self._changed[job.id] = None

    # ---- what attempts say

    def next_at(self) -> float:
        """When a job says something next; ends are moved to where the sizes that jobs have now bring them."""
        for identity in self._changed:
            self._settle(identity, self._jobs[identity])
        self._changed.clear()
        while self._agenda and self._says.get(self._agenda[0][1]) != self._agenda[0][0]:
            heappop(self._agenda)
        return self._agenda[0][0] if self._agenda else inf

    def due(self, now: float) -> list[Intent]:
        """What jobs say now."""
        found, core = list[Intent](), self._driver.core
        while self.next_at() <= now:
            _, identity = heappop(self._agenda)
            del self._says[identity]
            said = self._jobs[identity].due(now, core.intents.cursor)
            if (job := core.world.jobs.get(identity)) is not None and not job.completed:
                found += said
                self._changed[identity] = None
        return found

    def _of(self, job: Job) -> PlayedJob:
        played = self._jobs.get(job.id)
        if played is None:
            played = self._jobs[job.id] = PlayedJob(job, self._recorded.jobs.get(job.id), self._after, self._expected)
            played.learn(self._recorded.jobs.get(job.id), self._read_until)
        return played

    def _settle(self, identity: JobId, job: PlayedJob) -> None:
        """Have the driver know when tasks of a job end, and when it says something."""
        if not job.matters:
            return
        ends, says = job.forecast()
        now = self._driver.now
        if job.elastic:
            for attempt, (at, code) in ends.items():
                if abs(at - job.ends.get(attempt, (-inf, 0))[0]) <= _MOMENT and code == job.ends[attempt][1]:
                    ends[attempt] = job.ends[attempt]
                else:
                    self._driver.end_at(attempt, max(now, at), code)
            job.ends = ends
        if says == inf:
            self._says.pop(identity, None)
        elif self._says.get(identity) != (at := max(now, says)):
            self._says[identity] = at
            heappush(self._agenda, (at, identity))
