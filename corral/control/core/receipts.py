"""Receipts for preempted jobs: by whom, why, the cost in device-seconds, and the expected time of return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from corral.control.core.pending_writes import PendingWrites
from corral.control.core.world import Job
from corral.kernel.ids import JobId, TaskKey
from corral.kernel.units import DEVICE, devices
from corral.model.messages import sentence
from corral.model.plan import Eviction, Rule
from corral.model.receipts import Receipt
from corral.model.runs import TaskRun
from corral.model.states import JobState, TaskState


class PreemptionTerms(msgspec.Struct, frozen=True):
    """The terms of a preemption before it is known whether it takes effect."""

    rule: Rule
    message: str
    by_job: str = ""
    by_queue: str = ""
    by_user: str = ""
    back_at: float | None = None
    """Expected time of return; None when unknown."""


def from_eviction(eviction: Eviction, by_user: str = "") -> PreemptionTerms:
    """The terms of an eviction by the scheduler; a job that is only moved yields to no other job."""
    others = eviction.by != eviction.job
    return PreemptionTerms(
        eviction.rule,
        eviction.message,
        by_job=(eviction.by or "") if others else "",
        by_queue=eviction.by_queue if others else "",
        by_user=by_user,
        back_at=eviction.back_at,
    )


class HeldDevices(msgspec.Struct, frozen=True):
    """The devices that a job held before it was preempted."""

    yields: int
    saved_at: float
    """Time of its last checkpoint; 0 when it never reported one."""
    tasks: dict[TaskKey, tuple[int, float | None]]
    """For each task that was placed and not ending: thousandths of devices and start time."""

    @classmethod
    def of(cls, job: Job) -> HeldDevices:
        """The devices that `job` holds now."""
        kept = (TaskState.PREPARING, TaskState.RUNNING)
        uses = {key: _use(task) for key, task in job.tasks.items() if task.state in kept}
        return cls(job.run.yields, job.run.checkpointed_at or 0.0, uses)

    def cost(self, tasks: Iterable[TaskKey], now: float) -> float:
        """Device-seconds that these tasks lose: each since its start, or since a later checkpoint of the job."""
        uses = [self.tasks[key] for key in tasks]
        lost = (
            millis / DEVICE * max(0.0, now - max(started, self.saved_at))
            for millis, started in uses
            if started is not None
        )
        return sum(lost, 0.0)  # the sum of nothing would be an integer, which a journal that is read again has not


def _use(task: TaskRun) -> tuple[int, float | None]:
    return task.placement.device_millis if task.placement else 0, task.started_at


class Receipts:
    """The receipts of jobs that have not come back; new and closed ones go into the pending writes."""

    def __init__(self, found: Sequence[Receipt] = ()) -> None:
        self._open: dict[JobId, list[Receipt]] = {}
        for receipt in found:
            self._open.setdefault(receipt.job, []).append(receipt)

    def fork(self) -> Receipts:
        """An independent copy."""
        twin = Receipts()
        twin._open = {job: receipts[:] for job, receipts in self._open.items()}
        return twin

    def beneficiaries(self) -> dict[JobId, float]:
        """The jobs for which a job that is still away was preempted, in order, with the time of the last preemption."""
        found = [(receipt.at, receipt.by_job) for receipts in self._open.values() for receipt in receipts]
        last = {JobId(job): at for at, job in sorted(found) if job}
        return dict(sorted(last.items()))

    def write(self, pending: PendingWrites, job: Job, before: HeldDevices, why: PreemptionTerms, now: float) -> None:
        """Write a receipt for the tasks that `job` has just given up, if there are any."""
        if job.run.yields == before.yields:
            return
        whole = job.run.yielded is not None and job.run.yielded.rule == why.rule and job.run.completion is not None
        gone = [key for key in before.tasks if whole or (key in job.tasks and job.tasks[key].yielding)]
        if not gone:
            return
        receipt = Receipt(
            job=job.id,
            number=job.run.yields,
            name=job.name,
            user=job.user,
            queue=job.terms.queue,
            job_attempt=job.run.attempt,
            rule=str(why.rule),
            message=sentence(why.message),
            at=now,
            devices=devices(sum(before.tasks[key][0] for key in gone)),
            tasks=() if whole else tuple(gone),
            by_job=why.by_job,
            by_queue=why.by_queue,
            by_user=why.by_user,
            cost_device_seconds=before.cost(gone, now),
            back_at=why.back_at,
        )
        self._open.setdefault(job.id, []).append(receipt)
        pending.receipts[receipt.id] = receipt

    def look(self, pending: PendingWrites, job: Job, now: float) -> None:
        """Close the receipts of a job that is back or has ended."""
        waiting = self._open.get(job.id)
        if waiting is None:
            return
        left = []
        for receipt in waiting:
            if _is_back(job, receipt):
                closed = msgspec.structs.replace(receipt, returned_at=now)
            elif job.completed or not _is_missed(job, receipt):
                closed = msgspec.structs.replace(receipt, over=True)
            else:
                left.append(receipt)
                continue
            pending.receipts[closed.id] = closed
        if left:
            self._open[job.id] = left
        else:
            del self._open[job.id]


def _is_back(job: Job, receipt: Receipt) -> bool:
    if job.run.state is not JobState.RUNNING:
        return False
    if not receipt.tasks:
        return job.run.attempt > receipt.job_attempt
    found = [job.tasks.get(key) for key in receipt.tasks]
    return all(task is not None and task.state is TaskState.RUNNING for task in found)


def _is_missed(job: Job, receipt: Receipt) -> bool:
    """Whether any task that was given up is still to come back; a scale-down may have removed all of them."""
    return not receipt.tasks or any(key in job.tasks for key in receipt.tasks)
