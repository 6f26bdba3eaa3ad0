"""HiveD's complete algorithm: virtual clusters own cells of the topology, guaranteed by buddy allocation."""

from corral.scheduler.hived import annotations, inspecting
from corral.scheduler.hived.algorithm import HivedAlgorithm
from corral.scheduler.hived.freelist import Order
from corral.scheduler.hived.groups import (
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
from corral.scheduler.hived.reconfiguring import Changes

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
    "inspecting",
]
