"""Let a candidate policy go on beside the one in force at control, one at a time; for administrators."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from corral.kernel.errors import CorralError, InvalidInput
from corral.model.policy_shadow import (
    MOST_RUNNING_HOURS,
    RunningQuestion,
    RunningShadow,
    RunningShadowRequest,
    ShadowReport,
)
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.times import read_time
from corral.service.what_if.policy_shadows import check_candidate, question_of, refusal_of

_PATH: Final = "/running-shadow"
_HOUR: Final = 3600.0


class RunningShadows:
    """The running shadow, which all administrators share, as reports name everybody's jobs."""

    action: Final = "policy.shadow"

    def __init__(self, context: Context) -> None:
        self._context = context

    async def begin(self, actor: Actor, asked: RunningShadowRequest) -> RunningShadow:
        """Begin it.

        Raises Forbidden, InvalidInput, SpecError and Conflict for what cannot be a candidate, Conflict `shadow-running` if
        one goes on, NotFound `no-journal`, and Unavailable while control does not answer.
        """
        decision = await self._check(actor)
        check_candidate(asked)
        since, until = _times(asked, self._context.clock.now())
        question = await question_of(self._context, asked, since, until)
        found = await self._ask("", msgspec.to_builtins(RunningQuestion(question, actor.user)))
        detail = {"candidate": question.candidate, "hours": asked.hours}
        await self._context.note(actor, self.action, Resource("cluster"), decision, begins=detail)
        return msgspec.convert(found, RunningShadow)

    async def status(self, actor: Actor) -> RunningShadow:
        """How it stands; raises Forbidden, NotFound `no-running-shadow`, Unavailable."""
        await self._check(actor)
        return msgspec.convert(await self._ask(""), RunningShadow)

    async def report(self, actor: Actor) -> ShadowReport:
        """Its last report; raises Forbidden, NotFound `no-running-shadow` and `no-report-yet`, Unavailable."""
        await self._check(actor)
        return msgspec.convert(await self._ask("/report"), ShadowReport)

    async def stop(self, actor: Actor) -> RunningShadow:
        """Stop it; its last report stays. Raises Forbidden, NotFound `no-running-shadow`, Unavailable."""
        decision = await self._check(actor)
        stopped = msgspec.convert(await self._ask("/stop", {}), RunningShadow)
        detail = {"candidate": stopped.candidate}
        await self._context.note(actor, self.action, Resource("cluster"), decision, stops=detail)
        return stopped

    async def _check(self, actor: Actor) -> Decision:
        return await self._context.check(actor, self.action, Resource("cluster"))

    async def _ask(self, path: str, body: Any = None) -> Any:
        try:
            return await self._context.control.request(f"{_PATH}{path}", body)
        except CorralError as error:
            raise refusal_of(error) from None


def _times(asked: RunningShadowRequest, now: float) -> tuple[float, float]:
    """When it begins and ends."""
    if not (math.isfinite(asked.hours) and 1 <= asked.hours <= MOST_RUNNING_HOURS):
        raise InvalidInput("bad-hours", f"A running shadow goes on for 1 to {MOST_RUNNING_HOURS} hours (`hours`).")
    since = read_time("since", asked.since) if asked.since else now
    until = since + asked.hours * _HOUR
    if since > now:
        raise InvalidInput("bad-times", "A running shadow begins now or before: `since` is in the future.")
    if until <= now:
        raise InvalidInput("bad-times", "A running shadow ends after now: `since` is more than `hours` ago.")
    return since, until
