"""The rules of preemption: which running gangs may be asked to yield to a waiting one, and in which order.

`ByRules` is the default *preempt* part of a policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from corral.model.plan import Rule
from corral.model.queues import Reclaim, WithinQueue
from corral.model.requests import GangRequest
from corral.scheduler.cluster.running_gang import RunningGang
from corral.scheduler.preemption.victim import Victim, in_order
from corral.scheduler.preemption.view import PreemptionView
from corral.scheduler.queues.queue_tree import QueueNode


@dataclass(frozen=True)
class ByRules:
    """Gangs yield by their queues' rules: opportunistic ones, spare tasks, borrowers, then lower priority.

    Within a rule the lowest priority goes first, then the least work lost, then the latest start. Time changes the
    answer only where a minimum run time ends, and the view is told of that. O(running gangs of the queues asked), once
    for each queue and priority in a cycle.
    """

    changes_with_time: ClassVar[bool] = False

    def may_have(self, gang: GangRequest, ask: Sequence[int] | None, view: PreemptionView) -> bool:
        """Return whether some gang may yield; without `ask`, quickly and without a look at other queues' shares."""
        rules = self._rules(view)
        return not rules.nobody_preemptible(gang) if ask is None else rules.anyone(gang, ask)

    def candidates(self, gang: GangRequest, ask: Sequence[int], view: PreemptionView) -> Sequence[Victim]:
        """Return the gangs that the rules allow to be evicted, in eviction order."""
        return self._rules(view).ranked(gang, ask)

    def _rules(self, view: PreemptionView) -> Rules:
        found = view.memo.get(Rules)
        if not isinstance(found, Rules):
            found = view.memo[Rules] = Rules(view)
        return found


class Rules:
    """The possible victims in one cycle by the queues' rules."""

    def __init__(self, view: PreemptionView) -> None:
        self.view = view
        self.cluster = view.cluster
        self.fairness = view.fairness
        self._ranked: dict[tuple[str, int], list[Victim]] = {}
        self._nobody: dict[tuple[str, int], bool] = {}

    def ranked(self, request: GangRequest, ask: Sequence[int]) -> list[Victim]:
        """Return the running gangs that the rules allow to be evicted for this one, in eviction order."""
        key = (request.queue, request.priority)
        known = self._ranked.get(key)
        if known is None:
            known = self._ranked[key] = in_order(self._lasting(request))
        left = [
            victim for victim in map(self.view.still, known) if victim is not None and victim.gang.job != request.job
        ]
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
        if known is not None and any(self.view.still(victim) is not None for victim in known):
            return True
        return bool(self.ranked(request, ask))

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
        yield from self.view.spare((gang for gang in elastic if gang.priority <= request.priority), own.name)

    def _whole(self, gangs: Iterable[RunningGang], rule: Rule) -> Iterator[Victim]:
        """Yield those of the gangs that may yield, each with its remaining tasks."""
        return (victim for gang in gangs if (victim := self.view.evictable(gang, rule)) is not None)

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
        for victim in self.view.spare(sorted(elastic, key=_newest_first), own.name):
            if (still := self.view.still(victim)) is not None:
                yield still
        for gang in gangs:
            if gang.guaranteed or not gang.preemptible or gang.priority < 0 or gang.job == request.job:
                continue
            if own.spec.reclaim is Reclaim.LOWER_PRIORITY and gang.priority >= request.priority:
                continue
            protected_until = gang.placed_at + theirs.spec.min_runtime_seconds
            if self.view.now < protected_until:
                self.view.look_again(protected_until)
            elif left := self.view.left(gang):
                yield Victim(gang, Rule.RECLAIM, gang.cost(self.view.now), tuple(left))


def _less(ask: Sequence[int], victims: Iterable[Victim]) -> list[int]:
    """Return the requested amounts less those that these victims return."""
    left = list(ask)
    for victim in victims:
        left = [max(0, amount - given) for amount, given in zip(left, victim.amounts, strict=True)]
    return left


def _newest_first(gang: RunningGang) -> tuple[float, tuple[int, ...]]:
    return (-gang.placed_at, tuple(-ord(letter) for letter in gang.job))
