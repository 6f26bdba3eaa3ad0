"""What a journal says of the world outside the scheduler: requests, machines, and how long tasks ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from corral.control.core.inputs import CordonsRead, InputsLocated, InputsSought
from corral.control.core.intents import IntentsRead
from corral.control.core.machines import MachinesSeen
from corral.control.journal.blocks import BlockReader
from corral.control.journal.recorded_work import ReadWork
from corral.control.journal.records import COMMANDS, Begun, DocumentsRead, Step, decoded
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.model.launch import Exited, Started
from corral.model.store_writes import LiveJob
from corral.scheduler import EngineUnknown

Told = IntentsRead | CordonsRead | MachinesSeen | EngineUnknown | InputsSought | InputsLocated
"""What comes from outside, and is the same in another life."""
Outside = Told | DocumentsRead
"""What comes from outside, but what engines say of tasks."""


class Stopped(NamedTuple):
    """One run of a task that was stopped; `end` is in seconds since 1970."""

    seconds: float
    end: float
    start_seconds: float = 0.0
    """From the command to the start."""


class Ran(NamedTuple):
    """One run of a task that ended by itself."""

    seconds: float
    code: int
    start_seconds: float = 0.0
    """From the command to the start."""
    end: float = 0.0
    """In seconds since 1970."""
    stopped: tuple[Stopped, ...] = ()
    """The runs since the one before that ended by itself."""

    @property
    def resumes(self) -> bool:
        """Whether a stopped task goes on where it was: one that begins anew runs for longer than when it was stopped."""
        return any(each.seconds > self.seconds for each in self.stopped)


@dataclass
class Mean:
    """A mean of values that are not kept."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        """Take one."""
        self.total += value
        self.count += 1

    @property
    def value(self) -> float:
        """The mean; 0 of none."""
        return self.total / self.count if self.count else 0.0


@dataclass
class ReadRuns:
    """The runs of tasks, as the steps of a journal tell them one after the other."""

    runs: dict[tuple[JobId, TaskKey], list[Ran]] = field(default_factory=dict)
    """By task its runs that nobody stopped, in order."""
    started: dict[AttemptId, float] = field(default_factory=dict)
    """The attempts that run, and since when, in seconds since 1970."""
    stop_seconds: dict[JobId, float] = field(default_factory=dict)
    """By job, the most seconds from a request to end to the end of a task; one that ends by itself then takes fewer."""
    interrupted: dict[tuple[JobId, TaskKey], list[Stopped]] = field(default_factory=dict)
    """By task its stopped runs since the last one that ended by itself."""
    unstarted: dict[tuple[JobId, TaskKey], float] = field(default_factory=dict)
    """By task, the seconds that its last attempt that was stopped before it started had had for that."""
    start_seconds: dict[AttemptId, float] = field(default_factory=dict)
    """The seconds from the command to the start of the attempts that run."""
    usual_start: Mean = field(default_factory=Mean)
    """The seconds from the command to the start, of the runs that nobody stopped."""
    usual_stop: Mean = field(default_factory=Mean)
    """The seconds from a request to end to the end."""
    _commanded: dict[AttemptId, float] = field(default_factory=dict)
    _stopped: dict[AttemptId, float] = field(default_factory=dict)

    def take(self, step: Step) -> list[tuple[AttemptId, Ran]]:
        """Read one step; returns the runs that ended by themselves."""
        ended = []
        for each in step.inputs:
            if isinstance(each, Started):
                self._start(each)
            elif isinstance(each, Exited):
                ran = self._end(each)
                if ran is not None:
                    ended.append((each.attempt, ran))
        for decision in step.decisions:
            if decision.verb in COMMANDS:
                at = self._stopped if decision.verb == "stop" else self._commanded
                at.setdefault(AttemptId(decision.attempt), step.at)
        return ended

    def begin_with(self, jobs: Iterable[LiveJob], at: float) -> None:
        """Read the tasks that run at a beginning."""
        for job in jobs:
            for task in job.tasks.values():
                self.started[job.run.attempt_of(task)] = task.started_at or at

    def _start(self, start: Started) -> None:
        commanded = self._commanded.pop(start.attempt, None)
        if commanded is None:
            return  # it has started before, or it has ended: an engine may tell both out of order
        self.started[start.attempt] = start.at
        self.start_seconds[start.attempt] = max(0.0, start.at - commanded)

    def _end(self, end: Exited) -> Ran | None:
        begun, stopped = self.started.pop(end.attempt, None), self._stopped.pop(end.attempt, None)
        start_seconds = self.start_seconds.pop(end.attempt, 0.0)
        commanded = self._commanded.pop(end.attempt, None)
        parsed = parse_attempt_id(end.attempt)
        key = parsed.job, parsed.task
        if stopped is not None:
            self.usual_stop.add(end.at - stopped)
            self.stop_seconds[parsed.job] = max(self.stop_seconds.get(parsed.job, 0.0), end.at - stopped)
        if begun is None:
            if commanded is not None and stopped is not None:
                self.unstarted[key] = stopped - commanded
            return None
        seconds = max(0.0, end.at - begun)
        if stopped is not None:
            self.interrupted.setdefault(key, []).append(Stopped(seconds, end.at, start_seconds))
            return None
        ran = Ran(seconds, end.code, start_seconds, end.at, tuple(self.interrupted.pop(key, ())))
        self.runs.setdefault(key, []).append(ran)
        self.usual_start.add(start_seconds)
        return ran

    def forget(self, jobs: AbstractSet[JobId]) -> None:
        """Drop what was read of jobs."""
        for of_task in (self.runs, self.interrupted, self.unstarted):
            for key in [each for each in of_task if each[0] in jobs]:
                del of_task[key]
        for job in jobs:
            self.stop_seconds.pop(job, None)


class TaskRuns:
    """The runs of one task in another life, one after the other as they were recorded. Times are in seconds since 1970."""

    def __init__(self, runs: Sequence[Ran], after: float = -inf) -> None:
        """Another life that begins at `after` has the earlier runs in common."""
        self._runs = [ran for ran in runs if ran.end > after]
        self.recorded = True
        """Whether the present run was recorded, and not one before it repeated."""
        self._at = 0
        self._ends = inf
        self._begun = inf
        self._served = 0.0
        """Seconds that the task has run for the present one of its runs."""
        if self._runs:
            self._served = sum(each.seconds for each in self._runs[0].stopped if each.end <= after)

    def begin(self, at: float) -> Ran | None:
        """Begin a run. After a stop it is the rest of the run before if the task resumes, else all of it again.

        After all of them the last one is repeated. None: none was recorded.
        """
        if self._ends <= at:
            self._at, self._served = self._at + 1, 0.0
        self.recorded = self._at < len(self._runs)
        if not self._runs:
            return None
        ran = self._runs[min(self._at, len(self._runs) - 1)]
        if ran.resumes:
            whole = ran.seconds + sum(each.seconds for each in ran.stopped)
            ran = ran._replace(seconds=max(0.0, whole - self._served))
        self._begun = at + ran.start_seconds
        self._ends = self._begun + ran.seconds
        return ran

    def stop(self, at: float) -> None:
        """End the present run before its time."""
        self._served += max(0.0, min(at, self._ends) - self._begun)
        self._begun = self._ends = inf


@dataclass
class RecordedRuns:
    """A journal as it is read for another life of its jobs. Times are in seconds since 1970."""

    begun: Begun
    happenings: list[tuple[float, Outside]] = field(default_factory=list)
    read: ReadRuns = field(default_factory=ReadRuns)
    work: ReadWork = field(default_factory=ReadWork)
    until: float = 0.0
    """When the last step was made."""
    problem: str = ""
    """Why the file could not be read to its end, in one sentence; "" if it could."""

    @property
    def runs(self) -> dict[tuple[JobId, TaskKey], list[Ran]]:
        """By task its runs that nobody stopped, in order."""
        return self.read.runs

    def take(self, step: Step) -> None:
        """Read one step."""
        self.until = step.at
        self.read.take(step)
        self.work.take(step)
        self.happenings += [(step.at, each) for each in step.inputs if isinstance(each, Outside)]


def recorded_runs(reader: BlockReader) -> RecordedRuns:
    """Read a journal from its first beginning to its end.

    Raises InvalidInput for a file that is no journal, and for a record that cannot be read.
    """
    found: RecordedRuns | None = None
    for data in reader:
        record = decoded(data)
        if isinstance(record, Step):
            if found is not None:
                found.take(record)
        elif isinstance(record, Begun):
            if found is None:
                found = RecordedRuns(record)
                found.read.begin_with(record.state.jobs, record.at)
                found.work.begin_with(record.state.jobs, record.at)
            else:
                found.happenings += [(record.at, each) for each in record.state.machines]
    if found is None or not found.until:
        said = reader.problem or "The journal has no step that could be played under other rules."
        raise InvalidInput("empty-journal", said)
    found.problem = reader.problem
    return found
