"""The changes of one step: the rules write them here, and the counters are kept consistent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from corral.kernel.ids import AttemptId, TaskKey, attempt_id
from corral.launcher.policy import LaunchPolicy
from corral.launcher.state_machine import InvalidTransition
from corral.launcher.view import JobView
from corral.model.commands import EngineCommand, ForgetTask, JobCommand, ReleasePlacement, RequestPlacement, StartTask
from corral.model.exits import NEVER_RETRIED
from corral.model.facts import Fact
from corral.model.runs import JobRun, RoleCount, TaskRun
from corral.model.states import JobState, TaskState

ACTIVE = frozenset({JobState.CREATION_REQUESTED, JobState.PREPARING, JobState.RUNNING})
"""The states in which the current attempt is not ending."""


class AttemptEnd(msgspec.Struct, frozen=True):
    """A task attempt that is over: the task as it was then, with its placement, times and completion."""

    attempt: AttemptId
    task: TaskRun


class Step(msgspec.Struct, frozen=True):
    """The result of one event; store all of it before carrying out a command."""

    job: JobRun
    tasks: dict[TaskKey, TaskRun | None]
    """Changed tasks only; None is a removed task."""
    commands: tuple[JobCommand, ...] = ()
    facts: tuple[Fact, ...] = ()
    ended: tuple[AttemptEnd, ...] = ()
    """Placed task attempts that ended, for the history; `tasks` may already have their successors."""
    job_ended: JobRun | None = None
    """The job at the end of an attempt that ended in this step; `job` may already be in the next attempt."""


class Change:
    """The step under construction: an overlay of changes over the state before."""

    __slots__ = (
        "_before", "_changed", "_engine", "_facts", "_released", "_requested", "ended", "grace", "job_ended", "now",
        "policy", "roles", "run", "view",
    )  # fmt: skip

    def __init__(
        self, view: JobView, run: JobRun, tasks: Mapping[TaskKey, TaskRun], now: float, policy: LaunchPolicy
    ) -> None:
        self.view = view
        self.run = run
        self.now = now
        self.policy = policy
        self.roles = dict(run.roles)
        self.grace: float | None = None
        """The grace period of stops in this step in seconds; None: the job's own."""
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
        """Whether the current attempt is not ending."""
        return self.run.state in ACTIVE

    def set_job(self, **fields: Any) -> None:
        """Change fields of the job."""
        self.run = msgspec.structs.replace(self.run, **fields)

    def wake(self, at: float) -> None:
        """Request a `TimePassed` event at `at` or earlier."""
        if self.run.wake_at is None or at < self.run.wake_at:
            self.set_job(wake_at=at)

    def set_role(self, role: str, **fields: Any) -> None:
        """Change counters of a role."""
        self.roles[role] = msgspec.structs.replace(self.roles[role], **fields)

    # -- tasks -------------------------------------------------------------------------------------------------------

    def task(self, key: TaskKey) -> TaskRun | None:
        """The task's present state; None if it does not exist."""
        return self._changed[key] if key in self._changed else self._before.get(key)

    def tasks(self) -> Iterator[TaskRun]:
        """The present state of all tasks; they may be changed during iteration."""
        for key in [*self._before, *(key for key in self._changed if key not in self._before)]:
            task = self.task(key)
            if task is not None:
                yield task

    def put(self, task: TaskRun) -> TaskRun:
        """Store a new or changed task and update the counters."""
        key, changed = task.key, self._changed
        self._count(changed[key] if key in changed else self._before.get(key), task)
        changed[key] = task
        return task

    def drop(self, key: TaskKey) -> None:
        """Remove a task."""
        self._count(self.task(key), None)
        if key in self._before:
            self._changed[key] = None
        else:
            del self._changed[key]

    def _count(self, before: TaskRun | None, after: TaskRun | None) -> None:
        old = _NONE if before is None else _counters(before)
        new = _NONE if after is None else _counters(after)
        task = after if after is not None else before
        if old is not new and task is not None:
            role = self.roles[task.role]
            fields = {name: getattr(role, name) + by for name, by in _differences(old, new)}
            self.roles[task.role] = msgspec.structs.replace(role, **fields)

    # -- commands and facts --------------------------------------------------------------------------------------------

    def request(self, key: TaskKey) -> None:
        """Put a task into the scheduler's queue."""
        self._requested[key] = None

    def release(self, key: TaskKey) -> None:
        """Remove a task from the scheduler's queue, or release its placement.

        What this step alone requested is only taken back: the scheduler has nothing of that task.
        """
        if key in self._requested:
            del self._requested[key]
        else:
            self._released[key] = None

    def regroup(self, *, whole: bool = False) -> None:
        """Request all waiting tasks as one gang, if this step requests some of them (`whole`: always)."""
        if not self._requested and not whole:
            return
        for task in self.tasks():
            if task.state is TaskState.CREATION_REQUESTED and task.key not in self._requested:
                self.release(task.key)
                self.request(task.key)

    def start(self, task: TaskRun) -> None:
        """Start the task's current attempt on the engine."""
        self._engine.append(StartTask(self.attempt_of(task)))

    def command(self, command: EngineCommand) -> None:
        """Send a command to the engine."""
        self._engine.append(command)

    def forget(self, attempt: AttemptId) -> None:
        """Let the engine drop its record of an attempt that is over."""
        self._engine.append(ForgetTask(attempt))

    def tell(self, kind: str, message: str, task: TaskRun | None = None, **data: object) -> None:
        """Record a fact about the job or one task."""
        if task is None:
            self._facts.append(Fact(kind, message, data=data))
        else:
            self._facts.append(Fact(kind, message, task.role, task.index, self.attempt_of(task), data))

    def attempt_of(self, task: TaskRun) -> AttemptId:
        """The id of the task's current attempt."""
        run = self.run
        return attempt_id(run.job, run.attempt, task.role, task.index, task.attempt)

    def invalid(self, note: str, subject: object, trigger: object) -> InvalidTransition:
        """Build the error for an impossible event, with the state in its details."""
        where = f"task {subject.key} ({subject.state})" if isinstance(subject, TaskRun) else "the job"
        story = f"{type(trigger).__name__} for {where} of job {self.run.job} ({self.run.state}) is impossible: {note}"
        return InvalidTransition(story, job=self.run, subject=subject, event=trigger, facts=tuple(self._facts))

    def step(self, *, grow: bool) -> Step:
        """Build the finished step; `grow`: the requested tasks join a gang that already holds devices."""
        commands: list[JobCommand] = []
        if self._released:
            commands.append(ReleasePlacement(tuple(self._released)))
        if self._requested:
            commands.append(RequestPlacement(self.run.attempt, tuple(self._requested), grow))
        if self.roles != self.run.roles:
            self.set_job(roles=self.roles)
        return Step(
            self.run,
            self._changed,
            (*commands, *self._engine),
            tuple(self._facts),
            tuple(self.ended),
            self.job_ended,
        )


