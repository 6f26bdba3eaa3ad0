"""Why: who may be asked to yield to whom is a matter of named rules; everything else about preemption is only search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from corral.kernel.ids import JobId, TaskKey
from corral.model.plan import Rule
from corral.model.queues import Reclaim, WithinQueue
from corral.model.requests import GangRequest
from corral.scheduler.cluster import Cluster
from corral.scheduler.fairness import Fairness
from corral.scheduler.gangs import Running
from corral.scheduler.queues import QueueNode

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
    """A running gang that a waiting one may have ended, and why; or some tasks of an elastic one."""

    gang: Running
    rule: Rule
    cost: float
    """Device-seconds of work lost; of a task that an elastic gang gives up: less the more it has to spare."""
    tasks: tuple[TaskKey, ...]
    clears: bool = False
    """Whether it has to be gone before its queue may take anything back from others."""

    def key(self) -> tuple[int, bool, int, float, float]:
        """Who yields first: by rule, then lowest priority, least damage, latest start; then who was submitted last."""
        gang, rule = self.gang, Rule.RECLAIM if self.clears else self.rule
        return (_RULES.index(rule), not self.clears, gang.priority, self.cost, -gang.placed_at)

    @property
    def amounts(self) -> list[int]:
        """What its tasks hold, in the terms of the queues."""
        return [sum(column) for column in zip(*(self.gang.charges[task] for task in self.tasks), strict=True)]


def in_order(victims: Iterable[Victim]) -> list[Victim]:
    """Who yields first, first."""
    latest_first = sorted(victims, key=lambda victim: victim.gang.job, reverse=True)
    return sorted(latest_first, key=Victim.key)


class Rules:
    """Who may be asked in one cycle; those who were told to yield in it already are left out."""

    def __init__(self, cluster: Cluster, fairness: Fairness, now: float) -> None:
        self.cluster = cluster
        self.fairness = fairness
        self.now = now
        self.again = inf
        """When a gang that is still protected by its minimum run time may be looked at again."""
        self.told: dict[JobId, set[TaskKey]] = {}
        """The tasks that were told to yield in this cycle."""
        self._ranked: dict[tuple[str, int], list[Victim]] = {}
        self._nobody: dict[tuple[str, int], bool] = {}

    def tell(self, victims: Iterable[Victim]) -> None:
        """These yield."""
        for victim in victims:
            told = self.told.setdefault(victim.gang.job, set())
            for task in set(victim.tasks) - told:
                self.fairness.move(victim.gang.holder, victim.gang.charges[task], -1)
            told.update(victim.tasks)

    def look_again(self, at: float) -> None:
        """Something may be otherwise at this time though nothing happens until then."""
        self.again = min(self.again, at)

    def ranked(self, request: GangRequest, ask: Sequence[int]) -> list[Victim]:
        """The running gangs that the rules let this one have ended, who yields first first."""
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
        left = [replace(victim, clears=True) if victim.gang.job in first else victim for victim in left]
        return in_order([*left, *borrowers])

    def nobody(self, request: GangRequest) -> bool:
        """Whether it is plain that nobody may be asked: no lower priority, nothing to spare, and no other queue."""
        key = (request.queue, request.priority)
        found = self._nobody.get(key)
        if found is None:
            alone = self.cluster.gangs.by_queue.keys() <= {request.queue}
            found = self._nobody[key] = alone and next(self._lasting(request), None) is None
        return found

    def anyone(self, request: GangRequest, ask: Sequence[int]) -> bool:
        """Whether there is anybody who may be asked."""
        known = self._ranked.get((request.queue, request.priority))
        if known is not None and any(self._still(victim) is not None for victim in known):
            return True
        return bool(self.ranked(request, ask))

    def _still(self, victim: Victim) -> Victim | None:
        """A victim found earlier in the cycle as it is now."""
        told = self.told.get(victim.gang.job)
        if not told:
            return victim
        left = tuple(task for task in victim.tasks if task not in told)
        return Victim(victim.gang, victim.rule, victim.cost, left) if left else None

    def _lasting(self, request: GangRequest) -> Iterator[Victim]:
        """Those whose standing does not change while the cycle runs."""
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

    def _whole(self, gangs: Iterable[Running], rule: Rule) -> Iterator[Victim]:
        """Those of the gangs that may yield, each with what is left of it.

        None in its own cells: `guests` says who takes those. Anybody else would be a guest there, whom it ends in turn.
        """
        for gang in gangs:
            if gang.preemptible and not gang.guaranteed:
                left = gang.charges.keys() - gang.leaving
                if left:
                    yield Victim(gang, rule, gang.cost(self.now), tuple(left))

    def _spare(self, gangs: Iterable[Running], queue: str) -> Iterator[Victim]:
        """Single tasks of elastic gangs that have more than they need; who has most to spare gives first."""
        for gang in gangs:
            if gang.preemptible and (gang.queue == queue or not gang.guaranteed):
                spare = list(gang.spare())
                for rank, task in enumerate(spare):
                    yield Victim(gang, Rule.SHRINK, float(rank - len(spare)), (task,))

    def guests(self, request: GangRequest, owner: str) -> Iterator[Victim]:
        """Who yields to an owner in its cells: the guests of others, and its own gangs of lower priority."""
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

    def whole(self, gang: Running, rule: Rule) -> Victim | None:
        """All of a gang that is not told to yield yet; None when it may not be asked to, or only a part is left."""
        left = self._left(gang)
        if not gang.preemptible or len(left) < len(gang.charges):
            return None
        return Victim(gang, rule, gang.cost(self.now), tuple(left))

    def _left(self, gang: Running) -> set[TaskKey]:
        left = gang.charges.keys() - gang.leaving
        return left - self.told[gang.job] if gang.job in self.told else left

    def _clearing(self, own: QueueNode, ask: Sequence[int], victims: Sequence[Victim]) -> Sequence[Victim]:
        """The fewest of its own lower priorities with whom gone a queue that holds its part or less would do so again.

        None of them where all of them are not enough, or none has to go. (Kueue's classical preemption within a cohort.)
        """
        if self.fairness.entitled(own, own, ask) or any(over > 0 for over in self.fairness.beyond(own)):
            return ()
        lower = [victim for victim in victims if victim.rule is Rule.PRIORITY]
        for count in range(1, len(lower) + 1):
            if self.fairness.entitled(own, own, _less(ask, lower[:count])):
                return lower[:count]
        return ()

    def _borrowers(self, request: GangRequest, own: QueueNode, ask: Sequence[int]) -> Iterator[Victim]:
        """Gangs of the queues that hold more than their fair part, while this one's has less than its own."""
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
        self, gangs: Sequence[Running], request: GangRequest, own: QueueNode, theirs: QueueNode
    ) -> Iterator[Victim]:
        """The gangs of a queue beyond its part: what elastic ones have to spare first, then whole ones, newest first."""
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
    """What is asked for besides what these give back."""
    left = list(ask)
    for victim in victims:
        left = [max(0, amount - given) for amount, given in zip(left, victim.amounts, strict=True)]
    return left


def _newest_first(gang: Running) -> tuple[float, tuple[int, ...]]:
    return (-gang.placed_at, tuple(-ord(letter) for letter in gang.job))
