"""Jobs in another life: how far their work has come there, when it ends, and what they say on the way.

The tasks of an elastic job end where its work comes to the position at which they ended in the journal. What jobs say of
their work is said at the same position, at whatever time and size that is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import Final, NamedTuple

from corral.control.core.driver import Driver
from corral.control.core.world import Job
from corral.control.journal.pace import NOTHING, Grounds, Measured, Pace, Size
from corral.control.journal.recorded_work import ReadWork, RecordedWork, Said, devices_by_role, profile_of, size_of
from corral.control.journal.work_courses import Course, End, Unended, courses_of
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import counted
from corral.model.store_writes import Intent

_SAME: Final = 1e-6
"""The part of a course that may be missing at its end, by rounding errors of times."""
_MOMENT: Final = 1e-4
"""Seconds by which a time differs from another one at least; less is a rounding error."""
_ASSUMED: Final = {
    Grounds.REPORTS: "the speed by size is as {their} own reports say",
    Grounds.PROFILE: "the speed by size is as declared in the job file (scaling)",
    Grounds.DEVICES: "the work is in proportion to {their} devices",
}
"""What is assumed of elastic jobs, by what their speed follows from."""
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
    first: Size | None = NOTHING
    """The size with which the attempt began; None: the tasks that are there now tell."""
    begun: float = inf
    """When the attempt began."""
    passed: dict[TaskKey, int] = field(default_factory=dict)
    """How many of each task's own ends in the course are behind it."""
    last_ended: bool = False
    """Whether the task has ended in it that was the last one to end by itself in the journal."""

    def copy(self) -> _State:
        return replace(self, tasks=dict(self.tasks), passed=dict(self.passed))


class _Going:
    """How a job goes on from a state while none of its tasks is begun or asked to end; it changes the state."""

    def __init__(self, state: _State, course: Course, pace: Pace | None) -> None:
        """Without a pace no task ends by itself, and the work is the time."""
        self.state = state
        self._course = course
        self._pace = pace
        self._devices = 0
        self._nodes: dict[str, int] = {}
        self._ends: dict[TaskKey, End] = {}
        """Of the tasks that run."""
        self._next: list[tuple[float, int, TaskKey]] = []
        """A heap of the positions of the ends, of equal ones in the order in which the tasks were begun."""
        self._numbers = {key: number for number, key in enumerate(state.tasks)}
        coming = [(task.begun, key) for key, task in state.tasks.items() if task.begun > state.at]
        self._coming = sorted(coming, key=lambda each: each[0], reverse=True)
        """The tasks that do not run yet and when they will, the next one last."""
        self._last = self._last_one()
        for key, task in state.tasks.items():
            if task.begun <= state.at:
                self._add(key, task)
        self.speed = self._speed()
        """The work in a second now."""

    @property
    def size(self) -> Size:
        """What the job holds now; of one that is not elastic, whether it runs."""
        size = Size(self._devices, len(self._nodes))
        return size if self._pace is not None else Size(min(1, size.devices), min(1, size.nodes))

    def step(self, to: float) -> Sequence[tuple[_Task, int]] | None:
        """Go on to the next start or end of a task, or to a time if that is earlier.

        Returns the tasks that end then, with their codes; None: nothing is to come.
        """
        state, speed = self.state, self.speed
        begins = self._coming[-1][0] if self._coming else inf
        position, _, _, was_at = self._ends[self._next[0][2]] if self._next else _NEVER
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
        state.work = max(state.work, position) if until == reached else state.work + (until - state.at) * speed
        state.at = until
        begun = bool(self._coming) and self._coming[-1][0] <= until
        while self._coming and self._coming[-1][0] <= until:
            _, key = self._coming.pop()
            self._add(key, state.tasks[key])
        over = self._end() if until == reached else []
        if begun or over:
            self.speed = self._speed()
        return over

    def _end(self) -> list[tuple[_Task, int]]:
        """End the tasks whose ends are where the work is."""
        state, course, over = self.state, self._course, list[tuple[_Task, int]]()
        while self._next and self._next[0][0] <= state.work:
            _, _, key = heappop(self._next)
            task, end = state.tasks.pop(key), self._ends.pop(key)
            self._devices -= task.devices
            self._nodes[task.node] -= 1
            if not self._nodes[task.node]:
                del self._nodes[task.node]
            state.last_ended |= end == course.last
            if end.task is not None:
                state.passed[key] = course.ends_of(state.tries, key).index(end, state.passed.get(key, 0)) + 1
            over.append((task, end.code))
        if self._last != (last := self._last_one()):
            self._last, self._next = last, []
            for key in self._ends:
                self._await(key, state.tasks[key])
        return over

    def _add(self, key: TaskKey, task: _Task) -> None:
        self._devices += task.devices
        self._nodes[task.node] = self._nodes.get(task.node, 0) + 1
        if self._pace is not None:
            self._await(key, task)

    def _await(self, key: TaskKey, task: _Task) -> None:
        end = self._ends[key] = self._end_of(key, task)
        if end.at < inf:
            heappush(self._next, (end.at, self._numbers[key], key))

    def _speed(self) -> float:
        return self._pace.of(self.size) if self._pace is not None else float(bool(self._devices))

    def _last_one(self) -> tuple[bool, bool]:
        """Whether the task has ended that ended last in the journal, and whether it is there."""
        last = self._course.last
        return self.state.last_ended, last is not None and last.task in self.state.tasks

    def _end_of(self, key: TaskKey, task: _Task) -> End:
        """Where a task ends by itself: where it did, else with the last one of its job."""
        course, state = self._course, self.state
        for end in islice(course.ends_of(state.tries, key), state.passed.get(key, 0), None):
            if end.at >= task.position:
                return end
        last = course.last
        if last is None:
            return _NEVER
        has_ended, is_there = self._last
        if (has_ended or (is_there and last.task != key)) and (last.code or key in course.outlived):
            return _NEVER  # the launcher stops it when the other one has ended
        return last._replace(at=max(last.at, task.position), task=None)


