"""Play a job's story event by event: apply each step to a dict and check its invariants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.launcher import JOB_MACHINE, JobView, LaunchPolicy, RetryView, RoleView, Step, create, recount, step
from corral.model.commands import JobCommand, ReleasePlacement, RequestPlacement, StartTask, StopTask
from corral.model.events import JobEvent, Placed, ScaleRequested, StopRequested, TimePassed
from corral.model.facts import Fact
from corral.model.launch import Exited, Started
from corral.model.placement import Placement, TaskPlacement
from corral.model.runs import TaskRun
from corral.model.states import JobState, TaskState

JOB = JobId("0123456789abc")
DEFAULT = LaunchPolicy(retry_first=0.0)
"""A retry follows at once; test_back_off.py has the stories in which it waits."""


def role(name: str = "a", replicas: int = 1, **fields: object) -> RoleView:
    """A role without retries by default."""
    fields.setdefault("retry", RetryView(0, fancy=False))
    return RoleView(name, replicas, **fields)  # type: ignore[arg-type]


def view(*roles: RoleView, **fields: object) -> JobView:
    """A job without retries by default."""
    fields.setdefault("retry", RetryView(0, fancy=False))
    return JobView({one.name: one for one in roles or (role(),)}, **fields)  # type: ignore[arg-type]


@contextmanager
def only_declared_exits(state: JobState, event: JobEvent) -> Iterator[None]:
    """Check that within the block the job leaves `state` only to states in the row of `event`."""
    check, exits = JOB_MACHINE.check, JOB_MACHINE.rows[state, type(event)].exits

    def checked(start: JobState, *path: JobState) -> None:
        check(start, *path)
        assert start is not state or path[0] in exits, f"{type(event).__name__}: {start} -> {path[0]} is not in its row"

    JOB_MACHINE.check = checked  # type: ignore[method-assign]
    try:
        yield
    finally:
        del JOB_MACHINE.check  # type: ignore[method-assign]


class Driver:
    """One job in memory: its state, and all commands and events of its steps."""

    def __init__(self, spec: JobView, *, hold: str = "", policy: LaunchPolicy = DEFAULT) -> None:
        self.spec = spec
        self.policy = policy
        self.now = 1000.0
        self.tasks: dict[TaskKey, TaskRun] = {}
        self.facts: list[Fact] = []
        self.commands: list[JobCommand] = []
        self.waiting: set[TaskKey] = set()
        self.held: dict[TaskKey, TaskPlacement] = {}
        self.ended: list[TaskRun] = []
        self.job_ended: list[object] = []
        self.apply(create(JOB, spec, self.now, hold=hold))

    def apply(self, done: Step) -> Step:
        self.run = done.job
        for key, task in done.tasks.items():
            if task is None:
                self.tasks.pop(key, None)
            else:
                self.tasks[key] = task
        self.facts += done.facts
        self.commands = list(done.commands)
        self.ended += [end.task for end in done.ended]
        self.job_ended += [done.job_ended] if done.job_ended else []
        for command in done.commands:
            if isinstance(command, RequestPlacement):
                assert command.job_attempt == self.run.attempt
                self.waiting |= set(command.tasks)
            elif isinstance(command, ReleasePlacement):
                self.waiting -= set(command.tasks)
                for key in command.tasks:
                    self.held.pop(key, None)
        self.check()
        return done

    def check(self) -> None:
        """Check the invariants after a step."""
        assert recount(self.run.roles, self.tasks) == self.run.roles
        queued = {key for key, task in self.tasks.items() if task.state is TaskState.CREATION_REQUESTED}
        assert queued == self.waiting
        assert {key for key, task in self.tasks.items() if task.holds} == set(self.held)
        for name, count in self.run.roles.items():
            if self.run.state in {JobState.CREATION_REQUESTED, JobState.PREPARING, JobState.RUNNING}:
                assert count.kept + len(count.awaited) == count.target, name

    def send(self, event: JobEvent, spec: JobView | None = None) -> Step:
        self.spec = spec or self.spec
        with only_declared_exits(self.run.state, event):
            done = step(self.spec, self.run, self.tasks, event, self.now, self.policy)
        return self.apply(done)

    # -- the story -----------------------------------------------------------------------------------------------------

    def place(self, *keys: TaskKey | str, node: str = "local/n1") -> Step:
        """Place the waiting tasks, or the named ones."""
        chosen = [self.key(key) for key in keys] or sorted(self.waiting)
        places = tuple(TaskPlacement(key.role, key.index, node, (index,)) for index, key in enumerate(chosen))
        self.held |= {place.key: place for place in places}
        self.waiting -= set(chosen)
        return self.send(Placed(self.run.attempt, Placement(places)))

    def started(self, key: TaskKey | str) -> Step:
        return self.send(Started(self.attempt(key), self.now, process="boot:1:1"))

    def exited(self, key: TaskKey | str, code: int = 0, reason: str = "") -> Step:
        return self.send(Exited(self.attempt(key), self.now, code, reason=reason))

    def start_all(self) -> None:
        """Place the waiting tasks and start the placed ones."""
        if self.waiting:
            self.place()
        for key, task in sorted(self.tasks.items()):
            if task.state is TaskState.PREPARING:
                self.started(key)

    def exit_all(self, keys: Iterable[TaskKey | str] = (), code: int = 0) -> None:
        for key in list(keys) or [key for key, task in sorted(self.tasks.items()) if task.holds]:
            self.exited(key, code)

    def scale(
        self, replicas: int, name: str = "a", *, remove: tuple[int, ...] = (), spec: JobView | None = None
    ) -> Step:
        return self.send(ScaleRequested(name, replicas, "ada", remove), spec)

    def stop(self) -> Step:
        return self.send(StopRequested("ada"))

    def advance(self, seconds: float) -> Step:
        self.now += seconds
        return self.send(TimePassed())

    # -- looking ---------------------------------------------------------------------------------------------------------

    def key(self, key: TaskKey | str) -> TaskKey:
        if isinstance(key, TaskKey):
            return key
        name, _, index = key.rpartition("-")
        return TaskKey(name, int(index))

    def task(self, key: TaskKey | str) -> TaskRun:
        return self.tasks[self.key(key)]

    def attempt(self, key: TaskKey | str) -> AttemptId:
        task = self.task(key)
        return attempt_id(JOB, self.run.attempt, task.role, task.index, task.attempt)

    def state(self, key: TaskKey | str) -> TaskState:
        return self.task(key).state

    def indexes(self, name: str = "a") -> list[int]:
        return sorted(key.index for key in self.tasks if key.role == name)

    def starts(self) -> list[AttemptId]:
        """Attempts that the last step started."""
        return [command.attempt for command in self.commands if isinstance(command, StartTask)]

    def stops(self) -> list[AttemptId]:
        """Attempts that the last step stopped."""
        return [command.attempt for command in self.commands if isinstance(command, StopTask)]
