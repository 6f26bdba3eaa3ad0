"""The rules of preemption: which running gangs may be asked to yield to a waiting one, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.queues import Reclaim, WithinQueue
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.queues.fair_share import Fairness
from corral.scheduler.queues.queue_tree import QueueNode

_RULES = (
    Rule.GUARANTEE,
    Rule.OPPORTUNISTIC,
    Rule.SHRINK,
    Rule.RECLAIM,
    Rule.PRIORITY,
    Rule.CONSOLIDATION,
    Rule.GROW,
)


@dataclass(frozen=True, slots=True)
class Victim:
    """A running gang, or some tasks of an elastic one, that may be evicted, with the rule that allows it."""

    gang: RunningGang
    rule: Rule
    cost: float
    """Device-seconds of work lost; for a spare task of an elastic gang a rank, lower the more the gang can spare."""
    tasks: tuple[TaskKey, ...]
    evict_before_reclaim: bool = False
    """Whether it must be gone before its queue may reclaim anything from others."""

    def key(self) -> tuple[int, bool, int, float, float]:
        """Return the eviction order: by rule, lowest priority, smallest loss, then latest start."""
        gang, rule = self.gang, Rule.RECLAIM if self.evict_before_reclaim else self.rule
        return (_RULES.index(rule), not self.evict_before_reclaim, gang.priority, self.cost, -gang.placed_at)

    @property
    def amounts(self) -> list[int]:
        """Return the holdings of its tasks, as a queue resource vector."""
        return [sum(column) for column in zip(*(self.gang.charges[task] for task in self.tasks), strict=True)]


def in_order(victims: Iterable[Victim]) -> list[Victim]:
    """Return victims in eviction order; on ties the latest submitted job comes first."""
    latest_first = sorted(victims, key=lambda victim: victim.gang.job, reverse=True)
    return sorted(latest_first, key=Victim.key)


class Rules:
    """The possible victims in one cycle, without those already told to yield in it."""

    def __init__(self, cluster: Cluster, fairness: Fairness, now: float) -> None:
        self.cluster = cluster
        self.fairness = fairness
        self.now = now
        self.next_look_at = inf
        """When a gang that its minimum run time still protects may be asked again."""
        self.evicted: dict[JobId, set[TaskKey]] = {}
        """The tasks told to yield in this cycle."""
        self._ranked: dict[tuple[str, int], list[Victim]] = {}
        self._nobody: dict[tuple[str, int], bool] = {}

    def mark_evicted(self, victims: Iterable[Victim]) -> None:
        """Record that these victims yield."""
        for victim in victims:
            evicted = self.evicted.setdefault(victim.gang.job, set())
            for task in set(victim.tasks) - evicted:
                self.fairness.move(victim.gang.holder, victim.gang.charges[task], -1)
            evicted.update(victim.tasks)

    def look_again(self, at: float) -> None:
        """Note a time at which the answer may change without an event."""
        self.next_look_at = min(self.next_look_at, at)

    def ranked(self, request: GangRequest, ask: Sequence[int]) -> list[Victim]:
        """Return the running gangs that the rules allow to be evicted for this one, in eviction order."""
        key = (request.queue, request.priority)
        known = self._ranked.get(key)
        if known is None:
            known = self._ranked[key] = in_order(self._lasting(request))
        left = [victim for victim in map(self._still, known) if victim is not None and victim.gang.job != request.job]
        own = self.fairness.queues.find(request.queue)
        alone = self.cluster.gangs.by_queue.keys() <= {own.name}
        if alone or own.spec.reclaim is Reclaim.NEVER or request.priority < 0:
            return left
        clearing = self._clearing(own, ask, left)
        borrowers = list(self._borrowers(request, own, _less(ask, clearing)))
        if not borrowers:
            return left
        first = {victim.gang.job for victim in clearing}
        left = [replace(victim, evict_before_reclaim=True) if victim.gang.job in first else victim for victim in left]
        return in_order([*left, *borrowers])

    def nobody_preemptible(self, request: GangRequest) -> bool:
        """Return whether there can be no victims: no lower priority, no spare tasks, and no other queue."""
        key = (request.queue, request.priority)
        found = self._nobody.get(key)
        if found is None:
            alone = self.cluster.gangs.by_queue.keys() <= {request.queue}
            found = self._nobody[key] = alone and next(self._lasting(request), None) is None
        return found

    def anyone(self, request: GangRequest, ask: Sequence[int]) -> bool:
        """Return whether there is any victim."""
        known = self._ranked.get((request.queue, request.priority))
        if known is not None and any(self._still(victim) is not None for victim in known):
            return True
        return bool(self.ranked(request, ask))

    def _still(self, victim: Victim) -> Victim | None:
        """Return a victim found earlier in the cycle without tasks told to yield since; None if none are left."""
        evicted = self.evicted.get(victim.gang.job)
        if not evicted:
            return victim
        left = tuple(task for task in victim.tasks if task not in evicted)
        return Victim(victim.gang, victim.rule, victim.cost, left) if left else None

    def _lasting(self, request: GangRequest) -> Iterator[Victim]:
        """Yield the victims that stay the same during the cycle."""
        gangs = self.cluster.gangs
        own = self.fairness.queues.find(request.queue)
        if request.priority >= 0:
            for levels in gangs.by_queue.values():
                for priority, members in levels.items():
                    if priority < 0:
                        yield from self._whole(members.values(), Rule.OPPORTUNISTIC)
        if own.spec.within_queue is WithinQueue.LOWER_PRIORITY:
            below = (gang for gang in gangs.below(own.name, request.priority) if gang.priority >= 0)
            yield from self._whole(below, Rule.PRIORITY)
        elastic = gangs.elastic.get(own.name, {}).values()
        yield from self._spare((gang for gang in elastic if gang.priority <= request.priority), own.name)

    def _whole(self, gangs: Iterable[RunningGang], rule: Rule) -> Iterator[Victim]:
        """Yield those of the gangs that may yield, each with its remaining tasks.

        Gangs in their own cells are left out: `guests` handles those. Any other gang would be a guest there, and be
        evicted in turn.
        """
        for gang in gangs:
            if gang.preemptible and not gang.guaranteed:
                left = gang.charges.keys() - gang.leaving
                if left:
                    yield Victim(gang, rule, gang.cost(self.now), tuple(left))

    def _spare(self, gangs: Iterable[RunningGang], queue: str) -> Iterator[Victim]:
        """Yield single spare tasks of elastic gangs; the cost makes the gang with most to spare give first."""
        for gang in gangs:
            if gang.preemptible and (gang.queue == queue or not gang.guaranteed):
                spare = list(gang.spare())
                for rank, task in enumerate(spare):
                    yield Victim(gang, Rule.SHRINK, float(rank - len(spare)), (task,))

    def guests(self, request: GangRequest, owner: str) -> Iterator[Victim]:
        """Yield the victims of an owner in its cells: guests of others, and its own gangs of lower priority."""
        ownership = self.cluster.ownership
        for gang in self.cluster.gangs.by_job.values():
            if gang.job == request.job or not (left := self._left(gang)):
                continue
            own = ownership.owner(gang.queue) == owner
            if not own and not gang.guaranteed:
                yield Victim(gang, Rule.GUARANTEE, gang.cost(self.now), tuple(left))
            elif own and gang.priority < request.priority and (gang.preemptible or not gang.guaranteed):
                rule = Rule.PRIORITY if gang.guaranteed else Rule.GUARANTEE
                yield Victim(gang, rule, gang.cost(self.now), tuple(left))

    def whole(self, gang: RunningGang, rule: Rule) -> Victim | None:
        """Return all of a gang as a victim; None if it is not preemptible or a part of it is already leaving."""
        left = self._left(gang)
        if not gang.preemptible or len(left) < len(gang.charges):
            return None
        return Victim(gang, rule, gang.cost(self.now), tuple(left))

    def _left(self, gang: RunningGang) -> set[TaskKey]:
        left = gang.charges.keys() - gang.leaving
        return left - self.evicted[gang.job] if gang.job in self.evicted else left

    def _clearing(self, own: QueueNode, ask: Sequence[int], victims: Sequence[Victim]) -> Sequence[Victim]:
        """Return the fewest own gangs of lower priority that must go before the queue may reclaim from others.

        Applies to a queue that holds no more than its fair share. Empty if all of them are not enough, or none has to
        go. (Kueue's classical preemption within a cohort.)
        """
        if self.fairness.entitled(own, own, ask) or any(over > 0 for over in self.fairness.beyond(own)):
            return ()
        lower = [victim for victim in victims if victim.rule is Rule.PRIORITY]
        for count in range(1, len(lower) + 1):
            if self.fairness.entitled(own, own, _less(ask, lower[:count])):
                return lower[:count]
        return ()

    def _borrowers(self, request: GangRequest, own: QueueNode, ask: Sequence[int]) -> Iterator[Victim]:
        """Yield gangs of queues above their fair share, if this queue stays within its own."""
        queues = self.fairness.queues
        for name, levels in self.cluster.gangs.by_queue.items():
            sides = queues.apart(own.name, name)
            if sides is None or not self.fairness.entitled(own, sides[0], ask):
                continue
            beyond = self.fairness.beyond(sides[1])
            wanted = [at for at, amount in enumerate(ask) if amount and beyond[at] > 0]
            if not wanted:
                continue
            gangs = [
                gang for _, members in sorted(levels.items()) for gang in sorted(members.values(), key=_newest_first)
            ]
            for victim in self._yielding(gangs, request, own, queues.find(name)):
                amounts = victim.amounts
                if any(beyond[at] > 0 and amounts[at] for at in wanted):
                    beyond = [left - held for left, held in zip(beyond, amounts, strict=True)]
                    yield victim

    def _yielding(
        self, gangs: Sequence[RunningGang], request: GangRequest, own: QueueNode, theirs: QueueNode
    ) -> Iterator[Victim]:
        """Yield victims in a queue above its share: spare tasks of elastic gangs, then whole gangs, newest first."""
        elastic = self.cluster.gangs.elastic.get(theirs.name, {}).values()
        for victim in self._spare(sorted(elastic, key=_newest_first), own.name):
            if (still := self._still(victim)) is not None:
                yield still
        for gang in gangs:
            if gang.guaranteed or not gang.preemptible or gang.priority < 0 or gang.job == request.job:
                continue
            if own.spec.reclaim is Reclaim.LOWER_PRIORITY and gang.priority >= request.priority:
                continue
            protected_until = gang.placed_at + theirs.spec.min_runtime_seconds
            if self.now < protected_until:
                self.look_again(protected_until)
            elif left := self._left(gang):
                yield Victim(gang, Rule.RECLAIM, gang.cost(self.now), tuple(left))


def _less(ask: Sequence[int], victims: Iterable[Victim]) -> list[int]:
    """Return the requested amounts less those that these victims return."""
    left = list(ask)
    for victim in victims:
        left = [max(0, amount - given) for amount, given in zip(left, victim.amounts, strict=True)]
    return left


def _newest_first(gang: RunningGang) -> tuple[float, tuple[int, ...]]:
    return (-gang.placed_at, tuple(-ord(letter) for letter in gang.job))
