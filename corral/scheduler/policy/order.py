"""The order of waiting gangs: the protocol of its parts, and the orders of the built-in policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Protocol, TypeGuard, runtime_checkable

from corral.model.requests import GangRequest
from corral.scheduler.policy.history import History

OrderKey = tuple[float, ...]
"""The sort key of a gang, lowest first: numbers, and equally many of them for all gangs."""
QueueKey = tuple[Any, ...]
"""The key of a waiting gang: the turn that a manager gave it, its order's key, its job and its first task."""

REVIEW_SECONDS = 60.0
"""How often something is looked at again that changes steadily and without an event."""
_AFTER_RANK = 3
"""The trailing parts of a waiting gang's key that do not rank it: the order's tie-break, job and first task."""


def rank(key: QueueKey) -> QueueKey:
    """Return the part of a waiting gang's key that ranks it, without the order's tie-break, job and first task."""
    return key[:-_AFTER_RANK]


class Order(Protocol):
    """The order of waiting gangs; two orders are equal when they give the same keys.

    It sees values only, and its answer depends on nothing else.
    """

    @property
    def changes_with_time(self) -> bool:
        """Whether the key of a gang may change while it waits.

        If so, keys are computed anew for each plan, and a plan is made at least every `Policy.review_seconds` while
        gangs wait. Otherwise a key is computed once, when its gang begins to wait.
        """
        ...

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the sort key of a gang at `now` (seconds since 1970), lowest first; ties go to the older job id.

        The last number only breaks ties, as the time of submission does. Under a policy with `fair_users`, gangs whose
        keys differ in nothing else take turns by user. No number may be NaN.
        """
        ...


@runtime_checkable
class Foreseen(Protocol):
    """An order that knows when it will move a running gang back; preemption then need not ask it again and again."""

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return when the key of a running gang becomes higher than now, if no event comes; infinite if never."""
        ...


@runtime_checkable
class JointOrder(Protocol):
    """An order that looks at all gangs together, once for each plan, before `key` is asked about each of them."""

    def prepare(self, gangs: Sequence[GangRequest], devices: float, history: History, now: float) -> object:
        """Return what `key` finds as `history.prepared` during this plan and until the next one.

        `gangs` are those that run, with all tasks that they may have, and those that wait to start, in the order of
        their jobs' ids; `devices` are those of all machines. Change nothing. `key` must also answer about a gang that
        was not among them: it may have come since. Set `changes_with_time`, because every plan may change all keys.
        """
        ...


def foreseen(order: Order) -> TypeGuard[Foreseen]:
    """Return whether an order is a `Foreseen`, in a fraction of the 14 µs of `isinstance`."""
    return hasattr(order, "moves_back_at")


def joint(order: Order) -> TypeGuard[JointOrder]:
    """Return whether an order is a `JointOrder`, as quickly."""
    return hasattr(order, "prepare")


@dataclass(frozen=True)
class PriorityOrder:
    """Higher priority first, then earlier submission.

    With `ageing_seconds`, a gang gains one step of priority for each such period of waiting. Only gangs submitted soon
    enough after it can pass it, so its wait is bounded.
    """

    ageing_seconds: float = 0.0
    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return priority descending, then submission time; with ageing both form one number that never changes."""
        if self.ageing_seconds:
            return (gang.submitted_at - gang.priority * self.ageing_seconds, gang.submitted_at)
        return (-gang.priority, gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf


@dataclass(frozen=True)
class ArrivalOrder:
    """Earlier submission first."""

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the submission time."""
        return (gang.submitted_at,)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf


@dataclass(frozen=True)
class DeadlineOrder:
    """Earliest required start first; jobs without a deadline come last, by priority and submission."""

    changes_with_time: ClassVar[bool] = False

    def key(self, gang: GangRequest, history: History, now: float) -> OrderKey:
        """Return the latest start that meets the deadline, then priority descending, then submission time."""
        latest = gang.deadline - gang.max_duration_seconds if gang.deadline else inf
        return (latest, -gang.priority, gang.submitted_at)

    def moves_back_at(self, gang: GangRequest, history: History, now: float) -> float:
        """Return infinity: keys never change."""
        return inf
