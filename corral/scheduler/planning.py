"""Why: one cycle is one pure function of what is known, so production, explanation and simulation are the same code."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import overload

import msgspec

from corral.kernel.ids import JobId
from corral.model.placement import Placement
from corral.model.plan import GangPlacement, Plan, Reason, Reasons
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation, reserve
from corral.scheduler.bulk import place_alike
from corral.scheduler.cluster import Cluster
from corral.scheduler.explaining import why_not
from corral.scheduler.placing import Trial
from corral.scheduler.policy import OrderKey, Policy
from corral.scheduler.queue import Group, Queue

BEHIND = "behind-head"
"""The code of a gang for which there is room, but not without making the first that waits wait longer."""
_RANKS_PER_KEY = 8
"""Finding one place in the line costs as much as so many places of a table of all."""
_MANY_PLACES = 32
"""Above so many places where something was given back every shape is looked at again."""
_FEW_SHAPES = 16
_LOOKED_AT_AGAIN = 2
_REFRESHED = 8
"""So many gangs of a shape hear of new figures each cycle, or that there is room they may not take; all of them hear of
another binding constraint."""


@dataclass(frozen=True)
class Verdict:
    """A shape that did not fit: it holds until something it can use is given back, or the head's reservation is another."""

    reasons: Reasons
    against: Reservation | None
    """The reservation that it was tried against; None when it fits nowhere anyway."""
    gains: int
    """What the cluster's `gains` were."""


@dataclass
class Memory:
    """What is remembered between cycles: it saves work and never changes a decision."""

    cluster: Cluster
    policy: Policy
    machines: int
    gains: int
    returns: int
    reservation: Reservation | None = None
    seen: tuple[int, int] = (-1, -1)
    """The revisions of cluster and queue for which nothing could be placed."""


def plan(cluster: Cluster, queue: Queue, policy: Policy, now: float) -> Plan:
    """What should start now, and why the others wait; `cluster` and `queue` stay as they are, bit for bit.

    Gangs are looked at in the policy's order. Reasons are given for gangs whose reasons are new; they stand whether or
    not the placements are committed. Time is seconds since 1970.
    """
    queue.arrange(policy.order)
    memory = _recall(cluster, queue, policy)
    if memory.seen == (cluster.revision, queue.revision):
        return Plan(cluster.revision)
    trial = Trial(cluster)
    _reconsider(trial, queue, memory)
    cycle = Cycle(trial, queue, policy, memory.reservation, now)
    try:
        cycle.run()
    finally:
        trial.undo()
        for reservation in (cycle.reservation, memory.reservation):
            if reservation is not None:
                reservation.forget()
    queue.expected = {placed.job for placed in cycle.placed}
    memory.reservation = cycle.reservation
    memory.gains, memory.returns = cluster.gains, cluster.returns
    memory.seen = (-1, -1) if cycle.placed else (cluster.revision, queue.revision)
    return Plan(cluster.revision, tuple(cycle.placed), cycle.reasons)


def explain(cluster: Cluster, queue: Queue, policy: Policy, job: JobId, now: float) -> Reasons | None:
    """Why a job waits, worked out anew with today's figures; None when it does not wait.

    A job that the next cycle would start has the code `starts-now`.
    """
    entry = queue.first(job)
    if entry is None:
        return None
    trial, ahead = Trial(cluster), queue.position(job) or 0
    with trial.supposing():
        fits = trial.place(entry.request, entry.shape) is not None
    if not fits:
        return msgspec.structs.replace(why_not(trial, entry.request, entry.shape), ahead=ahead)
    if entry.told is not None and entry.told.binding.code == BEHIND:
        return msgspec.structs.replace(entry.told, ahead=ahead)
    found = plan(cluster, queue.fork(), policy, now)
    starts = Reasons(Reason("starts-now", "There is room: it starts with the next cycle."), ahead=ahead)
    return found.reasons.get(job, starts)


def _recall(cluster: Cluster, queue: Queue, policy: Policy) -> Memory:
    """What still holds of the last cycle: nothing once machines changed or a placement was not taken up."""
    memory = queue.memory
    if (
        not isinstance(memory, Memory)
        or memory.cluster is not cluster
        or memory.policy != policy
        or memory.machines != cluster.machines
        or queue.expected
    ):
        memory = queue.memory = Memory(cluster, policy, cluster.machines, cluster.gains, cluster.returns)
        for group in queue.groups.values():
            group.verdict = None
    return memory


def _reconsider(trial: Trial, queue: Queue, memory: Memory) -> None:
    """Forget the verdicts on shapes that find room where something was given back since the last cycle.

    Others stay refused, with the figures of their last look: when they are many, a few of them are looked at again in
    each cycle, those of the oldest figures first.
    """
    cluster = trial.cluster
    if memory.gains == cluster.gains:
        return
    places = cluster.returned_since(memory.returns)
    refused: list[tuple[int, Group]] = []
    for group in queue.groups.values():
        verdict = group.verdict
        if isinstance(verdict, Verdict) and verdict.reasons.possible:
            request = group.entries[group.keys[0]].request
            if places is None or len(places) > _MANY_PLACES or trial.reaches(request, group.shape, places):
                group.verdict = None
            else:
                refused.append((verdict.gains, group))
    if len(refused) > _FEW_SHAPES:
        refused = sorted(refused, key=lambda found: found[0])[:_LOOKED_AT_AGAIN]
    for _, group in refused:
        group.verdict = None


def _much_the_same(old: str, new: str) -> bool:
    """Whether only the first of a shape hear of it: a place that is free for a moment is theirs, if anybody's."""
    return old == new or BEHIND in (old, new)


