"""Plan a cycle under the `hived` preset: HiveD's algorithm decides placements and preemption.

Gangs are asked about in the policy's order. Cells are reserved for at most one gang per cycle, after all placements, so
that events are planned and committed in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

import msgspec

from corral.kernel.ids import JobId
from corral.model.plan import CellsReserved, Eviction, GangPlacement, Plan, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import NominationLapsed, gang_placed
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.hived.eviction import evictions
from corral.scheduler.planners.hived.gang_placement import YIELDING, GangPlacer, kept_for_it
from corral.scheduler.planners.hived.group_search import Found, PreemptionNeeded
from corral.scheduler.planners.hived.state_fold import Hived
from corral.scheduler.policy.call_guard import begin_plan
from corral.scheduler.policy.faults import PartFailed
from corral.scheduler.policy.order import PriorityOrder, QueueKey
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.gang_resources import asked, placed_amounts
from corral.scheduler.queues.waiting_queue import Entry, Queue
from corral.scheduler.queues.waiting_queue import Group as Alike


class HivedWorld(Protocol):
    """All that a cycle decides on."""

    cluster: Cluster
    queue: Queue
    policy: Policy
    hived: Hived

    @property
    def revision(self) -> tuple[int, ...]:
        """Return counters that differ after each event that changed something."""
        ...


@dataclass
class HivedMemory:
    """The revision for which nothing could be done."""

    cluster: Cluster
    policy: Policy
    seen: tuple[int, ...]


def plan_hived(world: HivedWorld, now: float) -> Plan:
    """Return HiveD's plan: gangs to start now, evictions, and the reasons of the others. Nothing is changed."""
    cluster, queue, policy, state = world.cluster, world.queue, world.policy, world.revision
    begin_plan()
    try:
        queue.arrange(policy.order, cluster.history, now, by_user=False, by_duration=True)
    except PartFailed as failed:
        queue.arrange(PriorityOrder(), cluster.history, now, by_user=False, by_duration=True)
        return msgspec.structs.replace(_plan(world, queue, policy, state, now), faults=(failed.fault,))
    return _plan(world, queue, policy, state, now)


def _plan(world: HivedWorld, queue: Queue, policy: Policy, state: tuple[int, ...], now: float) -> Plan:
    cluster = world.cluster
    memory = queue.memory
    if isinstance(memory, HivedMemory) and memory == HivedMemory(cluster, policy, state) and not queue.expected:
        return Plan(cluster.revision)
    if not len(queue):
        return Plan(cluster.revision)
    trial = Trial(cluster)
    turn = _Turn(trial, world, now)
    try:
        turn.run()
    finally:
        trial.undo()
        turn.close()
    queue.expected = {placed.job for placed in turn.placed}
    settled = not (turn.placed or turn.reserved or turn.evictions or turn.lapsed)
    queue.memory = HivedMemory(cluster, policy, state) if settled else None
    return Plan(
        cluster.revision,
        tuple(turn.placed),
        turn.reasons,
        tuple(turn.evictions),
        tuple(turn.lapsed),
        now if turn.stopped else None,
        tuple(turn.reserved),
    )


def explain_hived(world: HivedWorld, queue: Queue, job: JobId, now: float) -> Reasons | None:
    """Return why a job of this queue waits, by asking HiveD again; None if it does not wait. Nothing is changed."""
    entry = queue.first(job)
    if entry is None:
        return None
    trial = Trial(world.cluster)
    with trial.tentative():
        found = GangPlacer(trial, world.hived, world.policy, now).about(entry.request)
    ahead = queue.position(job) or 0
    if isinstance(found, Found):
        reported = entry.reported
        if reported is not None and reported.binding.code == "queue-limit":
            return msgspec.structs.replace(reported, ahead=ahead)
        return Reasons(Reason("starts-now", "There is room: it starts with the next cycle."), ahead=ahead)
    if isinstance(found, PreemptionNeeded):
        return Reasons(Reason(YIELDING, "The jobs in its cells are preempted with the next cycle."), ahead=ahead)
    return msgspec.structs.replace(found, ahead=ahead)


