"""Preemption by the policy's order: running gangs yield to a waiting one that the order puts before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.policy.order import OrderKey
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView


@dataclass(frozen=True)
class ByOrder:
    """Gangs yield to those that the policy's order puts before them, in whichever queue; the last in order goes first.

    This makes an order preemptive, as SRTF, SRSF and 2D-LAS are in their papers. A gang that the order moves back while
    it runs yields at the next look. A gang runs for `least_seconds` before it yields, so that two gangs do not
    take turns faster than that. Opportunistic gangs (priority below 0) yield only where the order says so.
    O(n log n) in the running gangs, for each waiting shape that does not fit.
    """

    least_seconds: float = 60.0
    changes_with_time: ClassVar[bool] = True

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        """Return whether some other gang runs."""
        return bool(view.cluster.gangs.by_job.keys() - {gang.job})

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        """Return the running gangs that come after this one, the last one first; on ties the latest job."""
        own = view.order.key(gang, view.history, view.now)
        found: list[tuple[OrderKey, str, Victim]] = []
        for running in view.cluster.gangs.by_job.values():
            if running.request is None or running.job == gang.job:
                continue
            if view.now < running.placed_at + self.least_seconds:
                view.look_again(running.placed_at + self.least_seconds)
                continue
            key = view.order.key(running.request, view.history, view.now)
            if (_ranked(key) > _ranked(own)) and (victim := view.evictable(running, Rule.ORDER)) is not None:
                found.append((key, running.job, victim))
        return [victim for _, _, victim in sorted(found, key=lambda each: each[:2], reverse=True)]


def _ranked(key: OrderKey) -> OrderKey:
    """Return the key without its tie-break: nobody is evicted for a gang that is merely older."""
    return key[:-1]
