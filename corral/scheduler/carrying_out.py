"""Carries out what a plan proposes, in one order, for control, the look into the future, benchmarks, pictures and tests."""

from __future__ import annotations

from corral.kernel.ids import TaskKey
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.model.requests import GangRequest
from corral.scheduler.cluster import Cluster
from corral.scheduler.events import GangNominated, GangPlaced, NominationLapsed, TasksLeaving, gang_placed
from corral.scheduler.queue import Queue


class Steps:
    """What is done with each part of a plan beside its events; a caller overrides what it needs."""

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        """The placement as it is committed; called while cluster and queue do not know of it."""
        return found.placement

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Called when cluster and queue know of a placement."""

    def evict(self, cluster: Cluster, eviction: Eviction) -> None:
        """Tell a gang, or some tasks of it, to end; what they hold is free soon."""
        cluster.apply(TasksLeaving(eviction.job, told_to_end(cluster, eviction)))


def told_to_end(cluster: Cluster, eviction: Eviction) -> tuple[TaskKey, ...]:
    """The tasks that an eviction ends: those that it names, or all that hold something."""
    return eviction.tasks or tuple(cluster.holds(eviction.job))


def carry_out(cluster: Cluster, queue: Queue, plan: Plan, now: float, steps: Steps | None = None) -> None:
    """Commit a plan to cluster and queue at `now` (seconds since 1970).

    Placements come first, then what is reserved, evictions with their nominations, and the nominations that lapsed.
    """
    steps = steps or Steps()
    for found in plan.placements:
        request = request_of(queue, found)
        event = gang_placed(request, steps.before_placing(request, found), now)
        cluster.apply(event)
        queue.apply(event)
        steps.placed(found, event)
    for reserved in plan.reserved:
        cluster.apply(reserved)
    for eviction in plan.evictions:
        steps.evict(cluster, eviction)
        if eviction.by is not None:
            queue.apply(GangNominated(eviction.by))
    for job in plan.lapsed:
        queue.apply(NominationLapsed(job))
        cluster.apply(NominationLapsed(job))


def request_of(queue: Queue, found: GangPlacement) -> GangRequest:
    """What a placement answers: of a job whose gang and growth both wait, the one that has its tasks."""
    keys = {task.key for task in found.placement.tasks}
    return next(each for each in queue.waiting(found.job) if not keys.isdisjoint(each.tasks))
