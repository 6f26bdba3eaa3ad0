"""A scheduling policy: its parts, and the rules of the planner that it turns on; and the built-in policies."""

from __future__ import annotations

from dataclasses import dataclass, field

from corral.scheduler.policy.allot import Allot, AsManyAsFit
from corral.scheduler.policy.order import REVIEW_SECONDS, ArrivalOrder, DeadlineOrder, Order, PriorityOrder
from corral.scheduler.policy.place import Place, Tightest
from corral.scheduler.policy.preempt import Preempt
from corral.scheduler.preemption.rules import ByRules


@dataclass(frozen=True)
class Policy:
    """The rules by which a cycle decides.

    With `fair`, the queue with the lowest standing is next, and the order decides within it. With `fair_users` too,
    gangs of a queue that are equal but for their submission time take turns by their users' current and past usage.
    With `backfill`, later gangs may start where they cannot delay the head of the queue. With `preemption`, running
    gangs yield under the rules of their queues. With `consolidation`, small gangs also move to make room for the head,
    if that saves more device-seconds than it costs. An elastic gang that could have more tasks elsewhere moves there at
    most once per `move_seconds` (0: never), if the gain exceeds the loss.
    """

    name: str = "priority"
    order: Order = field(default_factory=PriorityOrder)
    backfill: bool = True
    fair: bool = False
    fair_users: bool = True
    preemption: bool = False
    consolidation: bool = False
    move_seconds: float = 0.0
    planner: str = "builtin"
    """The name of the planner that decides by it."""
    allot: Allot = field(default_factory=AsManyAsFit)
    """The sizes of elastic gangs."""
    preempt: Preempt = field(default_factory=ByRules)
    """Who may be preempted for a waiting gang, where `preemption` allows any."""
    place: Place = field(default_factory=Tightest)
    """Which of the nodes with room a task gets."""
    review_seconds: float = REVIEW_SECONDS
    """How often a plan is made without an event, while a part's answer may change with time."""

    @property
    def reads_reports(self) -> bool:
        """Return whether its plan may change by what a running job reports of its work."""
        return not isinstance(self.allot, AsManyAsFit)

    @property
    def changes_with_time(self) -> bool:
        """Return whether its plan may change without an event."""
        return (
            self.order.changes_with_time
            or self.allot.changes_with_time
            or self.place.changes_with_time
            or (self.preemption and self.preempt.changes_with_time)
        )


BUILT_IN = {
    policy.name: policy
    for policy in (
        Policy("fair", fair=True, preemption=True, consolidation=True, move_seconds=600.0),
        Policy("priority", preemption=True, consolidation=True, move_seconds=600.0),
        Policy("hived", preemption=True, planner="hived"),
        Policy("fifo", ArrivalOrder()),
        Policy("deadline", DeadlineOrder(), preemption=True, consolidation=True, move_seconds=600.0),
    )
}
"""The built-in policies by name. The default is `fair`; with one queue and one user it equals `priority`."""
