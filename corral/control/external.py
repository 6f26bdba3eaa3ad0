"""Why: to a job of `jobType: external` Corral gives places and no more; someone's own controller runs it.

What such a job should have, the targets in its object say; what its controller has, it says in the object's status
(`corral.spec.objectstatus.ExternalStatus`). Nothing is remembered here: from the job's tasks and what the controller says
now follows which tasks have started and which are over, however often it is asked.
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


class ExternalWord(msgspec.Struct, frozen=True, rename="camel"):
    """What a controller says in the status of an object; without one that ever said anything, None stands for it."""

    observed_generation: int = 0
    attempt: int = 0
    replicas: dict[str, int] = {}
    outcome: str = ""
    exit_code: int = 0
    message: str = ""


class ExternalTasks:
    """Stands where an engine would: it hands nothing on, and has whoever watches the objects look at a job again."""

    name = EXTERNAL

    def __init__(self, report: Callable[[EngineEvent], None], now: Callable[[], float]) -> None:
        """`report` tells control what happened; `now` is seconds since 1970."""
        self._report, self._now = report, now
        self.look: Callable[[JobId], None] | None = None
        """Looks at the object of a job; None while nobody watches objects: then whatever is to end has ended."""

    async def open(self) -> None:
        """Nothing is to be found."""

    async def close(self) -> None:
        """Nothing is to be let go."""

    def attempts(self) -> frozenset[AttemptId]:
        """None: the store alone knows them."""
        return frozenset()

    async def inventory(self) -> Inventory:
        """No machines."""
        return Inventory(EXTERNAL, ())

    async def start(self, launch: TaskLaunch) -> None:
        """The targets say it."""
        self._touch(launch.attempt)

    async def stop(self, attempt: AttemptId, *, grace_seconds: float, signal: str = "TERM") -> None:
        """The targets say it."""
        if self.look is None:
            self._report(Exited(attempt, self._now(), _TERMINATED, 15, "nobody watches the objects of the cluster"))
        self._touch(attempt)

    async def forget(self, attempts: Sequence[AttemptId]) -> None:
        """Nothing was kept."""

    async def watch(self) -> AsyncIterator[EngineEvent]:
        """Nothing by itself."""
        return
        yield

    async def exec(self, attempt: AttemptId, argv: Sequence[str], *, tty: bool) -> ExecSession:
        """Raises NotFound: what runs is its controller's."""
        raise NotFound("not-running", f"{attempt} is run by somebody's own controller, not by Corral.")

    async def connect(self, attempt: AttemptId, port: int) -> ExecSession:
        """Raises NotFound: what runs is its controller's."""
        raise NotFound("not-running", f"{attempt} is run by somebody's own controller, not by Corral.")

    def _touch(self, attempt: AttemptId) -> None:
        if self.look is not None:
            self.look(parse_attempt_id(attempt).job)


def said(status: Mapping[str, Any]) -> ExternalWord | None:
    """What a controller says in an object's status; None while none ever said anything, or says nonsense."""
    try:
        return msgspec.convert(status["external"], ExternalWord) if status.get("external") else None
    except msgspec.ValidationError:
        return None


def happened(job: Job, word: ExternalWord | None, *, caught_up: bool, now: float) -> list[EngineEvent]:
    """What follows for the tasks of a job; `caught_up`: the targets in the object are those that hold, and are seen.

    A controller that never said anything has begun nothing, so what it should end has ended.
    """
    if word is None:
        return [_exited(job, task, now, _GIVEN_UP) for task in _tasks(job, _LEAVING)]
    if word.attempt == job.run.attempt and word.outcome:
        return list(_ended(job, word, now))
    if not caught_up:
        return []
    return [*_begun(job, word, now), *_left(job, word, now)]


def _ended(job: Job, word: ExternalWord, now: float) -> Iterator[EngineEvent]:
    code = 0 if word.outcome == "succeeded" else word.exit_code or 1
    for task in _tasks(job, _LEAVING | {TaskState.PREPARING, TaskState.RUNNING}):
        yield Exited(job.run.attempt_of(task), now, code, reason=word.message[:1000])


def _begun(job: Job, word: ExternalWord, now: float) -> Iterator[EngineEvent]:
    """A task has begun when its controller holds as many replicas on its node, those that began before counted first."""
    if word.attempt != job.run.attempt:
        return
    counted = job.spread.counted
    room = Counter(word.replicas)
    for task in _tasks(job, frozenset({TaskState.RUNNING})):
        room[_node(task)] -= task.role == counted
    for task in _tasks(job, frozenset({TaskState.PREPARING})):
        if task.role == counted:
            room[_node(task)] -= 1
        if task.role != counted or room[_node(task)] >= 0:
            yield Started(job.run.attempt_of(task), now, host=_node(task).rpartition("/")[2])


def _left(job: Job, word: ExternalWord, now: float) -> Iterator[EngineEvent]:
    """Those that should leave a node have left it once the controller holds no more there than it should."""
    for task in _tasks(job, _LEAVING):
        if word.replicas.get(_node(task), 0) <= job.spread.targets.get(_node(task), 0):
            yield _exited(job, task, now, _GIVEN_UP)


def _exited(job: Job, task: TaskRun, now: float, why: str) -> Exited:
    return Exited(job.run.attempt_of(task), now, _TERMINATED, 15, why)


def _tasks(job: Job, states: frozenset[TaskState]) -> list[TaskRun]:
    found = [task for task in job.tasks.values() if task.state in states and task.placement is not None]
    return sorted(found, key=lambda task: (task.role, task.index))


def _node(task: TaskRun) -> str:
    return task.placement.node if task.placement is not None else ""
