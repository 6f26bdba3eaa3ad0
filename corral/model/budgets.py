"""Budgets of device-hours: how much a queue or a user may use in a day, a week or a month.

What counts is what attempts have held since the window began, and for each live job what it may still hold in it: the
devices of its requested size, up to its `maxDuration` and at most to the end of the window. A job that ends early stops
to count for the rest, so the difference is free again at once.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import msgspec

from corral.kernel.errors import Conflict
from corral.model.records import Record, one_of, rfc3339

HOUR = 3600.0
"""Seconds."""
MOST_HOURS = 1e9
"""Device-hours of a budget or of what is added to it."""


class Window(StrEnum):
    """How long a budget lasts, in UTC; weeks begin on Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class BudgetKind(StrEnum):
    """Whose budget it is."""

    QUEUE = "queue"
    """The jobs of the queue and of those below it."""
    USER = "user"


class WhenUsedUp(StrEnum):
    """What becomes of jobs that run while a budget is used up."""

    WARN = "warn"
    """They run on, and their owners are told."""
    HOLD = "hold"
    """They are suspended, and go on in the next window or after a top-up."""


class Budget(msgspec.Struct, frozen=True):
    """One budget; a queue or user has one for each window at most."""

    kind: str
    name: str
    window: str
    device_hours: float
    warn_at: float
    """The part of it from which submissions are warned, 0 to 1."""
    at: float
    actor: str
    when_used_up: str = str(WhenUsedUp.WARN)

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others: kind, name and window."""
        return self.kind, self.name, self.window

    @property
    def words(self) -> str:
        """Which budget it is, as people say it."""
        return f"The budget of {self.kind} {self.name} for this {self.window}"


class TopUp(msgspec.Struct, frozen=True):
    """Device-hours added to a budget for one window."""

    device_hours: float
    at: float
    actor: str
    reason: str


class Standing(msgspec.Struct, frozen=True):
    """A budget in its present window."""

    budget: Budget
    begin: float
    end: float
    queues: tuple[str, ...]
    """The queues whose jobs count; empty for a user's."""
    used: float
    """Device-seconds that attempts have held in the window."""
    promised: float
    """Device-seconds that live jobs may still hold in it."""
    top_ups: tuple[TopUp, ...] = ()

    def promise(self, devices: float, longest: float, now: float) -> float:
        """Device-seconds that a job that begins now may hold in the window; `longest` is in seconds, 0 is no limit."""
        left = self.end - now
        return devices * (min(longest, left) if longest else left)

    def counts(self, queue: str, user: str) -> bool:
        """Whether a job of this queue and user counts for it."""
        return queue in self.queues if self.queues else user == self.budget.name

    @property
    def allowed(self) -> float:
        """Device-seconds of the window, with what was added."""
        return HOUR * (self.budget.device_hours + sum(each.device_hours for each in self.top_ups))

    def view(self) -> BudgetView:
        """As people see it."""
        budget, spent = self.budget, self.used + self.promised
        state = "used-up" if spent >= self.allowed else "warned" if spent >= budget.warn_at * self.allowed else "open"
        return BudgetView(
            budget.kind, budget.name, budget.window, rfc3339(self.begin), rfc3339(self.end),
            round(self.allowed / HOUR, 3), budget.device_hours, round(self.used / HOUR, 3),
            round(self.promised / HOUR, 3), round(max(0.0, self.allowed - spent) / HOUR, 3), budget.warn_at, state,
            tuple(TopUpView(each.device_hours, rfc3339(each.at), each.actor, each.reason) for each in self.top_ups),
            rfc3339(budget.at), budget.actor, budget.when_used_up,
        )  # fmt: skip


class TopUpView(Record, frozen=True):
    """Device-hours that somebody added to a budget for this window."""

    device_hours: float
    at: str
    actor: str
    reason: str


class BudgetView(Record, frozen=True):
    """A budget in its present window, in device-hours."""

    kind: str
    """`queue` or `user`."""
    name: str
    window: str
    """`day`, `week` or `month`, in UTC; weeks begin on Monday."""
    begin: str
    end: str
    allowed: float
    """What may be used in this window, with what was added."""
    device_hours: float
    """What may be used in every window."""
    used: float
    promised: float
    """What live jobs may still use in this window, by their maxDuration."""
    left: float
    warn_at: float
    """The part of it from which submissions are warned."""
    state: str
    """`open`, `warned` or `used-up`."""
    top_ups: tuple[TopUpView, ...] = ()
    set_at: str = ""
    """When it was last set."""
    set_by: str = ""
    when_used_up: Annotated[str, one_of(*map(str, WhenUsedUp))] = str(WhenUsedUp.WARN)
    """What becomes of jobs that run while it is used up: `warn` their owners, or `hold` them."""


class BudgetList(Record, frozen=True):
    """Budgets by kind, name and window."""

    items: tuple[BudgetView, ...] = ()


def window_of(window: str, at: float) -> tuple[float, float]:
    """Begin and end of the window that holds a time."""
    day = datetime.fromtimestamp(at, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if window == Window.DAY:
        begin, end = day, day + timedelta(days=1)
    elif window == Window.WEEK:
        begin = day - timedelta(days=day.weekday())
        end = begin + timedelta(days=7)
    else:
        begin = day.replace(day=1)
        end = (begin + timedelta(days=32)).replace(day=1)
    return begin.timestamp(), end.timestamp()


def family(queue: str, parents: dict[str, str]) -> tuple[str, ...]:
    """A queue and all queues below it."""
    children: dict[str, list[str]] = {}
    for name, parent in sorted(parents.items()):
        children.setdefault(parent, []).append(name)
    found = {queue: None}  # in order
    waiting = deque(found)
    while waiting:
        for name in children.get(waiting.popleft(), ()):
            if name not in found:
                found[name] = None
                waiting.append(name)
    return tuple(found)


def check(standing: Standing, promised: float, asked: float) -> str:
    """A warning for a submission that brings a budget to its warning share, or "".

    `promised` counts all live jobs, those submitted too; `asked` is the latter's part, both in device-seconds.

    Raises Conflict `budget-used-up` when the budget does not hold them.
    """
    budget, allowed = standing.budget, standing.allowed
    before, spent = standing.used + promised - asked, standing.used + promised
    if asked <= 0:
        return ""
    words, until = budget.words, rfc3339(standing.end)
    if spent > allowed * (1 + 1e-9) and before >= allowed:
        raise Conflict(
            "budget-used-up",
            f"{words} is used up ({_hours(allowed)} device-hours); wait until {until}, or ask an administrator to add to "
            "it.",
        )
    if spent > allowed * (1 + 1e-9):
        raise Conflict(
            "budget-used-up",
            f"{words} has {_hours(allowed - before)} of {_hours(allowed)} device-hours left, and this may use "
            f"{_hours(asked)}; ask for less time (maxDuration) or fewer devices, or wait until {until}.",
        )
    if spent < budget.warn_at * allowed:
        return ""
    share = 100 * spent / allowed
    return f"{words} is {share:.0f} % used with this job: {_hours(spent)} of {_hours(allowed)} device-hours."


def _hours(seconds: float) -> str:
    return f"{seconds / HOUR:,.1f}"
