"""Move running gangs where that helps: to consolidate room for the head, or to let an elastic gang grow.

A move is a checkpoint and a restart. It is proposed only if it gains more device-seconds than it loses, and if every
moved gang has a place to go to.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from operator import itemgetter
from typing import Final, overload

from corral.kernel.ids import JobId
from corral.kernel.units import DEVICE
from corral.model.plan import Rule
from corral.model.requests import GangRequest
from corral.scheduler.cluster.running_gang import RunningGang, joined
from corral.scheduler.placement.room_check import has_room
from corral.scheduler.placement.shape import TaskShape, covers, gang_shape, task_shape
from corral.scheduler.policy.size_targets import SizeTargets
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.victim_search import Preemption
from corral.scheduler.queues.waiting_queue import Queue

HORIZON = 3600.0
"""The most seconds ahead for which a gain counts, also when its duration is unknown."""
_WORTHWHILE = 1.25
"""The smallest growth factor that justifies moving an elastic gang."""
_MOST_MOVERS = 256
_SINGLE = TaskShape(1, "", "", (), 0, 0, 0, ())


_JOB: Final = itemgetter(3)
_EVICTION_KEY: Final = itemgetter(0, 1, 2)
"""What `Victim.key` tells apart of whole gangs that move: priority, cost and start."""


class Movers(Sequence[Victim]):
    """Whole gangs that may move, in eviction order; a victim is made of one when it is looked at, mostly of the first."""

    def __init__(self, found: Sequence[tuple[int, float, float, JobId, RunningGang]]) -> None:
        """Each gang is given after its priority, its cost in device-seconds, its negative start and its job."""
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, at: int) -> Victim: ...

    @overload
    def __getitem__(self, at: slice) -> list[Victim]: ...

    def __getitem__(self, at: int | slice) -> Victim | list[Victim]:
        return [_mover(each) for each in self._found[at]] if isinstance(at, slice) else _mover(self._found[at])


class Migrations:
    """Looks for moves at the end of a cycle."""

    def __init__(self, preemption: Preemption, move_seconds: float, targets: SizeTargets, now: float) -> None:
        """An elastic gang moves at most once per `move_seconds`, and takes no more tasks than its target."""
        self._preemption = preemption
        self._move_seconds = move_seconds
        self._targets = targets
        self._now = now
        self._cluster = preemption.trial.cluster
        self._helpful: dict[Hashable, bool] = {}

    def for_head(self, request: GangRequest, start: float, ask: Sequence[int]) -> tuple[Victim, ...]:
        """Return gangs to move elsewhere so that the head fits now; empty if waiting until `start` is better."""
        if not self.has_devices(ask[0]):
            return ()
        gain = ask[0] / DEVICE * min(HORIZON, start - self._now if start < inf else HORIZON)
        movers = self._movers(gain, ask[0], self._only_room(request))
        if not movers:
            return ()
        chosen = self._preemption.choose(request, movers)
        if not chosen or sum(victim.cost for victim in chosen) >= gain:
            return ()
        if not self._preemption.finds_room_again(request, chosen):
            return ()
        self._preemption.settle(request, ask, chosen)
        return chosen

    def _movers(self, gain: float, most: int, head: TaskShape | None) -> Movers:
        """Return the gangs that may move for the head: the first ones in eviction order, `_MOST_MOVERS` at most.

        Each costs less than `gain` and holds at most half of `most` thousandths of devices. This is asked in each plan
        about all running gangs, so it reads their fields itself.
        """
        now, helpful, evicted = self._now, self._helpful, self._preemption.view.evicted
        found: list[tuple[int, float, float, JobId, RunningGang]] = []
        for shape, gangs in self._cluster.gangs.by_shape().items():
            helps = helpful.get(shape)
            if helps is False:
                continue
            for gang in gangs.values():
                millis = gang.amounts[0]
                if gang.request is None or 2 * millis > most:
                    continue
                if helps is None:
                    helps = helpful[shape] = self._may_help(gang.request, shape, head)
                    if not helps:
                        break
                since = gang.placed_at if gang.placed_at > gang.checkpointed_at else gang.checkpointed_at
                cost = (millis / DEVICE or 1.0) * (now - since) if now > since else 0.0
                if cost < gain and gang.preemptible and not (gang.leaving or evicted.get(gang.job)):
                    found.append((gang.priority, cost, -gang.placed_at, gang.job, gang))
        found.sort(key=_JOB, reverse=True)
        found.sort(key=_EVICTION_KEY)
        return Movers(found[:_MOST_MOVERS])

    def has_devices(self, millis: int) -> bool:
        """Return whether these thousandths of devices, some at all, are free on all machines together."""
        return 0 < millis <= self._free_devices() * DEVICE

    def _only_room(self, request: GangRequest) -> TaskShape | None:
        """Return the task shape of the head if that many single-task places, anywhere, are all it needs; else None."""
        trial = self._preemption.trial
        engines = [index for index in self._cluster.engines.values() if index.tree.nodes]
        if len(engines) != 1 or has_room(trial, request, shape := gang_shape(request)) is None:
            return None
        ask = trial.engine_request(request, engines[0], shape)
        return ask.parts[0].shape if not (ask.required or ask.parts[0].required) else None

    def _makes_room(self, request: GangRequest, head: TaskShape | None) -> bool:
        """Return whether a gang may free more places of the head's shape than it takes elsewhere."""
        return head is None or not all(covers(task_shape(role), head) for role in request.roles)

    def _may_help(self, request: GangRequest, shape: Hashable, head: TaskShape | None) -> bool:
        """Return whether a second gang of this shape would fit and its move could help the head.

        Where room cannot be told from the totals, it is assumed.
        """
        return self._makes_room(request, head) and has_room(self._preemption.trial, request, shape) is not False

    def _free_devices(self) -> int:
        """Return the number of free devices, from the cached room for tasks of one device."""
        return sum(
            int(index.slots(_SINGLE).totals[0][0]) for index in self._cluster.engines.values() if index.tree.nodes
        )

    def for_growth(self, queue: Queue) -> tuple[Victim, GangRequest] | None:
        """Return an elastic gang that gains tasks by restarting elsewhere, with its full request; one per cycle."""
        for group in queue.groups.values():
            for entry in group.entries.values() if not group.starts else ():
                gang = self._cluster.gangs.by_job.get(entry.request.job)
                move = self._preemption.view.whole(gang, Rule.GROW) if gang is not None else None
                if gang is None or gang.request is None or move is None:
                    continue
                if self._now < gang.placed_at + self._move_seconds:
                    self._preemption.view.look_again(gang.placed_at + self._move_seconds)
                    continue
                request = self._targets.whole(joined(gang.request, entry.request) or gang.request)
                held = len(gang.charges)
                more = self._preemption.tasks_without(request, [move])
                gain = (more - held) * gang.amounts[0] / DEVICE / held * HORIZON
                if more >= _WORTHWHILE * held and gain > move.cost:
                    return move, request
        return None


def _mover(found: tuple[int, float, float, JobId, RunningGang]) -> Victim:
    gang = found[4]
    return Victim(gang, Rule.CONSOLIDATION, found[1], tuple(gang.charges))
