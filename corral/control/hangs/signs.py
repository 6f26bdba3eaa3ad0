"""The signs of life of running jobs: steps that were reported, logs that grow, devices in use."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from typing import Final

import structlog

from corral.control.core.world import Job
from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.model.hangs.patience import Life
from corral.model.metrics.samples import Samples
from corral.model.metrics.task_families import TASK_LABELS, TaskMetric
from corral.model.states import JobState, TaskState
from corral.storage.log_sources import LogSources

log = structlog.get_logger()

_IN_USE: Final = 5.0
"""Percent of a device from which on it is in use."""
_JOB: Final = TASK_LABELS.index("job_instance_id")
_LOGS_SECONDS: Final = 60.0
"""Seconds in which the logs of all watched jobs must have been read."""
_LOG_SECONDS: Final = 5.0
"""Seconds in which the log of one task must answer."""
_PAUSE_SECONDS: Final = 60.0
"""Seconds for which a log that did not answer in time is not asked again."""
_TOGETHER: Final = 16
"""Logs that are asked at the same time."""


class Lives:
    """The lives of the jobs that are watched, each of its present attempt."""

    def __init__(self, logs: LogSources | None, samples: Callable[[], Samples]) -> None:
        """`samples` tells what is measured now; without `logs` none is looked at."""
        self._logs, self._samples = logs, samples
        self._lives: dict[JobId, Life] = {}
        self._steps: dict[JobId, tuple[float, float, float]] = {}
        """By job the first step, when it was reported, and the last step."""
        self._seen: dict[JobId, tuple[frozenset[AttemptId], dict[AttemptId, int]]] = {}
        """By job the attempts that run, and the bytes of their logs as far as they were read."""
        self._asked_at: dict[JobId, float] = {}
        """By job when its logs were asked last."""
        self._late: dict[AttemptId, float] = {}
        """When logs did not answer in time."""

    def forget(self, live: Container[JobId]) -> None:
        """Forget the jobs that are not among those to watch."""
        for gone in [job for job in self._lives if job not in live]:
            self.drop(gone)

    def drop(self, job: JobId) -> None:
        """Forget a job."""
        for known in (self._lives, self._steps, self._seen, self._asked_at):
            known.pop(job, None)

    def of(self, job: Job, now: float) -> Life | None:
        """The life of a job with the steps that it reported; None while no task of it runs."""
        running = running_attempts(job)
        if job.run.state is not JobState.RUNNING or not running:
            self.drop(job.id)
            return None
        life = self._lives.get(job.id)
        if life is None or life.attempt != job.run.attempt:
            self.drop(job.id)
            life = self._lives[job.id] = Life(job.run.attempt, now, now)
            self._seen[job.id] = frozenset(running), {}
        before, sizes = self._seen[job.id]
        if before != frozenset(running):
            life.alive(now)
            self._seen[job.id] = frozenset(running), sizes
        self._take_step(job, life)
        return life

    def _take_step(self, job: Job, life: Life) -> None:
        report = job.run.report
        if report is None or report.step is None or report.at < life.since:
            return
        first, first_at, last = self._steps.setdefault(job.id, (report.step, report.at, report.step - 1))
        if report.step == last:
            return
        self._steps[job.id] = (first, first_at, report.step) if report.step > first else (report.step, report.at, last)
        life.alive(report.at)
        life.steps = True
        if report.step > first and report.at > first_at:
            life.step_seconds = (report.at - first_at) / (report.step - first)

    async def look_beside(self, jobs: Sequence[Job], now: float) -> set[JobId]:
        """Take the other signs of jobs that report no steps: their logs and devices.

        Returns the jobs for whose logs there was no time; those of which none was asked come first in the next look.
        """
        used: defaultdict[str, float] = defaultdict(float)
        for family, labels, value in self._samples().values if jobs else ():
            if family == TaskMetric.DEVICE:
                used[labels[_JOB]] = max(used[labels[_JOB]], value)
        order = sorted((job.id for job in jobs if job.id in self._lives), key=lambda job: self._asked_at.get(job, 0.0))
        found, unread = await self._log_sizes(order, now)
        for job in order:
            if (life := self._lives.get(job)) is None:
                continue
            if used[job] >= _IN_USE:
                life.alive(now)
            running, before = self._seen[job]
            sizes = {attempt: size for attempt, size in found[job].items() if attempt in running}
            if any(size > before.get(attempt, size) for attempt, size in sizes.items()):
                life.alive(now)
            most = {attempt: max(size, before.get(attempt, 0)) for attempt, size in sizes.items()}
            self._seen[job] = running, {each: before[each] for each in running if each in before} | most
        return unread

    async def _log_sizes(
        self, jobs: Sequence[JobId], now: float
    ) -> tuple[dict[JobId, dict[AttemptId, int]], set[JobId]]:
        """The bytes of the logs of some jobs by attempt, and the jobs for which there was no time.

        A log that cannot be read now, or does not answer in time, is left out, as it tells nothing.
        """
        found: dict[JobId, dict[AttemptId, int]] = {job: {} for job in jobs}
        logs = self._logs
        if logs is None:
            return found, set()
        self._late = {attempt: at for attempt, at in self._late.items() if now - at < _PAUSE_SECONDS}
        asked = [(job, attempt) for job in jobs for attempt in self._seen[job][0] if attempt not in self._late]
        left, answered, late = iter(asked), set[AttemptId](), set[AttemptId]()

        async def read() -> None:
            for job, attempt in left:
                self._asked_at[job] = now
                try:
                    async with asyncio.timeout(_LOG_SECONDS):
                        found[job][attempt] = await _log_size(logs, attempt)
                except TimeoutError:
                    late.add(attempt)
                except (CorralError, OSError):
                    pass
                answered.add(attempt)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOGS_SECONDS), asyncio.TaskGroup() as readers:
                for _ in asked[:_TOGETHER]:
                    readers.create_task(read())
        if late:
            self._late |= dict.fromkeys(late, now)
            log.warning("logs of running tasks did not answer in time", tasks=len(late), seconds=_LOG_SECONDS)
        return found, {job for job, attempt in asked if attempt not in answered}


async def _log_size(logs: LogSources, attempt: AttemptId) -> int:
    size = 0
    for stream in await logs.streams(attempt):
        source = await logs.source(attempt, stream)
        try:
            size += await source.size()
        finally:
            await source.close()
    return size


def running_attempts(job: Job) -> dict[AttemptId, str]:
    """The attempts of a job's running tasks, with the names of the tasks."""
    return {
        job.run.attempt_of(task): str(key) for key, task in sorted(job.tasks.items()) if task.state is TaskState.RUNNING
    }
