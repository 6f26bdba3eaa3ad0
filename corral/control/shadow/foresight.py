"""Read a journal ahead: how long its tasks ran, so that they run as long under the candidate."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from typing import Final

from corral.control.core.intents import IntentsRead
from corral.control.core.world import Job
from corral.control.journal.recorded_runs import Ran, ReadRuns, TaskRuns
from corral.control.journal.recorded_work import ReadWork
from corral.control.journal.records import Begun, Step
from corral.control.what_if.run_times import RunTimes
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.store_writes import IntentKind, LiveJob
from corral.model.what_if import PastRun
from corral.spec.job import UnifiedJob

_MOST_PAST: Final = 5000
"""The last ended jobs from which unknown run times are drawn."""
_Task = tuple[JobId, TaskKey]


@dataclass
class Foresight:
    """What a journal says of run times, as far as it has been read. Times are in seconds since 1970."""

    begun_at: float = inf
    """The time of the beginning from which it is replayed; infinite: it has none."""
    until: float = 0.0
    """When the last step to be compared was made; 0: there is none."""
    read_until: float = 0.0
    """When the last step was made."""
    runs: ReadRuns = field(default_factory=ReadRuns)
    work: ReadWork = field(default_factory=ReadWork)
    _jobs: dict[JobId, LiveJob] = field(default_factory=dict)
    """The jobs of which no task has ended well."""
    _named: dict[JobId, float] = field(default_factory=dict)
    """When each job was named last, by a request or a beginning."""
    _ended: deque[PastRun] = field(default_factory=lambda: deque(maxlen=_MOST_PAST))

    def begin(self, begun: Begun) -> None:
        """Read how the first core began."""
        self.begun_at = begun.at
        self.runs.begin_with(begun.state.jobs, begun.at)
        self.work.begin_with(begun.state.jobs, begun.at)
        self._jobs.update((job.id, job) for job in begun.state.jobs)
        self.begin_again(begun)

    def begin_again(self, begun: Begun) -> None:
        """Read how a later core began."""
        self._named.update((job.id, begun.at) for job in begun.state.jobs)

    def take(self, step: Step) -> None:
        """Read one step."""
        self.read_until = step.at
        for each in step.inputs:
            if isinstance(each, IntentsRead):
                self._read(each, step.at)
        self.work.take(step)
        for attempt, ran in self.runs.take(step):
            job = None if ran.code else self._jobs.pop(parse_attempt_id(attempt).job, None)
            if job is not None:
                self._ended.append(PastRun(job.user, job.name, job.queue, _devices(job), ran.seconds))

    def _read(self, read: IntentsRead, at: float) -> None:
        for intent in read.intents:
            self._named[intent.job] = at
            record = read.jobs.get(intent.job)
            if record is not None and intent.kind == IntentKind.SUBMITTED:
                self._jobs[intent.job] = record
        self._named.update((job, at) for job in read.jobs)

    def past(self) -> Iterable[PastRun]:
        """The run times of the jobs that ended last."""
        return self._ended

    def forget(self, live: AbstractSet[JobId], at: float) -> set[JobId]:
        """Drop the jobs that are not `live` at a time and are not named from then on; returns them."""
        gone = {job for job, named in self._named.items() if named < at and job not in live}
        self.runs.forget(gone)
        self.work.forget(gone)
        for job in gone:
            del self._named[job]
            self._jobs.pop(job, None)
        return gone


def _devices(job: LiveJob) -> float:
    return job.summary.devices or UnifiedJob.model_validate_json(job.doc).device_millis / DEVICE


class _Calls:
    """When a task began and was stopped under the candidate, and its runs that the journal has."""

    def __init__(self, recorded: list[Ran], after: float) -> None:
        self._calls: list[tuple[float, bool]] = []
        self._after = after
        self.present: Ran | None = None
        """The run that began last; None: it was not recorded."""
        self.learn(recorded)

    def learn(self, recorded: list[Ran]) -> None:
        """Have these be its runs, also for what has happened so far."""
        self.known = len(recorded)
        self._runs = TaskRuns(recorded, self._after)
        for at, stops in self._calls:
            self._call(at, stops)

    @property
    def is_recorded(self) -> bool:
        """Whether the present run is one that was recorded."""
        return self._runs.recorded

    def call(self, at: float, *, stops: bool) -> None:
        """Begin or stop a run."""
        self._calls.append((at, stops))
        self._call(at, stops)

    def _call(self, at: float, stops: bool) -> None:
        if stops:
            self._runs.stop(at)
        else:
            self.present = self._runs.begin(at)


class KnownRuns:
    """How long tasks run under the candidate: as long as they did, else as long as it is to be expected.

    What is expected is expected anew with each part of the journal that is read.
    """

    def __init__(self, ahead: Foresight, expected: RunTimes, after: float) -> None:
        """Runs that ended before `after`, in seconds since 1970, are left out; `expected` has those not recorded."""
        self._ahead = ahead
        self._after = after
        self._expected = expected
        self._tasks: dict[_Task, _Calls] = {}
        self._guessed: dict[AttemptId, tuple[Job, float, bool]] = {}
        """The runs going on that are not recorded, when they began, and whether they had started then."""
        self._open: dict[_Task, float] = {}
        self._started_in: dict[_Task, float] = {}
        self._look()

    @property
    def work(self) -> ReadWork:
        """The work of whole jobs, as far as it was read."""
        return self._ahead.work

    @property
    def read_until(self) -> float:
        """When the last step was made that was read."""
        return self._ahead.read_until

    def begin(self, job: Job, attempt: AttemptId, at: float, *, started: bool = False) -> Ran:
        """The run of a task that begins now, or that had `started` at a time."""
        calls = self._of(attempt)
        calls.call(at, stops=False)
        if not calls.is_recorded:
            self._guessed[attempt] = job, at, started
        return self._present(calls, job, attempt)

    def stop(self, attempt: AttemptId, at: float) -> None:
        """The run of a task is stopped."""
        self._guessed.pop(attempt, None)
        self._of(attempt).call(at, stops=True)

    def learn(self, running: Callable[[AttemptId], bool]) -> Iterator[tuple[AttemptId, float, int]]:
        """Look at what was read ahead since; gives the `running` runs that were not recorded, their new ends and codes."""
        self._look()
        for key, calls in self._tasks.items():
            recorded = self._ahead.runs.runs.get(key, [])
            if len(recorded) != calls.known:
                calls.learn(recorded)
        for attempt, (job, at, started) in list(self._guessed.items()):
            calls = self._of(attempt)
            is_running = running(attempt)
            if calls.is_recorded or not is_running:
                del self._guessed[attempt]
            if is_running:
                if calls.is_recorded:
                    self._expected.uncount(job.id)
                ran = self._present(calls, job, attempt)
                yield attempt, at + (0.0 if started else ran.start_seconds) + ran.seconds, ran.code

    def forget(self, jobs: AbstractSet[JobId]) -> None:
        """Drop jobs that are over."""
        for key in [each for each in self._tasks if each[0] in jobs]:
            del self._tasks[key]
        self._expected.forget(jobs)

    def expected(self, job: Job, elapsed: float) -> float:
        """How long an attempt of a job is expected to run in all, of which the journal tells no end."""
        return self._expected.drawn(job, elapsed)

    def recorded_now(self, job: JobId) -> None:
        """The run time of a job is known from the journal by now."""
        self._expected.uncount(job)

    def stop_seconds(self, job: JobId) -> float:
        """How long a task takes to end when it is asked to: as long as the job's did, else as the others did."""
        runs = self._ahead.runs
        return runs.stop_seconds.get(job, runs.usual_stop.value)

    def _look(self) -> None:
        runs = self._ahead.runs
        self._open = {}
        self._started_in = {task: stopped[-1].start_seconds for task, stopped in runs.interrupted.items()}
        for attempt, since in runs.started.items():
            self._open[_task(attempt)] = since
            self._started_in[_task(attempt)] = runs.start_seconds.get(attempt, 0.0)

    def _of(self, attempt: AttemptId) -> _Calls:
        key = _task(attempt)
        calls = self._tasks.get(key)
        if calls is None:
            calls = self._tasks[key] = _Calls(self._ahead.runs.runs.get(key, []), self._after)
        return calls

    def _present(self, calls: _Calls, job: Job, attempt: AttemptId) -> Ran:
        """The run that began last. One that still goes on in the journal is no repetition of the one before."""
        if calls.present is None or (not calls.is_recorded and _task(attempt) in self._open):
            return self._unrecorded(job, attempt)
        return calls.present

    def _unrecorded(self, job: Job, attempt: AttemptId) -> Ran:
        key = _task(attempt)
        since = self._open.get(key)
        known = [each.seconds for each in self._ahead.runs.interrupted.get(key, ())]
        elapsed = max([0.0 if since is None else self._ahead.read_until - since, *known])
        return Ran(self._expected.drawn(job, elapsed), 0, self._start_seconds(key))

    def _start_seconds(self, key: _Task) -> float:
        """How long a task takes to start: as long as for its last run, else the usual time more than it had for it."""
        known = self._started_in.get(key)
        if known is not None:
            return known
        had = self._ahead.runs.unstarted.get(key)
        return 0.0 if had is None else had + self._ahead.runs.usual_start.value


def _task(attempt: AttemptId) -> _Task:
    parsed = parse_attempt_id(attempt)
    return parsed.job, parsed.task
