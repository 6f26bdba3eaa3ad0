"""Try a waiting gang with a changed request on the real planner.

Every try leaves the cluster bit for bit as it was and runs on a fork of the queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from typing import NamedTuple

from corral.kernel.ids import JobId
from corral.model.plan import Plan
from corral.model.requests import GangRequest
from corral.scheduler.backfill import Reservation
from corral.scheduler.cells.owned_placement import place_best
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import GangQueued
from corral.scheduler.placement.trial import Trial
from corral.scheduler.planners.builtin.planning import ALIKE, Memory, plan
from corral.scheduler.policy.allot import AsManyAsFit
from corral.scheduler.policy.faults import PartFailed
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.question_places import QuestionPlaces
from corral.scheduler.policy.size_targets import SizeTargets
from corral.scheduler.queues.gang_resources import asked
from corral.scheduler.queues.waiting_queue import Entry, Queue

_TRY_COST = 4096
"""The most waiting groups and known ends examined by all tries of one question together.

Also the most gangs at which the policy's *allot* part looks in all checks for room.
"""
_FITS_COST = 32_768
"""The most nodes examined by all checks for room of one question together."""
_MOST_TRIES = 32
_MOST_FITS = 512
_MOST_TARGETS = 32
"""The most checks for room where each asks the policy's *allot* part, which looks at all gangs."""


class Bound(NamedTuple):
    """A bound of a queue on one resource: the kind of bound, the index of the resource, and the amount."""

    queue: str
    kind: str
    """`limit`, `borrowing`, `user_limit` or `group_limit`."""
    at: int
    most: float


class PlannerTrial:
    """Tries changed requests of one waiting gang, as often as their cost allows."""

    def __init__(self, cluster: Cluster, queue: Queue, policy: Policy, entry: Entry, now: float) -> None:
        self.cluster = cluster
        self.policy = policy
        self.request = entry.request
        self.now = now
        self._asked = queue
        self._places = QuestionPlaces(policy, cluster, queue, now)
        self._queue = queue.fork_about(entry.request.job, ALIKE)
        self._queue.unexplained = True
        nodes = sum(len(index.tree.nodes) for index in cluster.engines.values())
        self.tries = max(2, min(_MOST_TRIES, _TRY_COST // (1 + len(queue.groups) + len(cluster.ends))))
        """The number of whole cycles that may still be tried."""
        self.looks = max(16, min(_MOST_FITS, _FITS_COST // (1 + nodes)))
        """The number of checks for room that may still be made."""
        elastic = any(role.minimum < len(role.indexes) for role in self.request.roles)
        for_it = elastic or bool(getattr(policy.allot, "every_gang", False))
        self._may_have_target = for_it and not isinstance(policy.allot, AsManyAsFit)
        if self._may_have_target:
            gangs = len(self._queue) + len(cluster.gangs.by_job)
            self.looks = min(self.looks, max(2, min(_MOST_TARGETS, _TRY_COST // (1 + gangs))))

    @cached_property
    def head(self) -> Reservation | None:
        """Return the reservation of the head of the queue, or None if there is none or this gang is the head."""
        memory = self._queue.memory
        found = memory.head(self._asked, self.now) if isinstance(memory, Memory) else None
        return found if found is not None and found.job != self.request.job else None

    def fits(self, request: GangRequest, bound: Bound | None = None) -> bool:
        """Return whether it has room and no bound against it, beside the head's place: necessary but not sufficient."""
        self.looks -= 1
        head = self.head  # found before, as it asks the policy's part itself
        wanted = self._limited(request, bound)
        return wanted is not None and self._places.find(lambda: self._fits(wanted, bound, head))

    def _limited(self, request: GangRequest, bound: Bound | None) -> GangRequest | None:
        """Return the request with its target's tasks and model of device; None if the policy lets it have no task now.

        Without an answer of the policy's part it is the request itself: the next plan tells that the part failed.
        """
        if not self._may_have_target:
            return request
        with self._asking(request) as queue, self._bounded_by(bound):
            try:
                return SizeTargets(self.cluster, queue, self.policy.allot, self.now).limited(request)
            except PartFailed:
                return request

    def _fits(self, request: GangRequest, bound: Bound | None, head: Reservation | None) -> bool:
        trial, queues = Trial(self.cluster), self.cluster.queues
        with self._bounded_by(bound), trial.tentative():
            if queues.refusal(request.queue, request.user, request.groups, asked(request, queues)):
                return False
            if head is not None:
                head.hold_unless_passed(request, self.cluster, self.now)
            try:
                return place_best(trial, request) is not None
            finally:
                if head is not None:
                    head.forget()

    def tried(self, request: GangRequest, bound: Bound | None = None) -> Plan:
        """Return the next plan for this request of the gang, with this bound in force."""
        self.tries -= 1
        with self._asking(request) as queue, self._bounded_by(bound):
            return plan(self.cluster, queue, self.policy, self.now)

    @contextmanager
    def _asking(self, request: GangRequest) -> Iterator[Queue]:
        """Give a queue in which the gang asks for something else, for the block."""
        queue = self._queue
        verdicts = [(group, group.verdict) for group in queue.groups.values()]
        memory, reported = copy(queue.memory), [(group, group.reported) for group in queue.groups.values()]
        queue.apply(GangQueued(request))
        try:
            yield queue
        finally:
            queue.apply(GangQueued(self.request))
            queue.memory, queue.expected = memory, set()
            for group, verdict in verdicts:
                group.verdict = verdict
            for group, reasons in reported:
                group.reported = reasons

    def starts(self, request: GangRequest, bound: Bound | None = None) -> Plan | None:
        """Return the next plan if it places the gang with this request; else None."""
        found = self.tried(request, bound)
        return found if any(placed.job == self.job for placed in found.placements) else None

    @property
    def job(self) -> JobId:
        """Return the gang's job."""
        return self.request.job

    @contextmanager
    def _bounded_by(self, bound: Bound | None) -> Iterator[None]:
        """Put another bound in force for the block."""
        if bound is None:
            yield
            return
        vector: list[float] = getattr(self.cluster.queues.find(bound.queue), bound.kind)
        kept = vector[bound.at]
        vector[bound.at] = bound.most
        try:
            yield
        finally:
            vector[bound.at] = kept


def first_that_fits(stage: PlannerTrial, requests: Sequence[GangRequest]) -> int | None:
    """Return the index of the first request that has room, or None if the last has none.

    Each request must ask less than the one before.
    """
    if not requests or stage.looks <= 0 or not stage.fits(requests[-1]):
        return None
    low, high = -1, len(requests) - 1
    while high - low > 1 and stage.looks > 0:
        middle = (low + high) // 2
        low, high = (low, middle) if stage.fits(requests[middle]) else (middle, high)
    return high
