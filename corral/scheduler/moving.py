"""Why: what ran well where it was put may stand in the way later: moving a few small gangs can be worth it for all.

A move is a checkpoint and a restart; it is proposed only when the device-seconds that it wins are more than those that
are lost, and when everybody who moves has a place to go to.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf

from corral.kernel.units import DEVICE
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.gangs import Running, joined
from corral.scheduler.policy import Policy
from corral.scheduler.preempting import Preemption
from corral.scheduler.queue import Queue
from corral.scheduler.screening import has_room
from corral.scheduler.shapes import TaskShape, covers, gang_shape, task_shape
from corral.scheduler.victims import Victim, in_order

HORIZON = 3600.0
"""Seconds ahead for which a gain counts when nobody knows how long it would last."""
_WORTHWHILE = 1.25
"""A gang moves for at least so many times the tasks that it has."""
_MOST_MOVERS = 256
_SINGLE = TaskShape(1, "", "", (), 0, 0, 0, ())


class Moves:
    """Looks for moves at the end of a cycle."""

    def __init__(self, preemption: Preemption, policy: Policy, now: float) -> None:
        self._preemption = preemption
        self._policy = policy
        self._now = now
        self._cluster = preemption.trial.cluster
        self._helpful: dict[Hashable, bool] = {}

    def for_head(self, request: GangRequest, start: float, ask: Sequence[int]) -> tuple[Victim, ...]:
        """Gangs that fit elsewhere too, so that the first that waits fits now; none when waiting to `start` is better."""
        free = self._free_devices()
        if free * DEVICE < ask[0] or not ask[0]:
            return ()
        gain = ask[0] / DEVICE * min(HORIZON, start - self._now if start < inf else HORIZON)
        head = self._only_room(request)
        movers = [
            victim
            for gang in self._cluster.gangs.by_job.values()
            if gang.request is not None and 2 * gang.amounts[0] <= ask[0]
            if gang.cost(self._now) < gain and self._may_help(gang, gang.request, head)
            if (victim := self._preemption.rules.whole(gang, Rule.CONSOLIDATION)) is not None
        ]
        chosen = self._preemption.choose(request, in_order(movers)[:_MOST_MOVERS])
        if not chosen or sum(victim.cost for victim in chosen) >= gain:
            return ()
        if not self._preemption.finds_room_again(request, chosen):
            return ()
        self._preemption.settle(request, ask, chosen)
        return chosen

    def _only_room(self, request: GangRequest) -> TaskShape | None:
        """What a task of the gang needs when so many places for it, wherever they are, are all that the gang needs."""
        trial = self._preemption.trial
        engines = [index for index in self._cluster.engines.values() if index.tree.nodes]
        if len(engines) != 1 or has_room(trial, request, shape := gang_shape(request)) is None:
            return None
        ask = trial.ask(request, engines[0], shape)
        return ask.parts[0].shape if not (ask.required or ask.parts[0].required) else None

    def _makes_room(self, request: GangRequest, head: TaskShape | None) -> bool:
        """Whether a gang may leave more places of the head's shape than it takes elsewhere."""
        return head is None or not all(covers(task_shape(role), head) for role in request.roles)

    def _may_help(self, gang: Running, request: GangRequest, head: TaskShape | None) -> bool:
        """Whether there is room for a second one of it, and its move may leave more room for the head; once a shape.

        Of a shape that cannot be told by looking, room is supposed.
        """
        shape = gang.shape
        if shape is None:
            shape = gang.shape = gang_shape(request)
        if shape not in self._helpful:
            helps = self._makes_room(request, head) and has_room(self._preemption.trial, request, shape) is not False
            self._helpful[shape] = helps
        return self._helpful[shape]

    def _free_devices(self) -> int:
        """How many devices are free, as the indexes keep it for tasks of one device."""
        return sum(
            int(index.slots(_SINGLE).totals[0][0]) for index in self._cluster.engines.values() if index.tree.nodes
        )

    def for_growth(self, queue: Queue) -> tuple[Victim, GangRequest] | None:
        """An elastic gang that waits to grow and gets more tasks by starting anew, and all it asks for; one a cycle."""
        for group in queue.groups.values():
            for entry in group.entries.values() if not group.starts else ():
                gang = self._cluster.gangs.by_job.get(entry.request.job)
                move = self._preemption.rules.whole(gang, Rule.GROW) if gang is not None else None
                if gang is None or gang.request is None or move is None:
                    continue
                if self._now < gang.placed_at + self._policy.move_seconds:
                    self._preemption.rules.look_again(gang.placed_at + self._policy.move_seconds)
                    continue
                request = joined(gang.request, entry.request) or gang.request
                held = len(gang.charges)
                more = self._preemption.tasks_without(request, [move])
                gain = (more - held) * gang.amounts[0] / DEVICE / held * HORIZON
                if more >= _WORTHWHILE * held and gain > move.cost:
                    return move, request
        return None
