"""HiveD's complete algorithm: virtual clusters own cells of the topology, guaranteed by buddy allocation."""

from corral.scheduler.planners.hived.algorithm import annotations, inspect_api
from corral.scheduler.planners.hived.algorithm.free_list import Order
from corral.scheduler.planners.hived.algorithm.groups import (
    Bind,
    Decision,
    Group,
    GroupState,
    Member,
    Phase,
    PodPlacement,
    PodRequest,
    Preempt,
    Wait,
)
from corral.scheduler.planners.hived.algorithm.reconfiguration import Changes
from corral.scheduler.planners.hived.algorithm.scheduler import HivedAlgorithm

__all__ = [
    "Bind",
    "Changes",
    "Decision",
    "Group",
    "GroupState",
    "HivedAlgorithm",
    "Member",
    "Order",
    "Phase",
    "PodPlacement",
    "PodRequest",
    "Preempt",
    "Wait",
    "annotations",
    "inspect_api",
]
