"""Have control let a candidate policy decide beside the one in force, on the inputs of the server's journal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.kernel.errors import Conflict, CorralError, InvalidInput, NotFound, Unavailable
from corral.model.policy_shadow import (
    LONGEST_WITHIN,
    MOST_DIFFERENCES,
    MOST_NAME,
    RunningShadowRequest,
    ShadowQuestion,
    ShadowReport,
    ShadowRequest,
)
from corral.model.what_if import DAY
from corral.model.what_if_progress import WAITING, WhatIfProgress, in_words
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.configuration.change import candidate_documents
from corral.service.context import Context
from corral.service.times import read_time
from corral.service.what_if.one_each import OneEach
from corral.service.what_if.watched_request import watched_request

COMPARE_SECONDS: Final = 600.0
"""Seconds that control compares, at most."""
_GRACE_SECONDS: Final = 30.0
"""Seconds beyond that for control to start and to answer."""
_NOT_FOUND: Final = frozenset(
    {"no-journal", "nothing-to-compare", "nothing-since", "no-running-shadow", "no-report-yet"}
)


def _busy() -> Unavailable:
    message = "Your comparison before this one is still being made; ask again when it is, or cancel it."
    return Unavailable("comparison-busy", message, retry_after=30)


class PolicyShadows:
    """Compares candidates with the policy in force; for administrators, as reports name everybody's jobs."""

    action: Final = "policy.shadow"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._places = OneEach(_busy)

    async def check(self, actor: Actor, asked: ShadowRequest) -> None:
        """Check that the actor may ask, and the bounds of a comparison; raises Forbidden, InvalidInput."""
        await self._context.check(actor, self.action, Resource("cluster"))
        _times(asked, self._context.clock.now())
        check_candidate(asked)

    def place(self, actor: Actor) -> contextlib.AbstractContextManager[None]:
        """Hold the one place of a user whose comparison is being made; raises Unavailable when it is taken."""
        return self._places.place(actor.user)

    async def answered_later(
        self, actor: Actor, asked: ShadowRequest, told: Callable[[WhatIfProgress], None]
    ) -> ShadowReport:
        """The report of a comparison that was checked; `told` hears of its progress.

        Raises SpecError, Conflict and InvalidInput for documents or a policy that are not valid, NotFound if the server
        keeps no journal of that time, Unavailable while control does not answer, or compares others.
        """
        told(in_words(WhatIfProgress(stage=WAITING)))
        since, until = _times(asked, self._context.clock.now())
        question = await question_of(self._context, asked, since, until)
        return await self._compared(question, told)

    async def _compared(self, question: ShadowQuestion, told: Callable[[WhatIfProgress], None]) -> ShadowReport:
        control, body = self._context.control, msgspec.to_builtins(question)
        seconds = COMPARE_SECONDS + _GRACE_SECONDS
        try:
            found: Any = await watched_request(control, "/policy-shadow", body, told, seconds=seconds)
        except CorralError as error:
            raise refusal_of(error) from None
        return msgspec.convert(found, ShadowReport)


def check_candidate(asked: ShadowRequest | RunningShadowRequest) -> None:
    """Check the bounds of what both requests have; raises InvalidInput."""
    if not asked.policy and not asked.documents:
        raise InvalidInput("no-candidate", "A candidate is a policy, such as `srtf`, or documents.")
    if len(asked.policy) > MOST_NAME:
        raise InvalidInput("bad-policy", f"The name of a policy has at most {MOST_NAME} characters.")
    if not 0 <= asked.within <= LONGEST_WITHIN:
        raise InvalidInput("bad-within", "Equal decisions may differ by 0 seconds to 1 day (`within`).")
    if not 0 <= asked.differences <= MOST_DIFFERENCES:
        raise InvalidInput("bad-differences", f"A report lists 0 to {MOST_DIFFERENCES} differences.")


async def question_of(
    context: Context, asked: ShadowRequest | RunningShadowRequest, since: float, until: float | None
) -> ShadowQuestion:
    """What control is asked; raises SpecError, Conflict and InvalidInput for documents that are not valid."""
    documents = None
    if asked.documents:
        documents = await context.run_in_worker(False, candidate_documents, asked.documents)
    names = [each for each in (asked.policy, "other documents" if asked.documents else "") if each]
    return ShadowQuestion(
        asked.policy, documents, " with ".join(names), since, until, asked.anew, asked.within, asked.differences
    )


def refusal_of(error: CorralError) -> CorralError:
    """The error of a refusal of control, which names only its code."""
    if isinstance(error, Unavailable):
        return error
    if error.code == "shadow-running":
        return Conflict(error.code, error.message)
    kind = NotFound if error.code in _NOT_FOUND else InvalidInput
    return kind(error.code, error.message)


def _times(asked: ShadowRequest, now: float) -> tuple[float, float | None]:
    since = read_time("since", asked.since) if asked.since else now - DAY
    until = read_time("until", asked.until) if asked.until else None
    if until is not None and until <= since:
        raise InvalidInput("bad-times", "A comparison ends after it begins: `until` is to be later than `since`.")
    return since, until
