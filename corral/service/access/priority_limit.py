"""The highest priority that an account may give a job in a queue.

A queue (or one above it) and the account may each have a maxPriority; the lower of the two applies. Where neither has
one it is 100, so that the class crit needs a grant. An account without its own has the highest of its groups'.
Administrators are bound by a maxPriority, but not by the 100.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from corral.kernel.errors import Forbidden
from corral.model.accounts import Group, User
from corral.service.actor import Actor

DEFAULT_MAX_PRIORITY: Final = 100
"""Highest priority where no maxPriority is set: that of the class prod."""
HIGHEST: Final = 999_999_999
"""Highest priority that a job file may have."""


class PriorityLimit(NamedTuple):
    """The highest priority of a job, and the source of that maxPriority; "" if none is set."""

    most: int
    of: str


def priority_grant(user: User, groups: Iterable[Group]) -> tuple[int | None, str]:
    """An account's maxPriority and its source: its own, else the highest of its groups'; None if none is set."""
    if user.max_priority is not None:
        return user.max_priority, f"user {user.name}"
    granted = [(group.max_priority, f"group {group.name}") for group in groups if group.max_priority is not None]
    return max(granted, key=lambda grant: grant[0], default=(None, ""))


def priority_limit(actor: Actor, queue: str, queues: Mapping[str, tuple[int, str]]) -> PriorityLimit:
    """The highest priority that an account may give a job in a queue; `queues` maps queues to their limits."""
    said = [PriorityLimit(queues[queue][0], f"queue {queues[queue][1]}")] if queue in queues else []
    if actor.max_priority is not None:
        said.append(PriorityLimit(actor.max_priority, actor.max_priority_of))
    if not said:
        return PriorityLimit(HIGHEST if actor.is_admin else DEFAULT_MAX_PRIORITY, "")
    return min(said, key=lambda each: each.most)


def check_priority(actor: Actor, priority: int, queue: str, queues: Mapping[str, tuple[int, str]]) -> None:
    """Refuse a priority above the limit.

    Raises Forbidden `priority-too-high`.
    """
    most, of = priority_limit(actor, queue, queues)
    if priority <= most:
        return
    bound = f"the maxPriority of {of} is {most}" if of else f"{most} is the most without a grant (maxPriority)"
    raise Forbidden(
        "priority-too-high",
        f"Priority {priority} is too high for {actor.user} in queue {queue}: {bound}. Ask for at most {most}, or ask an "
        "administrator to raise it.",
    )
