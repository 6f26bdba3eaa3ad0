"""Read a journal ahead: how long its tasks ran, so that they run as long under the candidate."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from corral.control.core.intents import IntentsRead
from corral.control.core.world import Job
from corral.control.journal.recorded_runs import Ran, ReadRuns, TaskRuns
from corral.control.journal.records import Begun, Checkpoint, Step, beginning_at, decoded
from corral.control.what_if.run_times import RunTimes
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId, JobId, TaskKey, parse_attempt_id
from corral.kernel.units import DEVICE
from corral.model.store_writes import LiveJob
from corral.model.what_if import PastRun
from corral.spec.job import UnifiedJob

_MOST_PAST: Final = 5000
"""The last ended jobs from which unknown run times are drawn."""


@dataclass
class Foresight:
    """What a journal says of run times. Times are in seconds since 1970."""

    begun_at: float = inf
    """The time of the beginning from which it is replayed; infinite: it has none."""
    until: float = 0.0
    """When the last step to be compared was made; 0: there is none."""
    read_until: float = 0.0
    """When the last step was made."""
    runs: ReadRuns = field(default_factory=ReadRuns)
    _jobs: dict[JobId, LiveJob] = field(default_factory=dict)
    _ended: deque[tuple[LiveJob, float]] = field(default_factory=lambda: deque(maxlen=_MOST_PAST))

    def begin(self, begun: Begun) -> None:
        """Read how the first core began."""
        self.begun_at = begun.at
        self.runs.begin_with(begun.state.jobs, begun.at)
        self._jobs.update((job.id, job) for job in begun.state.jobs)

    def take(self, step: Step) -> None:
        """Read one step."""
        self.read_until = step.at
        for each in step.inputs:
            if isinstance(each, IntentsRead):
                self._jobs.update(each.jobs)
        for attempt, ran in self.runs.take(step):
            job = None if ran.code else self._jobs.pop(parse_attempt_id(attempt).job, None)
            if job is not None:
                self._ended.append((job, ran.seconds))

    def past(self) -> Iterable[PastRun]:
        """The run times of the jobs that ended last."""
        return [PastRun(job.user, job.name, job.queue, _devices(job), seconds) for job, seconds in self._ended]


def _devices(job: LiveJob) -> float:
    return job.summary.devices or UnifiedJob.model_validate_json(job.doc).device_millis / DEVICE


def read_ahead(records: Iterable[bytes], since: float, until: float) -> Foresight:
    """Read from the last beginning before `since` (else the first one) to the end; compared is up to `until`.

    Raises InvalidInput for a record that cannot be read.
    """
    found = Foresight()
    for data in records:
        at = beginning_at(data)
        if at is not None and (found.begun_at == inf or at <= since):
            record = decoded(data)
            found = Foresight()
            found.begin(record.begun if isinstance(record, Checkpoint) else _begun(record))
        elif at is None and found.begun_at < inf:
            record = decoded(data)
            if isinstance(record, Step):
                found.take(record)
                if record.at <= until:
                    found.until = record.at
    return found


def _begun(record: object) -> Begun:
    if not isinstance(record, Begun):
        raise InvalidInput("no-beginning", "A record of the journal says that it is a beginning and is none.")
    return record


class KnownRuns:
    """How long tasks run under the candidate: as long as they did, else as long as it is to be expected."""

    def __init__(self, ahead: Foresight, expected: RunTimes, after: float) -> None:
        """Runs that ended before `after`, in seconds since 1970, are left out; `expected` has those not recorded."""
        self._ahead = ahead
        self._after = after
        self._expected = expected
        self._runs: dict[tuple[JobId, TaskKey], TaskRuns] = {}
        self._open: dict[tuple[JobId, TaskKey], float] = {}
        self._started_in = {task: stopped[-1].start_seconds for task, stopped in ahead.runs.interrupted.items()}
        for attempt, since in ahead.runs.started.items():
            self._open[_task(attempt)] = since
            self._started_in[_task(attempt)] = ahead.runs.start_seconds.get(attempt, 0.0)
        stops = ahead.runs.stop_seconds
        self._usual_stop = _mean(stops.values())
        self._usual_start = _mean(ran.start_seconds for runs in ahead.runs.runs.values() for ran in runs)

    def begin(self, job: Job, attempt: AttemptId, at: float) -> Ran:
        """The run of a task that begins now."""
        return self._of(attempt).begin(at) or self._unrecorded(job, attempt)

    def stop(self, attempt: AttemptId, at: float) -> None:
        """The run of a task is stopped."""
        self._of(attempt).stop(at)

    def _of(self, attempt: AttemptId) -> TaskRuns:
        key = _task(attempt)
        runs = self._runs.get(key)
        if runs is None:
            runs = self._runs[key] = TaskRuns(self._ahead.runs.runs.get(key, ()), self._after)
        return runs

    def stop_seconds(self, job: JobId) -> float:
        """How long a task takes to end when it is asked to: as long as the job's did, else as the others did."""
        return self._ahead.runs.stop_seconds.get(job, self._usual_stop)

    def _unrecorded(self, job: Job, attempt: AttemptId) -> Ran:
        key = _task(attempt)
        since = self._open.get(key)
        known = [each.seconds for each in self._ahead.runs.interrupted.get(key, ())]
        elapsed = max([0.0 if since is None else self._ahead.read_until - since, *known])
        return Ran(self._expected.drawn(job, elapsed), 0, self._start_seconds(key))

    def _start_seconds(self, key: tuple[JobId, TaskKey]) -> float:
        """How long a task takes to start: as long as for its last run, else the usual time more than it had for it."""
        known = self._started_in.get(key)
        if known is not None:
            return known
        had = self._ahead.runs.unstarted.get(key)
        return 0.0 if had is None else had + self._usual_start


def _mean(values: Iterable[float]) -> float:
    """The mean; 0 of none."""
    known = list(values)
    return sum(known) / len(known) if known else 0.0


def _task(attempt: AttemptId) -> tuple[JobId, TaskKey]:
    parsed = parse_attempt_id(attempt)
    return parsed.job, parsed.task
