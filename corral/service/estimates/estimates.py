"""Reports on how good the estimates were, for those who may see their queues."""

from __future__ import annotations

from typing import Final

from corral.kernel.errors import InvalidInput, NotFound
from corral.model.estimates import WINDOWS, EstimateReport, LivedEstimate
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.estimates.report import report
from corral.store.cluster_views import Admission

_DAY: Final = 86_400.0
_INLINE: Final = 2_000
"""Estimates that are counted in this process; more of them take a worker."""


class Estimates:
    """How good the estimates were."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def report(self, actor: Actor, *, queue: str = "", days: int = WINDOWS[0]) -> EstimateReport:
        """How good the estimates of the last days were, by queue; ordinary users see the queues that they may use.

        Raises InvalidInput for other days than 7 and 30, NotFound for a queue that there is not, or not for this actor.
        """
        await self._context.check(actor, "queue.read", Resource("queue", queue))
        if days not in WINDOWS:
            raise InvalidInput("bad-days", f"Estimates are reported for the last {WINDOWS[0]} or {WINDOWS[1]} days.")
        names = {each.name for each in await self._store.queues()} | {"default"}
        if not actor.is_admin:
            admission = await self._store.admission()
            names = {name for name in names if _may_use(actor, name, admission)}
        if queue and queue not in names:
            raise NotFound("queue-not-found", f"There is no queue {queue[:100]}; they are {', '.join(sorted(names))}.")
        now = self._clock.now()
        wanted = None if actor.is_admin and not queue else {queue} if queue else names
        found = await self._store.estimates(now - days * _DAY, wanted)
        return await self._context.run_in_worker(len(found) <= _INLINE, _report, found, now, days)


def _report(found: list[LivedEstimate], now: float, days: int) -> EstimateReport:
    return report(found, now=now, days=days)


def _may_use(actor: Actor, queue: str, admission: Admission) -> bool:
    resource = Resource("queue", queue, queue=queue, restricted=queue in admission.granted)
    return decide(actor, "job.submit", resource).allowed or queue in actor.manages
