"""What a journal says of the work of whole jobs: at which sizes they ran, how it ended, and what programs said of it.

Each task has its own runs in `recorded_runs`. Of an elastic job this is not enough: how long a task runs there depends on
how many others there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from corral.control.core.intents import IntentsRead
from corral.control.core.world import read_terms
from corral.control.journal.pace import NOTHING, FixedPace, Measured, Pace, Profile, Size
from corral.control.journal.records import Step
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.launch import Exited, Started
from corral.model.runs import TaskRun, WorkReport
from corral.model.states import TaskState
from corral.model.store_writes import Intent, IntentKind, LiveJob

TOLD: Final = frozenset({IntentKind.CHECKPOINTED, IntentKind.WORK_REPORTED})
"""Requests that tasks make while they run."""
MOST_SAID: Final = 200
"""What is kept of each kind that a job said; beyond that every second one is dropped."""
RUNNING: Final = frozenset({TaskState.PREPARING, TaskState.RUNNING})
_READ: Final = 512
_PACKED: Final = msgspec.msgpack.Encoder()
_UNPACKED: Final = msgspec.msgpack.Decoder(dict[str, Any])
_FIXED: Final = FixedPace()


class _Counts(msgspec.Struct, frozen=True, rename="camel"):
    min_replicas: int = 1
    max_replicas: int = 1


class _MeasuredSize(msgspec.Struct, frozen=True):
    devices: int
    throughput: float
    nodes: int = 1


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    replica_spec: _Counts = _Counts()
    gang: bool = True
    scaling: tuple[_MeasuredSize, ...] = ()


class _Document(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


@lru_cache(_READ)
def devices_by_role(text: str) -> Mapping[str, int] | None:
    """The devices of a task by role, of the document of an elastic job; None for another job.

    A part of a device is one, and so is a task of a job without devices. Elastic is what `UnifiedJob.is_elastic` says, of
    gangs; to read the whole document for that takes a hundred times as long.
    """
    spec = _DOCUMENT.decode(text).spec
    if not spec.gang or spec.replica_spec.min_replicas >= spec.replica_spec.max_replicas:
        return None
    millis = read_terms(text).millis_each
    if not any(millis.values()):
        return MappingProxyType(dict.fromkeys(millis, 1))
    return MappingProxyType({role: ceil(each / DEVICE) for role, each in millis.items()})


@lru_cache(_READ)
def profile_of(text: str) -> Profile:
    """The speeds by size that the document of a job declares; none for a job that is not elastic."""
    if devices_by_role(text) is None:
        return ()
    return tuple((each.devices, each.nodes, each.throughput) for each in _DOCUMENT.decode(text).spec.scaling)


class Said(NamedTuple):
    """What a task said; `at` is when control heard it, in seconds since 1970."""

    at: float
    intent: Intent
    """Without its data."""
    data: bytes
    size: Size

    def again(self, seq: int, at: float, attempt: int, pace: Pace, size: Size) -> Intent:
        """The same of another life, at a time, of an attempt of the job that has a size there."""
        data, later = _UNPACKED.decode(self.data), at - self.at
        data["jobAttempt"] = attempt
        if isinstance(report := data.get("report"), dict):
            report["at"] = float(report.get("at", self.at)) + later
            if size != self.size and size.devices and self.size.devices:
                _scale(report, "throughput", pace.throughput(size) / pace.throughput(self.size))
                _scale(report, "batch_size", size.devices / self.size.devices)
        return msgspec.structs.replace(self.intent, seq=seq, at=self.intent.at + later, data=data)


def _scale(report: dict[str, Any], name: str, by: float) -> None:
    if isinstance(value := report.get(name), (int, float)):
        report[name] = value * by


@dataclass(slots=True)
class _Thinned:
    """The last things that were said, and of the earlier ones evenly fewer."""

    kept: list[Said] = field(default_factory=list)
    _every: int = 1
    _heard: int = 0

    def add(self, said: Said) -> None:
        self._heard += 1
        if self._heard % self._every:
            return
        self.kept.append(said)
        if len(self.kept) > MOST_SAID:
            del self.kept[::2]
            self._every *= 2


class TaskEnd(NamedTuple):
    """A task ended by itself."""

    at: float
    task: TaskKey
    code: int


@dataclass(slots=True)
class Spell:
    """One attempt of a job. Times are in seconds since 1970."""

    attempt: int
    sizes: list[tuple[float, Size]] = field(default_factory=list)
    """What it had from each time on, in order."""
    ends: list[TaskEnd] = field(default_factory=list)
    outlived: frozenset[TaskKey] = frozenset()
    """The tasks that still ran after the last of the ends."""
    over: bool = False
    """Whether it runs no more."""
    yielded_at: float = 0.0
    """When tasks of it were preempted last."""

    @property
    def begun(self) -> float:
        """When its first task ran."""
        return self.sizes[0][0]

    @property
    def until(self) -> float:
        """When its size changed last; of one that is over, its end."""
        return self.sizes[-1][0]

    @property
    def complete(self) -> bool:
        """Whether it ended by itself, and was not preempted."""
        return self.over and bool(self.ends) and self.ends[-1].at >= self.yielded_at

    @property
    def succeeded(self) -> bool:
        """Whether it ended by itself and without a failure, so that it is not tried again."""
        return self.complete and not any(end.code for end in self.ends)


@dataclass(slots=True)
class RecordedWork:
    """The attempts of one job, in order."""

    devices: Mapping[str, int] | None
    """The devices of a task by role, of an elastic job; None: the job is not elastic."""
    profile: Profile = ()
    """The speeds by size that it declares."""
    spells: list[Spell] = field(default_factory=list)
    measured: Measured = field(default_factory=Measured)
    starts: dict[TaskKey, list[tuple[float, float]]] = field(default_factory=dict)
    """By task when it ran, and the seconds from the command to that; of elastic jobs."""
    _said: dict[str, _Thinned] = field(default_factory=dict)
    _tasks: dict[TaskKey, tuple[int, str]] = field(default_factory=dict)
    """The tasks that run and were not asked to end: devices and node."""

    def pace(self) -> Pace:
        """How fast it works by size, as far as it is known now."""
        return _FIXED if self.devices is None else self.measured.pace(self.profile)

    def said(self) -> list[Said]:
        """What is kept of what it said, in order."""
        return sorted((each for kind in self._said.values() for each in kind.kept), key=lambda said: said.at)

    @property
    def is_silent(self) -> bool:
        """Whether there is nothing to know of its present attempt but how long its tasks ran."""
        return self.devices is None and not self._said

    def start(self, attempt: int, task: TaskKey, node: str, at: float, start_seconds: float) -> None:
        """A task runs, so many seconds after the command."""
        if not self.spells or self.spells[-1].attempt != attempt:
            self._tasks.clear()
            if self.spells:
                self._size(at)
            self.spells.append(Spell(attempt))
        if self.devices is not None:
            self.starts.setdefault(task, []).append((at, start_seconds))
        self._tasks[task] = (1 if self.devices is None else self.devices.get(task.role, 1)), node
        self._size(at)

    def stop(self, attempt: int, task: TaskKey, at: float, *, yields: bool) -> None:
        """A task is asked to end."""
        if self._has(attempt, task):
            if yields:
                self.spells[-1].yielded_at = at
            del self._tasks[task]
            self._size(at)

    def end(self, attempt: int, task: TaskKey, at: float, code: int) -> None:
        """A task ends; one that was not asked to do so ended by itself."""
        if self._has(attempt, task):
            del self._tasks[task]
            spell = self.spells[-1]
            self._size(at)
            spell.ends.append(TaskEnd(max(at, spell.begun), task, code))
            spell.outlived = frozenset(self._tasks)

    def say(self, said: Intent, at: float) -> None:
        """A task said something of its work."""
        if not self.spells or self.spells[-1].over or self.spells[-1].attempt != said.data.get("jobAttempt"):
            return
        since, size = self.spells[-1].sizes[-1]
        data = _PACKED.encode(said.data)
        kept = Said(at, msgspec.structs.replace(said, data={}), data, size)
        self._said.setdefault(said.kind, _Thinned()).add(kept)
        if said.kind == IntentKind.WORK_REPORTED and self.devices is not None:
            try:
                report = msgspec.convert(said.data.get("report"), WorkReport)
            except msgspec.ValidationError:
                return
            self.measured.take(report, at, size, since)

    def _has(self, attempt: int, task: TaskKey) -> bool:
        return bool(self.spells) and self.spells[-1].attempt == attempt and task in self._tasks

    def _size(self, at: float) -> None:
        """Write down what it has from a time on."""
        spell, tasks = self.spells[-1], self._tasks.values()
        sizes = spell.sizes
        size = size_of(tasks) if self.devices is not None else Size(min(1, len(tasks)), min(1, len(tasks)))
        spell.over = not tasks
        if sizes and sizes[-1][0] >= at:
            sizes[-1] = sizes[-1][0], size
        elif not sizes or sizes[-1][1] != size:
            sizes.append((at, size))


def size_of(tasks: Iterable[tuple[int, str]]) -> Size:
    """What tasks with these devices and nodes hold together."""
    tasks = list(tasks)
    return Size(sum(devices for devices, _ in tasks), len({node for _, node in tasks})) if tasks else NOTHING


class ReadWork:
    """The work of all jobs, as the steps of a journal tell it one after the other."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, RecordedWork] = {}
        self._documents: dict[JobId, tuple[Mapping[str, int] | None, Profile]] = {}
        """Of each job that has not begun to run, the devices of its tasks by role if it is elastic, and its profile."""
        self._begun: dict[AttemptId, tuple[str, float]] = {}
        """The nodes of the attempts that were begun and do not run yet, and when they were begun."""

    def begin_with(self, jobs: Iterable[LiveJob], at: float) -> None:
        """Read the jobs of a beginning, with the tasks that run."""
        for job in jobs:
            self._documents[job.id] = devices_by_role(job.doc), profile_of(job.doc)
            running = [task for task in job.tasks.values() if task.placement is not None and task.state in RUNNING]
            for task in sorted(running, key=lambda task: task.started_at or at):
                self._start(job.run.attempt_of(task), _node(task), task.started_at or at, 0.0)

    def take(self, step: Step) -> None:
        """Read one step."""
        for each in step.inputs:
            if isinstance(each, Started):
                if (begun := self._begun.pop(each.attempt, None)) is not None:
                    self._start(each.attempt, begun[0], each.at, max(0.0, each.at - begun[1]))
            elif isinstance(each, Exited):
                self._end(each)
            elif isinstance(each, IntentsRead):
                self._read(each, step.at)
        for decision in step.decisions:
            if decision.verb == "start":
                self._begun[AttemptId(decision.attempt)] = decision.node, step.at
            elif decision.verb == "stop":
                self._begun.pop(AttemptId(decision.attempt), None)
                parsed = parse_attempt_id(decision.attempt)
                if (job := self.jobs.get(parsed.job)) is not None:
                    job.stop(parsed.job_attempt, parsed.task, step.at, yields=bool(decision.why))

    def forget(self, jobs: AbstractSet[JobId]) -> None:
        """Drop what was read of jobs."""
        for job in jobs:
            self.jobs.pop(job, None)
            self._documents.pop(job, None)

    def _read(self, read: IntentsRead, at: float) -> None:
        for job, record in read.jobs.items():
            self._documents[job] = devices_by_role(record.doc), profile_of(record.doc)
        for intent in read.intents:
            if intent.kind in TOLD and (work := self.jobs.get(intent.job)) is not None:
                work.say(intent, at)

    def _start(self, attempt: AttemptId, node: str, at: float, start_seconds: float) -> None:
        parsed = parse_attempt_id(attempt)
        job = self.jobs.get(parsed.job)
        if job is None:
            job = self.jobs[parsed.job] = RecordedWork(*self._documents.get(parsed.job, (None, ())))
        job.start(parsed.job_attempt, parsed.task, node, at, start_seconds)

    def _end(self, end: Exited) -> None:
        self._begun.pop(end.attempt, None)
        parsed = parse_attempt_id(end.attempt)
        job = self.jobs.get(parsed.job)
        if job is None:
            return
        job.end(parsed.job_attempt, parsed.task, end.at, end.code)
        if job.is_silent and job.spells[-1].succeeded:
            del self.jobs[parsed.job]


def _node(task: TaskRun) -> str:
    return "" if task.placement is None else task.placement.node