class _Turn:
    """One pass over the waiting gangs, on HiveD's draft."""

    def __init__(self, trial: Trial, world: HivedWorld, now: float) -> None:
        self.trial = trial
        self.queue = world.queue
        self.now = now
        self.placed: list[GangPlacement] = []
        self.reserved: list[CellsReserved] = []
        self.evictions: list[Eviction] = []
        self.lapsed: list[JobId] = []
        self.reasons: dict[str, Reasons] = {}
        self.stopped = False
        """Whether the rest of the queue is left for another cycle."""
        self._hived = world.hived
        self._placer = GangPlacer(trial, self._hived.draft(), world.policy, now)
        self._queues = trial.cluster.queues
        self._charged: list[tuple[GangRequest, Sequence[int]]] = []

    def run(self) -> None:
        """Handle every gang in order, but only one of several equal ones that wait."""
        groups = list(self.queue.groups.values())
        line = [(group.keys[0], at, 0) for at, group in enumerate(groups)]
        heapify(line)
        while line and not self.stopped:
            _, at, place = heappop(line)
            group = groups[at]
            if self._look(group, group.keys[place]):
                if place + 1 < len(group.keys):
                    heappush(line, (group.keys[place + 1], at, place + 1))
            else:
                for key in group.keys[place + 1 :]:
                    self._report(group.entries[key], self.reasons_of(group, group.keys[place]))

    def close(self) -> None:
        """Undo the charges to the queues."""
        for request, amounts in self._charged:
            self._queues.charge(request.queue, request.user, request.groups, amounts, -1)

    def reasons_of(self, group: Alike, key: QueueKey) -> Reasons:
        """Return the reasons just found for a gang."""
        reported = group.entries[key].reported
        assert reported is not None
        return reported

    def _look(self, group: Alike, key: QueueKey) -> bool:
        """Decide about one gang; return whether equal gangs may get another result."""
        entry = group.entries[key]
        found = self._limited(entry.request) or self._placer.about(entry.request)
        if isinstance(found, Found):
            self._place(found)
            return True
        if isinstance(found, PreemptionNeeded):
            self._reserve(entry, found)
            return True
        if found.binding.code != YIELDING and self._awaited(entry.request.job):
            self._lapse(entry.request.job)
        self._report(entry, found)
        return found.binding.code == YIELDING

    def _awaited(self, job: JobId) -> bool:
        """Return whether other gangs are terminating for a job, or cells are reserved for it."""
        return job in self.queue.nominated or self._placer.keeps(job)

    def _limited(self, request: GangRequest) -> Reasons | None:
        """Return the bound of a queue, user or group that the gang would exceed, as under every policy."""
        if self._queues.plain:
            return None
        refused = self._queues.refusal(request.queue, request.user, request.groups, asked(request, self._queues))
        return Reasons(Reason(*refused)) if refused else None

    def _place(self, found: Found) -> None:
        request = found.request
        self.placed.append(GangPlacement(request.job, request.job_attempt, found.placement))
        self._hived.expect(gang_placed(request, found.placement, self.now))
        amounts = placed_amounts(self.trial.cluster, request, [found.placement])
        self._queues.charge(request.queue, request.user, request.groups, amounts)
        self._charged.append((request, amounts))

    def _reserve(self, entry: Entry, found: PreemptionNeeded) -> None:
        """Reserve the gang's cells and evict the gangs that use them."""
        draft, evicted = self._placer.hived, {each.job for each in self.evictions}
        for reserved in found.reserved:
            self.stopped = self._hived.expect(reserved) or self.stopped
            group = draft.algorithm.groups.get(draft.group_for(reserved.request))
            if group is None:
                continue
            self.reserved.append(reserved)
            leaving = evictions(self.trial.cluster, group, reserved.request, self.now)
            self.evictions += [each for each in leaving if each.job not in evicted]
            evicted |= {each.job for each in leaving}
            if any(cell.user is not None for cell, _ in group.held()):
                self._report(entry, kept_for_it(group))

    def _lapse(self, job: JobId) -> None:
        """End the nomination of a gang after its freed room went elsewhere or became unusable."""
        self.lapsed.append(job)
        self.stopped = self._hived.expect(NominationLapsed(job)) or self.stopped

    def _report(self, entry: Entry, reasons: Reasons) -> None:
        reported = entry.reported
        if reported is None or reported.binding != reasons.binding or reported.possible != reasons.possible:
            entry.reported = msgspec.structs.replace(reasons, ahead=self.queue.ahead(entry.key))
            self.reasons[entry.request.job] = entry.reported
