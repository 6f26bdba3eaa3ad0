"""The signs of life of running jobs: steps that were reported, logs that grow, devices in use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from typing import Final

from corral.control.core.world import Job
from corral.kernel.errors import CorralError
from corral.kernel.ids import AttemptId, JobId
from corral.model.hangs.patience import Life
from corral.model.metrics.samples import Samples
from corral.model.metrics.task_families import TASK_LABELS, TaskMetric
from corral.model.states import JobState, TaskState
from corral.storage.log_sources import LogSources

_IN_USE: Final = 5.0
"""Percent of a device from which on it is in use."""
_JOB: Final = TASK_LABELS.index("job_instance_id")


class Lives:
    """The lives of the jobs that are watched, each of its present attempt."""

    def __init__(self, logs: LogSources | None, samples: Callable[[], Samples]) -> None:
        """`samples` tells what is measured now; without `logs` none is looked at."""
        self._logs, self._samples = logs, samples
        self._lives: dict[JobId, Life] = {}
        self._steps: dict[JobId, tuple[float, float, float]] = {}
        """By job the first step, when it was reported, and the last step."""
        self._seen: dict[JobId, tuple[frozenset[AttemptId], int]] = {}
        """By job the attempts that run, and the bytes of their logs."""

    def forget(self, live: Container[JobId]) -> None:
        """Forget the jobs that are not among those to watch."""
        for gone in [job for job in self._lives if job not in live]:
            self.drop(gone)

    def drop(self, job: JobId) -> None:
        """Forget a job."""
        for known in (self._lives, self._steps, self._seen):
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
            self._seen[job.id] = frozenset(running), -1
        before, size = self._seen[job.id]
        if before != frozenset(running):
            life.alive(now)
            self._seen[job.id] = frozenset(running), size
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

    async def look_beside(self, jobs: Sequence[Job], now: float) -> None:
        """Take the other signs of jobs that report no steps: their logs and devices."""
        if not jobs:
            return
        used: defaultdict[str, float] = defaultdict(float)
        for family, labels, value in self._samples().values:
            if family == TaskMetric.DEVICE:
                used[labels[_JOB]] = max(used[labels[_JOB]], value)
        for job in jobs:
            life = self._lives.get(job.id)
            if life is None:
                continue
            if used[job.id] >= _IN_USE:
                life.alive(now)
            running, before = self._seen[job.id]
            size = await self._log_bytes(running)
            if before not in (-1, size):
                life.alive(now)
            self._seen[job.id] = running, size

    async def _log_bytes(self, attempts: frozenset[AttemptId]) -> int:
        """The bytes of the logs of some attempts; those that cannot be read count nothing."""
        size = 0
        for attempt in attempts if self._logs is not None else ():
            try:
                for stream in await self._logs.streams(attempt):  # type: ignore[union-attr]
                    source = await self._logs.source(attempt, stream)  # type: ignore[union-attr]
                    try:
                        size += await source.size()
                    finally:
                        await source.close()
            except CorralError:
                continue
        return size


def running_attempts(job: Job) -> dict[AttemptId, str]:
    """The attempts of a job's running tasks, with the names of the tasks."""
    return {
        job.run.attempt_of(task): str(key) for key, task in sorted(job.tasks.items()) if task.state is TaskState.RUNNING
    }
