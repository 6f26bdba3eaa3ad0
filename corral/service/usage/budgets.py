"""Budgets of device-hours: how they stand, who changes them, and whether a submission fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.units import DEVICE
from corral.model.budgets import (
    MOST_HOURS,
    Budget,
    BudgetKind,
    BudgetList,
    BudgetView,
    Standing,
    TopUp,
    WhenUsedUp,
    Window,
    check,
    window_of,
)
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.spec.job import UnifiedJob

_DEFAULT: Final = "default"
"""The queue that is there even where no document has it."""
_USED_SECONDS: Final = 10.0
"""Seconds for which what was used of a budget is not summed anew: submissions may exceed it by what jobs hold in them."""
_MOST_REASON: Final = 500
"""Characters."""


class _Used(NamedTuple):
    """What was used of a budget."""

    at: float
    seconds: float
    """Device-seconds in the window of that time."""

    def holds(self, key: tuple[str, str, str], now: float) -> bool:
        """Whether it is recent, and of the window of now."""
        window = key[2]
        return 0 <= now - self.at < _USED_SECONDS and window_of(window, self.at) == window_of(window, now)


class Budgets:
    """The budgets of queues and users."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._used: dict[tuple[str, str, str], _Used] = {}
        """By budget, what was summed last for a submission."""

    async def list(self, actor: Actor) -> BudgetList:
        """The budgets of all queues and of the caller; administrators see those of all users."""
        await self._context.check(actor, "queue.read", Resource("queue"))
        found = await self._store.standings(self._clock.now(), user=None if actor.is_admin else actor.user)
        return BudgetList(tuple(each.view() for each in found))

    async def set(
        self,
        actor: Actor,
        kind: str,
        name: str,
        window: str,
        device_hours: float,
        *,
        warn_at: float = 0.8,
        when_used_up: str = WhenUsedUp.WARN,
    ) -> BudgetView:
        """Set a budget, in place of the one of that queue or user and window.

        `when_used_up` says what becomes of jobs that run by then.

        Raises InvalidInput, NotFound for a queue or user that is not there, Forbidden.
        """
        key = _key(kind, name, window)
        resource = Resource("budget", key)
        decision = await self._context.check(actor, "budget.change", resource)
        _check_hours(device_hours)
        if not 0 < warn_at <= 1:
            raise InvalidInput("bad-budget", "The share from which to warn is above 0 and at most 1.")
        if when_used_up not in set(WhenUsedUp):
            raise InvalidInput(
                "bad-budget",
                f"When a budget is used up its jobs are {' or '.join(WhenUsedUp)}: not {when_used_up[:50]}.",
            )
        await self._check_there(kind, name)
        budget = Budget(kind, name, window, device_hours, warn_at, self._clock.now(), actor.user, str(when_used_up))
        line = self._context.line(
            actor, "budget.change", resource, decision, change="set", deviceHours=device_hours, warnAt=warn_at,
            whenUsedUp=budget.when_used_up,
        )  # fmt: skip
        await self._store.put_budget(budget, line)
        return await self._view(kind, name, window)

    async def top_up(
        self, actor: Actor, kind: str, name: str, window: str, device_hours: float, *, reason: str
    ) -> BudgetView:
        """Add device-hours to a budget for its present window; the reason is kept with it and in the audit log.

        Raises InvalidInput, NotFound, Forbidden.
        """
        key = _key(kind, name, window)
        resource = Resource("budget", key)
        decision = await self._context.check(actor, "budget.change", resource)
        _check_hours(device_hours)
        reason = " ".join(reason.split())
        if not reason or len(reason) > _MOST_REASON:
            raise InvalidInput("bad-reason", f"Say why, in at most {_MOST_REASON} characters.")
        now = self._clock.now()
        line = self._context.line(
            actor, "budget.change", resource, decision, change="top-up", deviceHours=device_hours, why=reason
        )
        since, more = window_of(window, now)[0], TopUp(device_hours, now, actor.user, reason)
        if not await self._store.top_up(kind, name, window, since, more, line):
            raise _no_budget(key)
        return await self._view(kind, name, window)

    async def remove(self, actor: Actor, kind: str, name: str, window: str) -> None:
        """Remove a budget; raises InvalidInput, NotFound, Forbidden."""
        key = _key(kind, name, window)
        resource = Resource("budget", key)
        decision = await self._context.check(actor, "budget.change", resource)
        line = self._context.line(actor, "budget.change", resource, decision, change="remove")
        if not await self._store.remove_budget(kind, name, window, line):
            raise _no_budget(key)

    async def of_job(self, queue: str, user: str) -> Sequence[Standing]:
        """How the budgets stand that a job of this queue and user counts for.

        What was used is up to 10 s old, because summing it costs more than all else of a submission.
        """
        now = self._clock.now()
        self._used = {key: each for key, each in self._used.items() if each.holds(key, now)}
        known = {key: each.seconds for key, each in self._used.items()}
        found = await self._store.standings(now, queue=queue, user=user, used=known)
        for each in found:
            self._used.setdefault(each.budget.key, _Used(now, each.used))
        return found

    async def check_change(self, user: str, before: UnifiedJob | None, after: UnifiedJob) -> None:
        """Check a change of a job that has not begun, or of an ended one that begins anew (`before` is None).

        Raises Conflict `budget-used-up`.
        """
        self.trial(await self.of_job(after.spec.queue, user), user, before, after)

    def trial(
        self, standings: Sequence[Standing], user: str, before: UnifiedJob | None, after: UnifiedJob
    ) -> tuple[str, ...]:
        """The warnings for a job that is not stored as `after` yet; raises Conflict `budget-used-up`."""
        now, warnings = self._clock.now(), []
        for each in standings:
            counted = before is not None and each.counts(before.spec.queue, user)
            more = _promise(each, after, now) - (_promise(each, before, now) if counted and before else 0.0)
            warnings.append(check(each, each.promised + more, more))
        return tuple(warning for warning in warnings if warning)

    async def _check_there(self, kind: str, name: str) -> None:
        if kind == BudgetKind.USER:
            if await self._store.user(name) is None:
                raise NotFound("user-not-found", f"There is no user {name[:100]}.")
        elif name not in {_DEFAULT, *(each.name for each in await self._store.queues())}:
            raise NotFound("queue-not-found", f"There is no queue {name[:100]}; `corral queues` lists them.")

    async def _view(self, kind: str, name: str, window: str) -> BudgetView:
        for each in await self._store.standings(self._clock.now()):
            if (each.budget.kind, each.budget.name, each.budget.window) == (kind, name, window):
                return each.view()
        raise _no_budget(_key(kind, name, window))


def _promise(standing: Standing, job: UnifiedJob, now: float) -> float:
    devices = job.device_millis / DEVICE * max(1, job.spec.array.size)
    return standing.promise(devices, job.spec.max_duration_seconds, now)


def _key(kind: str, name: str, window: str) -> str:
    """The name of a budget in the audit log; raises InvalidInput for what is no kind or window."""
    if kind not in set(BudgetKind) or window not in set(Window):
        raise InvalidInput(
            "bad-budget",
            f"A budget is of a {' or '.join(BudgetKind)}, for a {', '.join(Window)}; not {kind[:50]} "
            f"and {window[:50]}.",
        )
    return f"{kind}/{name}/{window}"


def _check_hours(hours: float) -> None:
    if not 0 < hours <= MOST_HOURS:
        raise InvalidInput("bad-budget", f"Device-hours are above 0 and at most {MOST_HOURS:,.0f}.")


def _no_budget(key: str) -> NotFound:
    return NotFound("budget-not-found", f"There is no budget {key[:200]}; `corral budget` lists them.")
