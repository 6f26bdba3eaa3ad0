"""Why: "would it start if it asked for less?" is answered by the next cycle itself, with one gang asking otherwise.

Every try leaves the cluster as it was, bit for bit, and never touches the queue that is in force: it runs on a fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

from corral.kernel.ids import JobId
from corral.model.plan import Plan
from corral.model.requests import GangRequest
from corral.scheduler.amounts import asked
from corral.scheduler.backfill import Reservation
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import GangQueued
from corral.scheduler.guarantees import place_best
from corral.scheduler.placing import Trial
from corral.scheduler.planning import ALIKE, Memory, plan
from corral.scheduler.policy import Policy
from corral.scheduler.queue import Entry, Queue

_TRY_COST = 4096
"""So many shapes that wait, and gangs with a known end, may all tries of one question look at together."""
_FITS_COST = 32_768
"""So many nodes may all looks for room of one question look at together."""
_MOST_TRIES = 32
_MOST_FITS = 512


class Bound(NamedTuple):
    """A bound of a queue on one resource: which of its vectors, the place in it, and how much it is."""

    queue: str
    kind: str
    """`limit`, `borrowing`, `user_limit` or `group_limit`."""
    at: int
    most: float


class Stage:
    """Tries one waiting gang with other wishes; how often is bounded by what a try costs."""

    def __init__(self, cluster: Cluster, queue: Queue, policy: Policy, entry: Entry, now: float) -> None:
        self.cluster = cluster
        self.policy = policy
        self.request = entry.request
        self.now = now
        self._queue = queue.fork(most=ALIKE, job=entry.request.job)
        nodes = sum(len(index.tree.nodes) for index in cluster.engines.values())
        self.tries = max(2, min(_MOST_TRIES, _TRY_COST // (1 + len(queue.groups) + len(cluster.ends))))
        """How many whole cycles may still be tried."""
        self.looks = max(16, min(_MOST_FITS, _FITS_COST // (1 + nodes)))
        """How often room may still be looked for."""

    @property
    def head(self) -> Reservation | None:
        """The reservation of the first that waits, unless that is this gang."""
        memory = self._queue.memory
        found = memory.reservation if isinstance(memory, Memory) else None
        return found if found is not None and found.job != self.request.job else None

    def fits(self, request: GangRequest, bound: Bound | None = None) -> bool:
        """Whether there is room and no bound against it, past the head's place: necessary, not yet enough."""
        self.looks -= 1
        trial, head, queues = Trial(self.cluster), self.head, self.cluster.queues
        with self._bounded_by(bound), trial.supposing():
            if queues.refusal(request.queue, request.user, request.groups, asked(request, queues)):
                return False
            if head is not None and not head.lets_pass(request, self.now):
                head.hold(self.cluster)
            try:
                return place_best(trial, request) is not None
            finally:
                if head is not None:
                    head.forget()

    def tried(self, request: GangRequest, bound: Bound | None = None) -> Plan:
        """The next plan, were this the gang's request and this bound as it says."""
        self.tries -= 1
        queue = self._queue
        verdicts = [(group, group.verdict) for group in queue.groups.values()]
        memory, told = copy(queue.memory), [(group, group.told) for group in queue.groups.values()]
        queue.apply(GangQueued(request))
        try:
            with self._bounded_by(bound):
                return plan(self.cluster, queue, self.policy, self.now)
        finally:
            queue.apply(GangQueued(self.request))
            queue.memory, queue.expected = memory, set()
            for group, verdict in verdicts:
                group.verdict = verdict
            for group, reasons in told:
                group.told = reasons

    def starts(self, request: GangRequest, bound: Bound | None = None) -> Plan | None:
        """The next plan if it places the gang, asked for like this; else None."""
        found = self.tried(request, bound)
        return found if any(placed.job == self.job for placed in found.placements) else None

    @property
    def job(self) -> JobId:
        """Whose gang it is."""
        return self.request.job

    @contextmanager
    def _bounded_by(self, bound: Bound | None) -> Iterator[None]:
        """With another bound in force meanwhile."""
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


def first_that_fits(stage: Stage, requests: Sequence[GangRequest]) -> int | None:
    """Of requests that ask for less and less, the place of the first with room for it; None when even the last has none."""
    if not requests or stage.looks <= 0 or not stage.fits(requests[-1]):
        return None
    low, high = -1, len(requests) - 1
    while high - low > 1 and stage.looks > 0:
        middle = (low + high) // 2
        low, high = (low, middle) if stage.fits(requests[middle]) else (middle, high)
    return high
