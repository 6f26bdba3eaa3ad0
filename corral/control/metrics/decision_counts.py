"""Count what control has decided since its start, from the batches that were stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from corral.control.core.world import Job
from corral.kernel.ids import JobId
from corral.model.metrics.counts import Counts
from corral.model.metrics.families import Metric
from corral.model.metrics.samples import Samples
from corral.model.phases import Phase, phase
from corral.model.store_writes import ControlBatch, FactWrite

_BY_RULE: Final = {"job.preempted": Metric.PREEMPTED, "job.shrunk": Metric.SHRUNK}


class DecisionCounts:
    """Counters and histograms of a control, through all its recoveries. Times are in seconds since 1970."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._waits_since: dict[JobId, float] = {}
        self._queues: dict[JobId, str] = {}
        """Of all jobs that are not over: an ended one has left the core when its end is stored."""

    def begin(self, jobs: Mapping[JobId, Job]) -> None:
        """Go on with the jobs of a core that was built anew."""
        self._waits_since.clear()
        self._queues = {job.id: job.terms.queue for job in jobs.values()}
        for job in jobs.values():
            if phase(job.run) is Phase.WAITING:
                self._waits_since[job.id] = job.run.waits_since or job.created_at

    def stepped(self, seconds: float) -> None:
        """Count a step of the core."""
        self._counts.observe(Metric.STEPS, seconds)

    def stored(self, writes: ControlBatch, jobs: Mapping[JobId, Job], seconds: float) -> None:
        """Count what a step has decided, once it is stored; `jobs` are those that are not over after it."""
        self._counts.observe(Metric.COMMITS, seconds)
        for write in writes.jobs:
            job = jobs.get(write.id)
            if job is not None:
                self._queues[write.id] = job.terms.queue
        for each in writes.facts:
            self._take(each)
        for write in writes.jobs:
            if not write.live and (queue := self._queues.pop(write.id, None)) is not None:
                self._waits_since.pop(write.id, None)
                self._counts.add(Metric.ENDED, queue, write.phase)
        for gone in writes.removed_jobs:
            self._queues.pop(gone, None)
            self._waits_since.pop(gone, None)

    def samples(self) -> Samples:
        """What was counted up to now."""
        return self._counts.samples()

    def _take(self, each: FactWrite) -> None:
        kind, job = each.fact.kind, each.job
        queue = self._queues.get(job)
        if queue is None:
            return
        if kind == "job.queued":
            self._waits_since.setdefault(job, each.at)
        elif kind == "job.placed":
            self._counts.add(Metric.PLACED, queue)
        elif kind == "job.started" and (since := self._waits_since.pop(job, None)) is not None:
            self._counts.observe(Metric.WAITS, max(0.0, each.at - since), queue)
        elif (family := _BY_RULE.get(kind)) is not None:
            self._counts.add(family, queue, str(each.fact.data.get("rule", "")))
