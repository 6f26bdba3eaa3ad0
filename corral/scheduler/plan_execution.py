"""Apply a plan to a planner's state in one fixed order.

Control, benchmarks, pictures and tests all use it.
"""

from __future__ import annotations

from corral.kernel.ids import TaskKey
from corral.model.placement import Placement
from corral.model.plan import Eviction, GangPlacement, Plan
from corral.model.requests import GangRequest
from corral.scheduler.cluster.cluster import Cluster
from corral.scheduler.events import GangNominated, GangPlaced, NominationLapsed, TasksLeaving, gang_placed
from corral.scheduler.planners.planner import Planner
from corral.scheduler.queues.waiting_queue import Queue


class PlanHooks:
    """Hooks for each part of a plan beside its events; callers override the ones they need."""

    def before_placing(self, request: GangRequest, found: GangPlacement) -> Placement:
        """Return the placement to commit; called before the planner knows of it."""
        return found.placement

    def placed(self, found: GangPlacement, event: GangPlaced) -> None:
        """Called after the planner has folded a placement."""

    def evict(self, planner: Planner, eviction: Eviction) -> None:
        """Tell a gang, or some of its tasks, to end; the default only marks them as leaving."""
        planner.fold(TasksLeaving(eviction.job, evicted_tasks(planner.cluster, eviction)))


def evicted_tasks(cluster: Cluster, eviction: Eviction) -> tuple[TaskKey, ...]:
    """Return the tasks that an eviction ends: those it names, or all tasks that hold resources."""
    return eviction.tasks or tuple(cluster.holds(eviction.job))


def execute_plan(planner: Planner, plan: Plan, now: float, hooks: PlanHooks | None = None) -> None:
    """Commit a plan to the planner that made it at `now` (seconds since 1970).

    The order is: faults of the policy's parts, placements, reserved cells, evictions with their nominations, then lapsed
    nominations.
    """
    hooks = hooks or PlanHooks()
    for fault in plan.faults:
        planner.fold(fault)
    for found in plan.placements:
        request = request_of(planner.queue, found)
        event = gang_placed(request, hooks.before_placing(request, found), now)
        planner.fold(event)
        hooks.placed(found, event)
    for reserved in plan.reserved:
        planner.fold(reserved)
    for eviction in plan.evictions:
        hooks.evict(planner, eviction)
        if eviction.by is not None:
            planner.fold(GangNominated(eviction.by))
    for job in plan.lapsed:
        planner.fold(NominationLapsed(job))


def request_of(queue: Queue, found: GangPlacement) -> GangRequest:
    """Return the request that a placement answers; it matters when a job's gang and growth both wait."""
    keys = {task.key for task in found.placement.tasks}
    return next(each for each in queue.waiting(found.job) if not keys.isdisjoint(each.tasks))
