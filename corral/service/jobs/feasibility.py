"""Ask whether a job could run: whether its queue takes it, and whether machines could ever hold it."""

from __future__ import annotations

from typing import Final

import msgspec

from corral.frameworks import port_counts
from corral.kernel.errors import Conflict, InvalidInput, Unavailable
from corral.kernel.ids import JobId, TaskKey
from corral.model.inventory import Node
from corral.model.records import WaitingView
from corral.model.request_builder import gang_terms
from corral.model.requests import GangRequest
from corral.model.views import ReasonsView, ReasonView, Trial
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.capacity import Capacity, capacity_obstacle
from corral.service.jobs.job_detail import reasons_view
from corral.spec.errors import did_you_mean
from corral.spec.job import UnifiedJob
from corral.store.cluster_views import Admission

STARTS_NOW: Final = "starts-now"
"""The scheduler's code for a job that the next cycle would start."""
FIT_SECONDS: Final = 5.0
"""Seconds that a positive /fit answer is cached per shape."""
_MAX_FITS: Final = 1000

UNKNOWN_LEVEL: Final = "unknown-level"
"""The scheduler's code for a topology level that no machine has."""


class Feasibility:
    """Whether a queue takes a job, whether any machines could hold it, and whether it would start now."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._clock = context.clock
        self._fits: set[bytes] = set()
        self._fits_on: tuple[Node, ...] | None = None
        self._fits_at = 0.0
        self._counted: tuple[tuple[Node, ...], Capacity] | None = None

    async def check_queue(
        self, actor: Actor, job: UnifiedJob, admission: Admission, *, by: Actor | None = None
    ) -> Decision:
        """Check that a user may submit to the job's queue; `by` is the caller where that is not the user.

        Raises InvalidInput `unknown-queue`, Forbidden, Conflict `queue-closed`.
        """
        queue = job.spec.queue
        there = admission.queues or ("default",)
        if queue not in there:
            near = did_you_mean(queue, there) or f"; there are {len(there)} (corral get queue)"
            end = "" if near.endswith("?") else "."
            raise InvalidInput("unknown-queue", f'There is no queue "{queue}"{near}{end}')
        restricted = queue in admission.granted
        resource = Resource("queue", queue, queue=queue, restricted=restricted)
        decision = await self._context.check(actor, "job.submit", resource, by=by)
        if queue in admission.closed:
            message = f"The queue {queue} takes no new jobs now; choose another, or ask an administrator to open it."
            raise Conflict("queue-closed", message)
        return decision

    async def obstacle(self, actor: Actor, job: UnifiedJob, admission: Admission, *, waits: bool) -> str:
        """Why the known machines could never hold the job: counts are checked here, then cells by control.

        Raises InvalidInput `unknown-level` for a topology level that no machine has, unless the job `waits` for one.
        """
        counted = capacity_obstacle(job, self._counting(admission)) if admission.nodes else ""
        bounded = job.spec.queue in admission.bounded
        if counted or not admission.nodes or not (job.total_devices or _names_levels(job) or bounded):
            return counted
        # Only the sign of the priority matters here: it decides whether the job may claim its queue's own cells.
        gang = _gang(job)
        asked = msgspec.structs.replace(gang, priority=min(gang.priority, 0), groups=actor.groups if bounded else ())
        found = await self._fit(asked, admission)
        if found is None:
            return ""
        if found.code == UNKNOWN_LEVEL and not waits:
            raise InvalidInput(
                UNKNOWN_LEVEL, f"{found.message} To wait for a machine that has it: --wait-for-capacity."
            )
        return found.message

    async def trial(self, actor: Actor, job: UnifiedJob, wait: WaitingView | None, obstacle: str) -> Trial:
        """The result of a dry run; the scheduler tries the job on a fork of its state.

        `wait` is what the job waits for before the scheduler sees it, `obstacle` why no machines could hold it.
        """
        document = job.to_document()
        if obstacle:
            reason = ReasonView("impossible-request", obstacle)
            return Trial(document, would_start=False, reasons=ReasonsView(reason, possible=False))
        if wait is not None:
            return Trial(document, would_start=False, reasons=ReasonsView(ReasonView(wait.code, wait.message)))
        asked = _gang(job, user=actor.user, created_at=self._clock.now())
        try:
            found = await self._context.control.request("/trial", msgspec.to_builtins(asked))
        except Unavailable:
            return Trial(document)
        reasons = reasons_view(found)
        if reasons.binding.code == STARTS_NOW:
            return Trial(document, would_start=True)
        return Trial(document, would_start=False, reasons=reasons)

    def _counting(self, admission: Admission) -> Capacity:
        if self._counted is None or self._counted[0] is not admission.nodes:
            self._counted = (admission.nodes, Capacity(admission.nodes))
        return self._counted[1]

    async def _fit(self, asked: GangRequest, admission: Admission) -> ReasonView | None:
        """Control's reason why no gang of this shape could ever be held; None is cached per shape for `FIT_SECONDS`."""
        now = self._clock.now()
        if admission.nodes is not self._fits_on or not 0 <= now - self._fits_at < FIT_SECONDS:
            self._fits, self._fits_on, self._fits_at = set(), admission.nodes, now
        shape = msgspec.json.encode(asked) + admission.bounded.get(asked.queue, "").encode()
        known = self._fits
        if shape in known:
            return None
        try:
            found = await self._context.control.request("/fit", msgspec.to_builtins(asked))
        except Unavailable:
            return None
        if found:
            return ReasonView(str(found["binding"]["code"]), str(found["binding"]["message"]))
        if len(known) < _MAX_FITS:
            known.add(shape)
        return None


def _gang(job: UnifiedJob, *, user: str = "", created_at: float = 0.0) -> GangRequest:
    """The gang request that the job would have if it were stored."""
    tasks = [TaskKey(role.name, index) for role in job.spec.roles for index in range(job.replicas_of(role.name))]
    return gang_terms(job, port_counts(job)).request(JobId("?"), 0, tasks, user=user, created_at=created_at)


def _names_levels(job: UnifiedJob) -> bool:
    return bool(job.spec.topology.required) or any(role.topology.required for role in job.spec.roles)