_NEVER: Final = End(inf, 0)


class PlayedJob:
    """One job in another life, which it has in common with the journal up to `after`, in seconds since 1970."""

    def __init__(self, job: Job, recorded: RecordedWork | None, after: float, expected: Expected) -> None:
        self.elastic = recorded.devices is not None if recorded is not None else devices_by_role(job.text) is not None
        self._job = job
        self._recorded = recorded
        self._after = after
        self._expected = expected
        self._calls: list[_Call] = []
        """Those since the last course that is over, of which the journal told the end."""
        self._begin_with: _State | None = None
        """How far it was before these; None: as the journal says."""
        self._begun: dict[TaskKey, int] = {}
        """How often each task was begun since `after`."""
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
    def grounds(self) -> Grounds:
        """What its speed by size follows from."""
        return self._pace.grounds

    def learn(self, recorded: RecordedWork | None, read_until: float) -> None:
        """Look anew at what the journal says of it, also for what has happened so far."""
        self._recorded, self._guess = recorded, None
        self.matters = self.elastic or (recorded is not None and not recorded.is_silent)
        if not self.matters:
            return
        self._pace = Measured().pace(profile_of(self._job.text)) if recorded is None else recorded.pace()
        self._courses, self._unended = ([], None) if recorded is None else courses_of(recorded, self._pace, read_until)
        self._state = self._recorded_state() if self._begin_with is None else self._begin_with.copy()
        calls, self._calls = self._calls, []
        for call in calls:
            self._calls.append(call)
            self._take(call)

    def _recorded_state(self) -> _State:
        """How far it was when the lives parted."""
        number = next((at for at, each in enumerate(self._courses) if each.until > self._after), len(self._courses))
        state = _State(self._after, number=number)
        if number < len(self._courses) or self._unended is not None:
            course = self._course(state)
            state.work, state.tries = course.position(self._after), course.attempt_at(self._after)
            state.passed = course.ended(self._after)
        return state

    @property
    def is_expected(self) -> bool:
        """Whether the end of its present course is only expected."""
        return self.elastic and self._guess is not None

    def begin(self, task: TaskKey, attempt: AttemptId, at: float, begun: float, node: str) -> None:
        """A task is begun at a time, and runs from `begun` on."""
        state, job_attempt = self._state, parse_attempt_id(attempt).job_attempt
        call = _Call(at, task, job_attempt, _Task(attempt, begun, self._devices(task), node, 0.0))
        self._calls.append(call)
        if at > self._after:
            self._begun[task] = self._begun.get(task, 0) + 1
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
        return of_task[min(self._begun.get(task, 0), len(of_task) - 1)]

    def forecast(self) -> tuple[dict[AttemptId, tuple[float, int]], float]:
        """When each task ends by itself and with which code, and when the job says something next; inf: never."""
        course, state = self._course(self._state), self._state.copy()
        going = self._going(state)
        said = next((at for at, _ in self._unsaid(course, state.tries)), inf)
        ends = {task.attempt: (inf, 0) for task in state.tasks.values()}
        says = state.at if said <= state.work else inf
        while True:
            begun, before, speed = state.at, state.work, going.speed
            ended = going.step(inf)
            if ended is None:
                break
            if says == inf and before <= said <= state.work and speed > 0:
                says = begun + (said - before) / speed
            ends.update((task.attempt, (state.at, code)) for task, code in ended)
        if says == inf and said < inf and going.speed > 0:
            says = state.at + (said - state.work) / going.speed
        return ends, says

    def due(self, now: float, seq: int) -> list[Intent]:
        """What it says up to now, each once; of each kind the last, if several are due at once."""
        state = self._state
        self._move(state, now)
        latest, going = dict[str, Said](), self._going(state)
        for at, said in self._unsaid(self._course(state), state.tries):
            if at > state.work + going.speed * _MOMENT:
                break
            latest[said.intent.kind] = said
            self._told = said.at
        if state.attempt is None:
            return []
        return [said.again(seq, now, state.attempt, self._pace, going.size) for said in latest.values()]

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
        if state.first is None:
            state.first = size_of((task.devices, task.node) for task in state.tasks.values())
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
                    self._forget_course(call)
                    state.number, state.work, state.tries, state.passed = state.number + 1, 0.0, 0, {}
                elif not self._course(state).resumes:
                    state.work, state.passed = 0.0, {}
            state.attempt, state.begun, state.last_ended = call.job_attempt, call.at, False
            state.tasks.clear()
        state.tasks[call.task] = call.begins._replace(position=state.work)
        if call.at == state.begun:
            state.first = None

    def _forget_course(self, call: _Call) -> None:
        """Drop the calls before the last one, with which a new course begins; an end that was a guess is not certain."""
        if self._state.number < len(self._courses):
            self._begin_with = _State(call.at, number=self._state.number + 1)
            del self._calls[:-1]

    def _devices(self, task: TaskKey) -> int:
        if not self.elastic:
            return 1
        return (devices_by_role(self._job.text) or {}).get(task.role, 1)

    # ---- time

    def _move(self, state: _State, to: float) -> None:
        """Go on to a time."""
        if state.at >= to:
            return
        going = self._going(state)
        while state.at < to and going.step(to) is not None:
            pass
        state.at = max(state.at, to)

    def _going(self, state: _State) -> _Going:
        return _Going(state, self._course(state), self._pace if self.elastic else None)


def elastic_assumptions(known: Mapping[Grounds, int]) -> Iterable[str]:
    """What is assumed of so many elastic jobs with each grounds, in sentences."""
    for grounds, said in _ASSUMED.items():
        if count := known.get(grounds, 0):
            yield f"Of {counted(count, 'elastic job')} {said.format(their='its' if count == 1 else 'their')}."


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
        self._over = Counter[Grounds]()
        """The elastic jobs that were forgotten."""
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
                self._over[job.grounds] += 1

    @property
    def elastic(self) -> Mapping[Grounds, int]:
        """The elastic jobs so far, by what their speed follows from."""
        return self._over + Counter(job.grounds for job in self._jobs.values() if job.elastic)

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
