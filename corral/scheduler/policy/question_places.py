"""Have a policy's *place* part choose nodes beside plans too, so that what is said of a job holds for the next plan."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.cluster.ranked_slots import Placing
from corral.scheduler.policy.call_guard import begin_plan
from corral.scheduler.policy.faults import PartFailed
from corral.scheduler.policy.place import placing
from corral.scheduler.policy.policy import Policy
from corral.scheduler.queues.waiting_queue import Queue

T = TypeVar("T")


class QuestionPlaces:
    """The part of a policy as it chooses nodes in one question; it prepares itself once, when first needed."""

    def __init__(self, policy: Policy, cluster: Cluster, queue: Queue, now: float) -> None:
        """`queue` is the one that plans see: ranks stay for the next plan if the part prepares the same for it.

        The part has as much time as for a plan.
        """
        begin_plan()
        self._policy = policy
        self._cluster = cluster
        self._queue = queue
        self._now = now
        self._failed = False

    @cached_property
    def _chosen(self) -> Placing | None:
        return placing(self._policy.place, self._cluster, self._queue, self._now)

    def find(self, find: Callable[[], T]) -> T:
        """Return what `find` finds where the part chooses; where the part fails, the default part chooses.

        `find` leaves the cluster as it was, also when it raises. The next plan counts the failure.
        """
        if self._failed:
            return find()
        try:
            if self._chosen is None:
                return find()
            try:
                for index in self._cluster.engines.values():
                    index.place_by(self._chosen)
                return find()
            finally:
                for index in self._cluster.engines.values():
                    index.place_by(None)
        except PartFailed:
            self._failed = True
            return find()
