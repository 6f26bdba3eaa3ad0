"""Scheduling policies: the order of waiting gangs, fairness, backfill and preemption.

A policy is found by its name in the entry point group `corral.policies`, whose values are `Policy` objects or callables
that return one. Installed packages can therefore replace the order or any other rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from corral.kernel.errors import InvalidInput
from corral.model.requests import GangRequest

GROUP = "corral.policies"

OrderKey = tuple[Any, ...]
"""The sort key of a waiting gang, lowest first; all keys of one order are comparable."""


_AFTER_RANK = 3
"""The trailing parts of a waiting gang's key that do not rank it: submission time, job and first task."""


def rank(key: OrderKey) -> OrderKey:
    """Return the part of a waiting gang's key that ranks it, without submission time, job and first task."""
    return key[:-_AFTER_RANK]


class Order(Protocol):
    """The order of waiting gangs; two orders are equal when they give the same keys."""

    def key(self, request: GangRequest) -> OrderKey:
        """Return the sort key of the gang; ties go to the older job id."""
        ...


@dataclass(frozen=True)
class PriorityOrder:
    """Higher priority first, then earlier submission.

    With `ageing_seconds`, a gang gains one step of priority for each such period of waiting. Only gangs submitted soon
    enough after it can pass it, so its wait is bounded.
    """

    ageing_seconds: float = 0.0

    def key(self, request: GangRequest) -> OrderKey:
        """Return priority descending, then submission time; with ageing both form one number that never changes."""
        if self.ageing_seconds:
            return (request.submitted_at - request.priority * self.ageing_seconds, request.submitted_at)
        return (-request.priority, request.submitted_at)


@dataclass(frozen=True)
class ArrivalOrder:
    """Earlier submission first."""

    def key(self, request: GangRequest) -> OrderKey:
        """Return the submission time."""
        return (request.submitted_at,)


@dataclass(frozen=True)
class DeadlineOrder:
    """Earliest required start first; jobs without a deadline come last, by priority and submission."""

    def key(self, request: GangRequest) -> OrderKey:
        """Return the latest start that meets the deadline, then priority descending, then submission time."""
        latest = request.deadline - request.max_duration_seconds if request.deadline else float("inf")
        return (latest, -request.priority, request.submitted_at)


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


def find_policy(name: str = "fair") -> Policy:
    """Return the policy of this name, built in or installed.

    Raises InvalidInput if there is none, and lists the known names.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        names = ", ".join(sorted({*BUILT_IN, *found}))
        raise InvalidInput("unknown-policy", f"There is no policy {name!r}; choose one of: {names}.")
    loaded = found[name].load()
    policy = loaded if isinstance(loaded, Policy) else loaded()
    if not isinstance(policy, Policy):
        raise InvalidInput("unknown-policy", f"The entry point {GROUP}:{name} does not give a Policy.")
    return policy
