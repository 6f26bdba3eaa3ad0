"""Add up what the attempts of tasks use, from what is measured of them, for the accounts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from corral.control.loop import Control
from corral.kernel.errors import Unavailable
from corral.kernel.ids import AttemptId, JobId, TaskKey, attempt_id
from corral.kernel.units import DEVICE
from corral.model.metrics.samples import Value
from corral.model.metrics.task_families import TASK_LABELS, TaskMetric
from corral.model.runs import TaskRun
from corral.model.states import TaskState
from corral.model.usage import GIB, Measured
from corral.monitor.look_again import look_again
from corral.spec.idle_rule import IdleRule

EVERY_SECONDS: Final = 15.0
STORED_EVERY: Final = 4
"""Looks after which sums are stored: a kill loses a minute of them."""
LONGEST_SECONDS: Final = 60.0
"""The most seconds of one look: after a longer pause nobody knows what was used in it."""
MOST_CORES: Final = 100_000
"""Cores beyond which a figure is no figure."""
_AT_ONCE: Final = 500
"""Attempts that are stored in one transaction, so that none holds up the scheduler's own."""
_RUNS: Final = frozenset({TaskState.RUNNING, TaskState.DELETION_PENDING})
_UNKNOWN: Final = "store-outcome-unknown"
_ROLE, _INDEX, _JOB = (TASK_LABELS.index(each) for each in ("role_name", "task_index", "job_instance_id"))
_FAMILIES: Final = frozenset({TaskMetric.CPU, TaskMetric.CPU_SECONDS, TaskMetric.MEMORY, TaskMetric.POWER})
IDLE_BELOW: Final = IdleRule().below
"""Percent of use below which a device counts as idle in the accounts, whatever rule its queue has."""


class Figures(NamedTuple):
    """What is measured of a task now."""

    by_family: Mapping[str, float]
    use: tuple[float, ...] = ()
    """Of its devices that tell their use, in percent."""
    held: int = 0
    """Devices that it holds; a part of one counts as one."""
    devices: float = 0.0
    """The same in whole devices."""
    age: float = 0.0
    """Seconds since its attempt began."""


class _Seen(NamedTuple):
    """The last look at an attempt."""

    at: float
    cpu_seconds: float | None


class MeasuredUse:
    """Sums what attempts use between two looks, and stores the sums now and then."""

    def __init__(
        self,
        control: Control,
        measured: Callable[[], Iterable[Value]],
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        """`measured` is what is measured of tasks now; `steady` is a clock in seconds that is never set."""
        self._control, self._measured, self._steady = control, measured, steady
        self._seen: dict[AttemptId, _Seen] = {}
        self._sums: dict[AttemptId, Measured] = {}
        self._looks = 0

    async def run(self, ready: asyncio.Event) -> None:
        """Look from when control leads until cancelled."""
        await look_again(ready, self.look, lambda: EVERY_SECONDS, "what tasks use is not counted")

    async def look(self) -> None:
        """Add what was used since the last look. Raises CorralError like the store; what was not stored is kept."""
        now = self._steady()
        figures = figures_by_attempt(self._control, self._measured())
        seen: dict[AttemptId, _Seen] = {}
        for attempt, found in figures.items():
            before = self._seen.get(attempt)
            seconds = min(EVERY_SECONDS, found.age) if before is None else now - before.at
            self._sums[attempt] = self._sums.get(attempt, Measured()).plus(
                used(found, min(max(0.0, seconds), LONGEST_SECONDS), before and before.cpu_seconds)
            )
            seen[attempt] = _Seen(now, found.by_family.get(TaskMetric.CPU_SECONDS))
        self._seen = seen
        self._looks += 1
        if self._looks % STORED_EVERY == 0:
            await self.store()

    async def store(self) -> None:
        """Store the sums. Raises CorralError like the store."""
        while self._sums:
            part = {attempt: self._sums[attempt] for attempt in list(self._sums)[:_AT_ONCE]}
            try:
                await self._control.store.add_measured(self._control.epoch, part)
            except Unavailable as error:
                if error.code == _UNKNOWN:  # it may be stored: what is counted twice is worse than what is not
                    self._drop(part)
                raise
            self._drop(part)

    def _drop(self, part: Iterable[AttemptId]) -> None:
        for attempt in part:
            del self._sums[attempt]


def figures_by_attempt(control: Control, measured: Iterable[Value]) -> dict[AttemptId, Figures]:
    """What is measured of each attempt that runs."""
    by_task: dict[tuple[str, str, str], dict[str, float]] = {}
    use: dict[tuple[str, str, str], list[float]] = {}
    for family, labels, value in measured:
        if family in _FAMILIES:
            by_task.setdefault((labels[_JOB], labels[_ROLE], labels[_INDEX]), {})[family] = value
        elif family == TaskMetric.DEVICE:
            use.setdefault((labels[_JOB], labels[_ROLE], labels[_INDEX]), []).append(value)
    found: dict[AttemptId, Figures] = {}
    now = control.clock.now()
    for named in by_task.keys() | use.keys():
        id_, role, index = named
        job = control.world.jobs.get(JobId(id_))
        key = TaskKey(role, int(index))
        task = None if job is None else job.tasks.get(key)
        if job is not None and task is not None and task.state in _RUNS and task.started_at is not None:
            attempt = attempt_id(job.id, job.run.attempt, role, key.index, task.attempt)
            age = max(0.0, now - task.started_at)
            found[attempt] = Figures(by_task.get(named, {}), tuple(use.get(named, ())), *_held(task), age)
    return found


def _held(task: TaskRun) -> tuple[int, float]:
    """The devices of a task, and the same in whole ones."""
    placement = task.placement
    return (0, 0.0) if placement is None else (len(placement.devices), placement.device_millis / DEVICE)


def used(found: Figures, seconds: float, cpu_before: float | None) -> Measured:
    """What was used in so many seconds, by the figures at their end and the processor time at their beginning.

    Of a part of a device the use of the whole one counts, as no device tells that of its parts.
    """
    figures = found.by_family
    cpu, counted = figures.get(TaskMetric.CPU, 0.0) / 100 * seconds, figures.get(TaskMetric.CPU_SECONDS)
    if counted is not None and cpu_before is not None and 0 <= counted - cpu_before <= MOST_CORES * seconds:
        cpu = counted - cpu_before
    memory = figures.get(TaskMetric.MEMORY, 0.0) / GIB * seconds
    joules = max(0.0, figures.get(TaskMetric.POWER, 0.0)) * seconds
    return Measured(seconds, max(0.0, cpu), max(0.0, memory), joules, *_use_of_devices(found, seconds))


def _use_of_devices(found: Figures, seconds: float) -> tuple[float, float, float]:
    """Device-seconds of devices that tell their use, used ones, and idle ones.

    A task's processes may use devices that it does not hold: these count for the mean, and not as more devices.
    """
    told = [min(100.0, each) for each in found.use if each >= 0]
    if not told or not found.held:
        return 0.0, 0.0, 0.0
    measured = seconds * found.devices * min(1.0, len(told) / found.held)
    idle = sum(each < IDLE_BELOW for each in told) / len(told)
    return measured, measured * sum(told) / len(told) / 100, measured * idle
