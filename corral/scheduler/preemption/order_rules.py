"""Preemption by the policy's order: running gangs yield to a waiting one that the order puts before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from corral.kernel.ids import JobId
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.policy.faults import key_of
from corral.scheduler.policy.order import REVIEW_SECONDS, OrderKey, foreseen, joint
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView


@dataclass(frozen=True)
class ByOrder:
    """Gangs yield to those that the policy's order puts before them, in whichever queue; the last in order goes first.

    This makes an order preemptive, as SRTF, SRSF and 2D-LAS are in their papers. A gang that the order moves back while
    it runs yields when that happens, or within a minute if the order cannot foresee it. A gang runs for `least_seconds`
    before it yields, so that two gangs do not take turns faster than that. Opportunistic gangs (priority below 0) yield
    only where the order says so.
    O(n log n) in the running gangs once a cycle, then O(victims) for each waiting shape that does not fit.
    """

    least_seconds: float = 60.0
    changes_with_time: ClassVar[bool] = False
    """It notes in the view when its answer may change."""

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        """Return whether the order puts some running gang behind this one."""
        last = self._last_first(view)
        return bool(last) and _ranked(last[0][0]) > _ranked(key_of(view.order, gang, view.history, view.now))

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        """Return the running gangs that come after this one, the last one first; on ties the latest job."""
        own = _ranked(key_of(view.order, gang, view.history, view.now))
        found: list[Victim] = []
        for key, _, running in self._last_first(view):
            if not _ranked(key) > own:
                break
            if running.job != gang.job and (victim := view.evictable(running, Rule.ORDER)) is not None:
                found.append(victim)
        return found

    def yields_later(self, gang: GangRequest, head: GangRequest, view: PreemptionView) -> bool:
        """Return whether the order puts the head before this gang by more than the tie-break.

        A gang that comes before the head while it runs, as under SRSF, keeps its place by the order itself. Under an
        order that looks at all gangs together nobody can say: it may prefer the gang for what it has received.
        """
        if joint(view.order):
            return False
        own, other = (_ranked(key_of(view.order, each, view.history, view.now)) for each in (gang, head))
        return own > other

    def _last_first(self, view: PreemptionView) -> list[tuple[OrderKey, JobId, RunningGang]]:
        """Return the gangs that have run for long enough with their keys, the last in order first; kept for the cycle."""
        known = view.memo.get(self)
        if isinstance(known, list):
            return known
        order, history, now = view.order, view.history, view.now
        found = list[tuple[OrderKey, JobId, RunningGang]]()
        knows = order if foreseen(order) else None
        soonest = inf
        for job, running in view.cluster.gangs.by_job.items():
            request, changes_at = running.request, running.placed_at + self.least_seconds
            if request is None:
                continue
            if now >= changes_at:
                changes_at = now + REVIEW_SECONDS if knows is None else knows.moves_back_at(request, history, now)
                found.append((key_of(order, request, history, now), job, running))
            if changes_at < soonest:
                soonest = changes_at
        view.look_again(soonest)
        found.sort(reverse=True)  # no two have the same job
        view.memo[self] = found
        return found


def _ranked(key: OrderKey) -> OrderKey:
    """Return the key without its tie-break: nobody is evicted for a gang that is merely older."""
    return key[:-1]
