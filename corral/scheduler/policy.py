"""Why: who is next is a matter of taste, so it is a small class of its own that others can replace.

A policy is found by its name in the entry point group `corral.policies`, whose values are `Policy` objects or callables
that return one. It combines an order (who is next), fairness between queues, backfill and preemption (who must yield).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, Protocol

from corral.kernel.errors import InvalidInput
from corral.model.requests import GangRequest

GROUP = "corral.policies"

OrderKey = tuple[Any, ...]
"""Sorts waiting gangs, next first; all keys of one order compare with each other."""


_AFTER_RANK = 3
"""The time of submission, the job and its first task end the key of a waiting gang."""


def rank(key: OrderKey) -> OrderKey:
    """What makes gangs equal: the key of a waiting gang without the time of submission and what follows it."""
    return key[:-_AFTER_RANK]


class Order(Protocol):
    """Who is next. Two orders are equal when they give the same keys."""

    def key(self, request: GangRequest) -> OrderKey:
        """What the gang is sorted by; ties go to the older job id."""
        ...


@dataclass(frozen=True)
class PriorityOrder:
    """Higher priority first, then who was submitted first.

    With `ageing_seconds`, a gang gains one step of priority for each such time that it has waited, so that it is
    passed only by gangs that were submitted while it was young enough: its wait is bounded.
    """

    ageing_seconds: float = 0.0

    def key(self, request: GangRequest) -> OrderKey:
        """Priority descending, then time of submission; ageing compares both by one number that never changes."""
        if self.ageing_seconds:
            return (request.submitted_at - request.priority * self.ageing_seconds, request.submitted_at)
        return (-request.priority, request.submitted_at)


@dataclass(frozen=True)
class ArrivalOrder:
    """Who was submitted first."""

    def key(self, request: GangRequest) -> OrderKey:
        """Time of submission."""
        return (request.submitted_at,)


@dataclass(frozen=True)
class DeadlineOrder:
    """Who has to be over first; those without a deadline come last, in the order of priority and submission."""

    def key(self, request: GangRequest) -> OrderKey:
        """The latest start that meets the deadline, then priority descending, then time of submission."""
        latest = request.deadline - request.max_duration_seconds if request.deadline else float("inf")
        return (latest, -request.priority, request.submitted_at)


@dataclass(frozen=True)
class Policy:
    """How a cycle decides.

    With `fair`, the queue that holds least of what it is owed is next, and the order decides within it; with `fair_users`
    too, the order decides by all but the last part of its keys (when a gang was submitted), and of gangs that are equal in
    them the one of the user who holds and held least in the queue is next. With `backfill`,
    later gangs may start where they cannot delay the first that waits. With `preemption`, running gangs yield under the
    rules of their queues; with `consolidation`, small ones also move to make room for the first that waits, when that saves
    more device-seconds than it costs. An elastic gang that could have more tasks elsewhere moves there at most once in
    `move_seconds` (0: never), when the gain is worth what it loses.
    """

    name: str = "priority"
    order: Order = field(default_factory=PriorityOrder)
    backfill: bool = True
    fair: bool = False
    fair_users: bool = True
    preemption: bool = False
    consolidation: bool = False
    move_seconds: float = 0.0
    hived: bool = False
    """Whether HiveD's algorithm decides where there is a cluster for it (`HivedConfigured`)."""


BUILT_IN = {
    policy.name: policy
    for policy in (
        Policy("fair", fair=True, preemption=True, consolidation=True, move_seconds=600.0),
        Policy("priority", preemption=True, consolidation=True, move_seconds=600.0),
        Policy("hived", preemption=True, hived=True),
        Policy("fifo", ArrivalOrder()),
        Policy("deadline", DeadlineOrder(), preemption=True, consolidation=True, move_seconds=600.0),
    )
}
"""`fair` is the default: with one queue and one user it is `priority`."""


def find_policy(name: str = "fair") -> Policy:
    """The policy of this name, built in or installed.

    Raises InvalidInput when there is none, naming those there are.
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
