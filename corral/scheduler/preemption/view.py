"""What a preempt part sees in one cycle: the running gangs, without the tasks already told to yield."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.policy.history import History
from corral.scheduler.policy.order import Order
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.queues.fair_share import Fairness


class PreemptionView:
    """The running gangs of one cycle. Parts read it; only `look_again` and `memo` are theirs to change."""

    def __init__(self, cluster: Cluster, fairness: Fairness, order: Order, now: float) -> None:
        self.cluster = cluster
        self.fairness = fairness
        """The fair shares of the queues, as they will be once the evicted gangs have ended."""
        self.order = order
        """The policy's order."""
        self.now = now
        """Seconds since 1970."""
        self.next_look_at = inf
        """When the answer about a gang may change without an event."""
        self.evicted: dict[JobId, set[TaskKey]] = {}
        """The tasks told to yield in this cycle."""
        self.memo: dict[object, object] = {}
        """What a part keeps for the rest of the cycle."""

    @property
    def history(self) -> History:
        """Return what each job has received so far."""
        return self.cluster.history

    def look_again(self, at: float) -> None:
        """Note a time at which the answer may change without an event."""
        self.next_look_at = min(self.next_look_at, at)

    def left(self, gang: RunningGang) -> set[TaskKey]:
        """Return the tasks of a gang that are not told to end."""
        left = gang.charges.keys() - gang.leaving
        return left - self.evicted[gang.job] if gang.job in self.evicted else left

    def still(self, victim: Victim) -> Victim | None:
        """Return a victim found earlier in the cycle without tasks told to yield since; None if none are left."""
        evicted = self.evicted.get(victim.gang.job)
        if not evicted:
            return victim
        left = tuple(task for task in victim.tasks if task not in evicted)
        return Victim(victim.gang, victim.rule, victim.cost, left) if left else None

    def whole(self, gang: RunningGang, rule: Rule) -> Victim | None:
        """Return all of a gang as a victim; None if it is not preemptible or a part of it is already leaving."""
        left = self.left(gang)
        if not gang.preemptible or len(left) < len(gang.charges):
            return None
        return Victim(gang, rule, gang.cost(self.now), tuple(left))

    def evictable(self, gang: RunningGang, rule: Rule) -> Victim | None:
        """Return the rest of a gang as a victim for gangs that own none of its cells; None if it must stay.

        A gang in its own cells must stay. Any other gang would be a guest there, and be evicted in turn.
        """
        if not gang.preemptible or gang.guaranteed:
            return None
        left = self.left(gang)
        return Victim(gang, rule, gang.cost(self.now), tuple(left)) if left else None

    def spare(self, gangs: Iterable[RunningGang], queue: str) -> Iterator[Victim]:
        """Yield single spare tasks of elastic gangs; the cost makes the gang with most to spare give first.

        Gangs in their own cells give up tasks only to their own `queue`.
        """
        for gang in gangs:
            if gang.preemptible and (gang.queue == queue or not gang.guaranteed):
                spare = list(gang.spare())
                for rank, task in enumerate(spare):
                    yield Victim(gang, Rule.SHRINK, float(rank - len(spare)), (task,))

    def guests(self, request: GangRequest, owner: str) -> Iterator[Victim]:
        """Yield the victims of an owner in its cells: guests of others, and its own gangs of lower priority."""
        ownership = self.cluster.ownership
        for gang in self.cluster.gangs.by_job.values():
            if gang.job == request.job or not (left := self.left(gang)):
                continue
            own = ownership.owner(gang.queue) == owner
            if not own and not gang.guaranteed:
                yield Victim(gang, Rule.GUARANTEE, gang.cost(self.now), tuple(left))
            elif own and gang.priority < request.priority and (gang.preemptible or not gang.guaranteed):
                rule = Rule.PRIORITY if gang.guaranteed else Rule.GUARANTEE
                yield Victim(gang, rule, gang.cost(self.now), tuple(left))

    def mark_evicted(self, victims: Iterable[Victim]) -> None:
        """Record that these victims yield; for the planner."""
        for victim in victims:
            evicted = self.evicted.setdefault(victim.gang.job, set())
            for task in set(victim.tasks) - evicted:
                self.fairness.move(victim.gang.holder, victim.gang.charges[task], -1)
            evicted.update(victim.tasks)