_NONE: Final[tuple[str, ...]] = ()
_TOTAL: Final = ("total",)
_LEAVING: Final = ("total", "leaving")
_LEAVING_RUNNING: Final = ("total", "leaving", "running")
_SUCCEEDED: Final = ("total", "succeeded")
_FAILED: Final = ("total", "failed")
_STOPPED: Final = ("total", "failed", "stopped")
_BY_STATE: Final = {
    TaskState.CREATION_PENDING: ("total", "waiting"),
    TaskState.CREATION_REQUESTED: ("total", "waiting"),
    TaskState.RUNNING: ("total", "running"),
}


def _counters(task: TaskRun) -> tuple[str, ...]:
    """The names of its role's counters that a task counts in; equal answers are mostly one object."""
    state = task.state
    if task.deletion_pending:
        return _LEAVING_RUNNING if state is TaskState.RUNNING else _LEAVING
    if state is TaskState.COMPLETED:
        if task.completion is None:
            return _FAILED
        if task.completion.succeeded:
            return _SUCCEEDED
        return _STOPPED if task.completion.code in NEVER_RETRIED else _FAILED
    return _BY_STATE.get(state, _TOTAL)


@cache
def _differences(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """By how much each counter changes for a task that counted in `old` and now counts in `new`.

    A pure function of some dozen pairs; what it answered stays valid.
    """
    changes = ((name, (name in new) - (name in old)) for name in dict.fromkeys((*old, *new)))
    return tuple((name, by) for name, by in changes if by)


def recount(roles: Mapping[str, RoleCount], tasks: Mapping[TaskKey, TaskRun]) -> dict[str, RoleCount]:
    """Recompute the counters of `roles` from `tasks`; the incremental counters must equal them."""
    counted = {
        name: dict.fromkeys(("total", "waiting", "running", "succeeded", "failed", "leaving", "stopped"), 0)
        for name in roles
    }
    for task in tasks.values():
        for name in _counters(task):
            counted[task.role][name] += 1
    return {name: msgspec.structs.replace(roles[name], **counts) for name, counts in counted.items()}
