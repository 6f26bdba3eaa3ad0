"""Decide where and when gangs run, as pure functions without I/O, clock or randomness."""

from corral.scheduler.cluster.cluster import Cluster, Hold
from corral.scheduler.events import (
    Checkpointed,
    ClusterEvent,
    EndedRecalled,
    EngineUnknown,
    GangNominated,
    GangPlaced,
    GangQueued,
    GangWithdrawn,
    GuaranteeLost,
    HistoryRecalled,
    JobOver,
    NodesSeen,
    NominationLapsed,
    PlannerEvent,
    QueueEvent,
    QueuesConfigured,
    TasksLeaving,
    TasksReleased,
    UsageRecalled,
    WorkReported,
    gang_placed,
)
from corral.scheduler.explain.shortage import could_ever_fit
from corral.scheduler.plan_execution import PlanHooks, execute_plan
from corral.scheduler.planners.builtin.planner import BuiltinPlanner
from corral.scheduler.planners.planner import Planner, PlannerKind
from corral.scheduler.planners.registry import find_planner
from corral.scheduler.policy.allot import Allot, ElasticGang, Target
from corral.scheduler.policy.history import History, JobHistory, Regime
from corral.scheduler.policy.order import JointOrder, Order, PriorityOrder
from corral.scheduler.policy.place import Place
from corral.scheduler.policy.policy import Policy
from corral.scheduler.policy.preempt import Preempt
from corral.scheduler.policy.registry import find_allot, find_place, find_policy, find_preempt, with_part
from corral.scheduler.preemption.victim import Victim
from corral.scheduler.preemption.view import PreemptionView
from corral.scheduler.queues.waiting_queue import Queue
from corral.scheduler.virtual_run import VirtualRun

__all__ = [
    "Allot",
    "BuiltinPlanner",
    "Checkpointed",
    "Cluster",
    "ClusterEvent",
    "ElasticGang",
    "EngineUnknown",
    "GangNominated",
    "GangPlaced",
    "GangQueued",
    "GangWithdrawn",
    "GuaranteeLost",
    "History",
    "EndedRecalled",
    "HistoryRecalled",
    "Hold",
    "JobHistory",
    "JointOrder",
    "JobOver",
    "NodesSeen",
    "NominationLapsed",
    "Order",
    "PlanHooks",
    "Planner",
    "Place",
    "PlannerEvent",
    "PlannerKind",
    "Policy",
    "Preempt",
    "PreemptionView",
    "PriorityOrder",
    "Queue",
    "QueueEvent",
    "QueuesConfigured",
    "Regime",
    "Target",
    "TasksLeaving",
    "TasksReleased",
    "UsageRecalled",
    "Victim",
    "VirtualRun",
    "WorkReported",
    "could_ever_fit",
    "execute_plan",
    "find_allot",
    "find_planner",
    "find_place",
    "find_policy",
    "find_preempt",
    "gang_placed",
    "with_part",
]
