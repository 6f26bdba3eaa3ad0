"""Decide where and when gangs run, as pure functions without I/O, clock or randomness."""

from corral.scheduler.cluster.cluster import Cluster, Hold
from corral.scheduler.events import (
    Checkpointed,
    ClusterEvent,
    EngineUnknown,
    GangNominated,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    GuaranteeLost,
    NodesSeen,
    NominationLapsed,
    PlannerEvent,
    QueueEvent,
    QueuesConfigured,
    TasksLeaving,
    TasksReleased,
    UsageRecalled,
    gang_placed,
)
from corral.scheduler.explain.shortage import could_ever_fit
from corral.scheduler.plan_execution import PlanHooks, execute_plan
from corral.scheduler.planners.builtin.planner import BuiltinPlanner
from corral.scheduler.planners.planner import Planner, PlannerKind
from corral.scheduler.planners.registry import find_planner
from corral.scheduler.policy import Order, Policy, PriorityOrder, find_policy
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.virtual_run import VirtualRun

__all__ = [
    "BuiltinPlanner",
    "Checkpointed",
    "Cluster",
    "ClusterEvent",
    "EngineUnknown",
    "GangNominated",
    "GangPlaced",
    "GangQueued",
    "GangWithdrawn",
    "GuaranteeLost",
    "Hold",
    "NodesSeen",
    "NominationLapsed",
    "Order",
    "Policy",
    "PriorityOrder",
    "Queue",
    "QueueEvent",
    "QueuesConfigured",
    "PlanHooks",
    "Planner",
    "PlannerEvent",
    "PlannerKind",
    "TasksReleased",
    "TasksLeaving",
    "UsageRecalled",
    "VirtualRun",
    "execute_plan",
    "could_ever_fit",
    "find_planner",
    "find_policy",
    "gang_placed",
]
