"""Why: a step's rules write down what they decide in one place, which keeps the counters true and hands out one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from corral.kernel.ids import AttemptId, TaskKey
from corral.launcher.machine import InvalidTransition
from corral.launcher.policy import LaunchPolicy
from corral.launcher.view import JobView
from corral.model.commands import EngineCommand, ForgetTask, JobCommand, ReleasePlacement, RequestPlacement, StartTask
from corral.model.facts import Fact
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState, TaskState

ACTIVE = frozenset({JobState.CREATION_REQUESTED, JobState.PREPARING, JobState.RUNNING})
"""The states in which the current attempt is wanted."""

_WAITING = frozenset({TaskState.CREATION_PENDING, TaskState.CREATION_REQUESTED})


class AttemptEnd(msgspec.Struct, frozen=True):
    """One run of a task that is over: the task as it was then, with its placement, times and completion."""

    attempt: AttemptId
    task: TaskRun


class Step(msgspec.Struct, frozen=True):
    """What one event led to. To be stored whole, before anyone carries out a command."""

    job: JobRun
    tasks: dict[TaskKey, TaskRun | None]
    """Only those that changed; None is removed."""
    commands: tuple[JobCommand, ...] = ()
    facts: tuple[Fact, ...] = ()
    ended: tuple[AttemptEnd, ...] = ()
    """Task attempts that were placed and are over: the history, which `tasks` may already have gone beyond."""
    job_ended: JobRun | None = None
    """The job at the end of its attempt, if the attempt ended in this step; `job` may already be in the next one."""


class Change:
    """The step in the making: reads through to the state before, and holds what is different."""

    def __init__(
        self, view: JobView, run: JobRun, tasks: Mapping[TaskKey, TaskRun], now: float, policy: LaunchPolicy
    ) -> None:
        self.view = view
        self.run = run
        self.now = now
        self.policy = policy
        self.roles = dict(run.roles)
        self.grace: float | None = None
        """The grace of what is stopped in this step, when not the job's own."""
        self.ended: list[AttemptEnd] = []
        self.job_ended: JobRun | None = None
        self._before = tasks
        self._changed: dict[TaskKey, TaskRun | None] = {}
        self._requested: dict[TaskKey, None] = {}
        self._released: dict[TaskKey, None] = {}
        self._engine: list[EngineCommand] = []
        self._facts: list[Fact] = []

    # -- the job -----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether the current attempt is wanted."""
        return self.run.state in ACTIVE

    def set_job(self, **fields: Any) -> None:
        """Change fields of the job."""
        self.run = msgspec.structs.replace(self.run, **fields)

    def wake(self, at: float) -> None:
        """Have `TimePassed` sent at `at` or before."""
        if self.run.wake_at is None or at < self.run.wake_at:
            self.set_job(wake_at=at)

    def set_role(self, role: str, **fields: Any) -> None:
        """Change counters of a role."""
        self.roles[role] = msgspec.structs.replace(self.roles[role], **fields)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def task(self, key: TaskKey) -> TaskRun | None:
        """The task as it is by now, None where there is none."""
        return self._changed[key] if key in self._changed else self._before.get(key)

    def tasks(self) -> Iterator[TaskRun]:
        """All tasks as they are by now; they may be changed while iterating."""
        for key in [*self._before, *(key for key in self._changed if key not in self._before)]:
            task = self.task(key)
            if task is not None:
                yield task

    def put(self, task: TaskRun) -> TaskRun:
        """Write down a task, new or changed, and count it."""
        key = task.key
        self._count(self.task(key), task)
        self._changed[key] = task
        return task

    def drop(self, key: TaskKey) -> None:
        """Remove a task."""
        self._count(self.task(key), None)
        if key in self._before:
            self._changed[key] = None
        else:
            del self._changed[key]

    def _count(self, before: TaskRun | None, after: TaskRun | None) -> None:
        task = after or before
        if task is None:
            return
        old, new = _counters(before), _counters(after)
        if old != new:
            role = self.roles[task.role]
            fields = {name: getattr(role, name) + (name in new) - (name in old) for name in {*old, *new}}
            self.roles[task.role] = msgspec.structs.replace(role, **fields)

    # -- what is to be done and told -----------------------------------------------------------------------------------

    def request(self, key: TaskKey) -> None:
        """Put a task into the scheduler's queue."""
        self._requested[key] = None

    def release(self, key: TaskKey) -> None:
        """Take a task out of the scheduler's queue, or give back what it holds."""
        self._requested.pop(key, None)
        self._released[key] = None

    def regroup(self, *, whole: bool = False) -> None:
        """Make one gang of all that waits, if a part of it was to be asked for beside the rest (`whole`: in any case)."""
        if not self._requested and not whole:
            return
        for task in self.tasks():
            if task.state is TaskState.CREATION_REQUESTED and task.key not in self._requested:
                self.release(task.key)
                self.request(task.key)

    def start(self, task: TaskRun) -> None:
        """Have the engine start the task's current attempt."""
        self._engine.append(StartTask(self.attempt_of(task)))

    def command(self, command: EngineCommand) -> None:
        """Have an engine do something."""
        self._engine.append(command)

    def forget(self, attempt: AttemptId) -> None:
        """Have the engine drop its record of an attempt that is over."""
        self._engine.append(ForgetTask(attempt))

    def tell(self, kind: str, message: str, task: TaskRun | None = None, **data: object) -> None:
        """Write down a fact, of the job or of one task."""
        if task is None:
            self._facts.append(Fact(kind, message, data=data))
        else:
            self._facts.append(Fact(kind, message, task.role, task.index, self.attempt_of(task), data))

    def attempt_of(self, task: TaskRun) -> AttemptId:
        """The id of the task's current attempt."""
        return self.run.attempt_of(task)

    def invalid(self, note: str, subject: object, trigger: object) -> InvalidTransition:
        """The error that tells the story of something that cannot have happened."""
        where = f"task {subject.key} ({subject.state})" if isinstance(subject, TaskRun) else "the job"
        story = f"{type(trigger).__name__} for {where} of job {self.run.job} ({self.run.state}) is impossible: {note}"
        return InvalidTransition(story, job=self.run, subject=subject, event=trigger, facts=tuple(self._facts))

    def step(self, *, grow: bool) -> Step:
        """The finished step; `grow`: what it asks for joins a gang that has its devices."""
        commands: list[JobCommand] = []
        if self._released:
            commands.append(ReleasePlacement(tuple(self._released)))
        if self._requested:
            commands.append(RequestPlacement(self.run.attempt, tuple(self._requested), grow))
        roles = self.roles if self.roles != self.run.roles else self.run.roles
        return Step(
            msgspec.structs.replace(self.run, roles=roles),
            self._changed,
            (*commands, *self._engine),
            tuple(self._facts),
            tuple(self.ended),
            self.job_ended,
        )


def _counters(task: TaskRun | None) -> tuple[str, ...]:
    """The counters of its role that a task counts in."""
    if task is None:
        return ()
    if task.deletion_pending:
        return ("total", "leaving", "running") if task.state is TaskState.RUNNING else ("total", "leaving")
    if task.state in _WAITING:
        return ("total", "waiting")
    if task.state is TaskState.RUNNING:
        return ("total", "running")
    if task.state is TaskState.COMPLETED:
        succeeded = task.completion is not None and task.completion.succeeded
        return ("total", "succeeded" if succeeded else "failed")
    return ("total",)


def recount(roles: Mapping[str, RoleCount], tasks: Mapping[TaskKey, TaskRun]) -> dict[str, RoleCount]:
    """The counters of `roles` counted anew from `tasks`: what the kept ones must equal."""
    counted = {
        name: dict.fromkeys(("total", "waiting", "running", "succeeded", "failed", "leaving"), 0) for name in roles
    }
    for task in tasks.values():
        for name in _counters(task):
            counted[task.role][name] += 1
    return {name: msgspec.structs.replace(roles[name], **counts) for name, counts in counted.items()}