class Run(Sequence[GangRequest]):
    """The gangs of a shape from the one at `first` on that come before the next one of any other shape (`other`)."""

    def __init__(self, group: Group, first: int, other: OrderKey | None) -> None:
        self._group = group
        self._first = first
        self._other = other

    def __len__(self) -> int:
        keys = self._group.keys
        return (len(keys) if self._other is None else bisect_left(keys, self._other, self._first)) - self._first

    @overload
    def __getitem__(self, at: int) -> GangRequest: ...

    @overload
    def __getitem__(self, at: slice) -> list[GangRequest]: ...

    def __getitem__(self, at: int | slice) -> GangRequest | list[GangRequest]:
        keys, entries = self._group.keys, self._group.entries
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            return [entries[key].request for key in keys[self._first + start : self._first + stop : step]]
        return entries[keys[self._first + at]].request


class Cycle:
    """One pass over the waiting shapes, in the order of their first gangs."""

    def __init__(self, trial: Trial, queue: Queue, policy: Policy, last: Reservation | None, now: float) -> None:
        self.trial = trial
        self.queue = queue
        self.policy = policy
        self.now = now
        self.placed: list[GangPlacement] = []
        self.reasons: dict[str, Reasons] = {}
        self.reservation: Reservation | None = None
        """Of the head: the first gang in order that waits and could run on the machines that work."""
        self._last = last

    def run(self) -> None:
        """Fill `placed` and `reasons`."""
        groups = list(self.queue.groups.values())
        heap = [(group.keys[0], at, 0) for at, group in enumerate(groups)]
        heapify(heap)
        while heap:
            _, at, first = heappop(heap)
            group = groups[at]
            run = Run(group, first, heap[0][0] if heap else None)
            found = self._place(group, run)
            if isinstance(found, Reasons):
                self._tell(group, first, found)
                continue
            for request, placement in zip(run[: len(found)], found, strict=True):
                self.placed.append(GangPlacement(request.job, request.job_attempt, placement))
            following = first + len(found)
            if following < len(group.keys):
                heappush(heap, (group.keys[following], at, following))

    def _place(self, group: Group, run: Run) -> Sequence[Placement] | Reasons:
        """Place some of a run, at least its first, or say why that one waits."""
        request, known = run[0], group.verdict
        if isinstance(known, Verdict) and (known.against is None or known.against is self.reservation):
            self._maybe_head(request, known.reasons)
            return known.reasons
        if self.reservation is not None and not self.policy.backfill:
            return self._behind("it waits its turn")
        group.verdict = None
        if self.reservation is not None:
            return self._past(self.reservation, group, run)
        found = self._try(group, run)
        if found:
            return found
        reasons = why_not(self.trial, request, group.shape)
        group.verdict = Verdict(reasons, None, self.trial.cluster.gains)
        self._maybe_head(request, reasons)
        return reasons

    def _try(self, group: Group, requests: Sequence[GangRequest]) -> Sequence[Placement]:
        """Places for the first gangs of a run; none when its first finds none."""
        found = place_alike(self.trial, requests, group.shape, self.now)
        if found:
            return found
        marks, request = self.trial.marks(), requests[0]
        placement = self.trial.place(request, group.shape)
        if placement is None:
            return ()
        self.trial.started(request, marks, self.now)
        return (placement,)

    def _past(self, reservation: Reservation, group: Group, run: Run) -> Sequence[Placement] | Reasons:
        """A gang behind the head takes what the head can spare; one that is over by its start may take anything."""
        request = run[0]
        reservation.lift()
        with self.trial.supposing():
            fits = self.trial.place(request, group.shape) is not None
        if not fits:
            reasons = why_not(self.trial, request, group.shape)
            group.verdict = Verdict(reasons, None, self.trial.cluster.gains)
            return reasons
        reservation.hold(self.trial.cluster)
        found = self._try(group, run)
        if not found and reservation.lets_pass(request, self.now):
            reservation.lift()
            found = self._try(group, [request])
        if found:
            return found
        reasons = self._behind("there is room for it, but starting it would make that one wait longer")
        group.verdict = Verdict(reasons, reservation, self.trial.cluster.gains)
        return reasons

    def _maybe_head(self, request: GangRequest, reasons: Reasons) -> None:
        """The first gang that waits gets a reservation; the last cycle's is kept when it is the same.

        Growth that a gang can do without (every minimum 0) reserves nothing.
        """
        if (
            self.reservation is not None
            or not reasons.possible
            or not any(role.minimum for role in request.roles)
        ):
            return
        found = reserve(self.trial, request, self.now)
        if found is not None and found == self._last:
            found = self._last
        self.reservation = found

    def _behind(self, why: str) -> Reasons:
        head = self.reservation.job if self.reservation else ""
        return Reasons(Reason(BEHIND, f"Behind job {head}, the first that waits: {why}."))

    def _tell(self, group: Group, first: int, reasons: Reasons) -> None:
        """Give the reasons to those of a shape that did not hear them yet."""
        if reasons is group.told and not group.fresh:
            return
        if group.told is not None and _much_the_same(group.told.binding.code, reasons.binding.code):
            keys = group.keys[first : first + _REFRESHED]
            keys += sorted(key for key in group.fresh if key > keys[-1])
        else:
            keys = group.keys[first:]
        many = len(keys) * _RANKS_PER_KEY > len(self.queue)
        ahead = self.queue.ranks().__getitem__ if many else self.queue.ahead
        for key in keys:
            entry = group.entries[key]
            if entry.told is None or entry.told.binding != reasons.binding or entry.told.possible != reasons.possible:
                entry.told = Reasons(reasons.binding, reasons.others, ahead(key), reasons.possible)
                self.reasons[entry.request.job] = entry.told
        group.told = reasons
        group.fresh.difference_update(keys)
