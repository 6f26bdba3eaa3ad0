"""Jobs of `jobType: external`: Corral only places them; a third-party controller runs their tasks.

The desired tasks are the targets in the job's object. The controller reports the actual ones in the object's status
(`corral.spec.object_status.ExternalStatus`). This module keeps no state: started and ended tasks follow from the job's
tasks and the current status, however often they are computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from corral.control.core.world import Job
from corral.engines.base import ExecSession
from corral.kernel.errors import NotFound
from corral.kernel.ids import AttemptId, JobId, parse_attempt_id
from corral.model.inventory import Inventory
from corral.model.launch import EngineEvent, Exited, Started, TaskLaunch
from corral.model.runs import TaskRun
from corral.model.states import TaskState

EXTERNAL: Final = "external"
_TERMINATED: Final = 143
_LEAVING: Final = frozenset({TaskState.DELETION_PENDING})
_GIVEN_UP: Final = "its controller has given the place up"


class ControllerReport(msgspec.Struct, frozen=True, rename="camel"):
    """A controller's report in the status of an object; None stands for a controller that has never reported."""

    observed_generation: int = 0
    attempt: int = 0
    replicas: dict[str, int] = {}
    outcome: str = ""
    exit_code: int = 0
    message: str = ""


class ExternalTasks:
    """An engine without actions of its own; it makes the bridge look at a job's object again."""

    name = EXTERNAL

    def __init__(self, report: Callable[[EngineEvent], None], now: Callable[[], float]) -> None:
        """`report` takes events for control; `now` returns seconds since 1970."""
        self._report, self._now = report, now
        self.look: Callable[[JobId], None] | None = None
        """Looks at the object of a job. None while objects are not watched: then a stopped task has ended."""

    async def open(self) -> None:
        """Do nothing: there is no state to find."""

    async def close(self) -> None:
        """Do nothing."""

    def attempts(self) -> frozenset[AttemptId]:
        """No attempts: only the store knows them."""
        return frozenset()

    async def inventory(self) -> Inventory:
        """No nodes."""
        return Inventory(EXTERNAL, ())

    async def start(self, launch: TaskLaunch) -> None:
        """Look at the object; its targets tell the controller to start the task."""
        self._touch(launch.attempt)

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """Look at the object; its targets tell the controller to stop the task."""
        if self.look is None:
            self._report(Exited(attempt, self._now(), _TERMINATED, 15, "nobody watches the objects of the cluster"))
        self._touch(attempt)

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Do nothing: no state is kept."""

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """No events; the bridge reports them."""
        return
        yield

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Raises NotFound, because the task is run by another controller."""
        raise NotFound("not-running", f"{attempt} is run by an external controller, not by Corral.")

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Raises NotFound, because the task is run by another controller."""
        raise NotFound("not-running", f"{attempt} is run by an external controller, not by Corral.")

    def _touch(self, attempt: AttemptId) -> None:
        if self.look is not None:
            self.look(parse_attempt_id(attempt).job)


def controller_report(status: Mapping[str, Any]) -> ControllerReport | None:
    """The controller's report in an object's status; None when there is none or it is invalid."""
    try:
        return msgspec.convert(status["external"], ControllerReport) if status.get("external") else None
    except msgspec.ValidationError:
        return None


def engine_events(job: Job, report: ControllerReport | None, *, caught_up: bool, now: float) -> list[EngineEvent]:
    """The engine events that follow for a job's tasks; `caught_up`: the controller has seen the current targets.

    A controller that has never reported has started nothing, so tasks that should end have ended.
    """
    if report is None:
        return [_exited(job, task, now, _GIVEN_UP) for task in _tasks(job, _LEAVING)]
    if report.attempt == job.run.attempt and report.outcome:
        return list(_ended(job, report, now))
    if not caught_up:
        return []
    return [*_begun(job, report, now), *_left(job, report, now)]


def _ended(job: Job, report: ControllerReport, now: float) -> Iterator[EngineEvent]:
    code = 0 if report.outcome == "succeeded" else report.exit_code or 1
    for task in _tasks(job, _LEAVING | {TaskState.PREPARING, TaskState.RUNNING}):
        yield Exited(job.run.attempt_of(task), now, code, reason=report.message[:1000])


def _begun(job: Job, report: ControllerReport, now: float) -> Iterator[EngineEvent]:
    """Start tasks while the controller has replicas on their node that running tasks do not account for.

    Tasks of roles other than the counted one start at once.
    """
    if report.attempt != job.run.attempt:
        return
    counted = job.tasks_by_node.counted
    room = Counter(report.replicas)
    for task in _tasks(job, frozenset({TaskState.RUNNING})):
        room[_node(task)] -= task.role == counted
    for task in _tasks(job, frozenset({TaskState.PREPARING})):
        if task.role == counted:
            room[_node(task)] -= 1
        if task.role != counted or room[_node(task)] >= 0:
            yield Started(job.run.attempt_of(task), now, host=_node(task).rpartition("/")[2])


def _left(job: Job, report: ControllerReport, now: float) -> Iterator[EngineEvent]:
    """End leaving tasks on nodes where the controller has no more replicas than the target."""
    for task in _tasks(job, _LEAVING):
        if report.replicas.get(_node(task), 0) <= job.tasks_by_node.targets.get(_node(task), 0):
            yield _exited(job, task, now, _GIVEN_UP)


def _exited(job: Job, task: TaskRun, now: float, why: str) -> Exited:
    return Exited(job.run.attempt_of(task), now, _TERMINATED, 15, why)


def _tasks(job: Job, states: frozenset[TaskState]) -> list[TaskRun]:
    found = [task for task in job.tasks.values() if task.state in states and task.placement is not None]
    return sorted(found, key=lambda task: (task.role, task.index))


def _node(task: TaskRun) -> str:
    return task.placement.node if task.placement is not None else ""
