"""Reach the goal of a what-if question: ask control about one value after another, and keep the answer that counts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from corral.kernel.errors import Conflict, InvalidInput, Unavailable
from corral.model.what_if import MOST_TRIES, Courses, GoalOutcome, GoalTry, WhatIfRequest
from corral.service.what_if.goal_search import Found, least
from corral.service.what_if.goals import Vary, goal_outcome, outcome_of, tried
from corral.spec.assertions.syntax import Assertion

Played = tuple[Courses, tuple[str, ...]]
"""Control's answer to a question, and the changes as clauses."""
SECONDS: Final = 60.0
"""After so long no further value is tried."""


class GoalSearch:
    """One search; every value is a question of its own, about the state of its moment."""

    def __init__(
        self,
        goal: Assertion,
        vary: Vary,
        first: int,
        asked: WhatIfRequest,
        ask: Callable[[WhatIfRequest], Awaitable[Played]],
        now: Callable[[], float] = time.monotonic,
        trying: Callable[[int, str], None] = lambda attempt, value: None,
    ) -> None:
        """`first` is the least value; `ask` has control play a request; `now` is in seconds.

        `trying` is told the number of each attempt, from 1, and its value in words.
        """
        self._goal = goal
        self._vary = vary
        self._first = first
        self._asked = asked
        self._ask = ask
        self._now = now
        self._trying = trying
        self._tries: list[GoalTry] = []
        self._known: dict[int, Found] = {}
        self._held: Played | None = None
        """The answer of the least value that holds."""
        self._missed: Played | None = None
        """The answer of the greatest value that does not."""
        self._devices = 0

    async def run(self) -> tuple[Played, GoalOutcome]:
        """Search; returns the answer of the least that holds, else of the most that was tried.

        Raises what `ask` raises for the first value, and InvalidInput if the goal is about nothing.
        """
        until = self._now() + SECONDS
        await self._attempt(self._first)
        most = self._vary.most(self._first, self._devices)
        found = await least(self._attempt, self._first, most, MOST_TRIES, lambda: self._now() < until)
        answer = self._held or self._missed
        if answer is None:
            raise AssertionError("the first value either holds or does not")
        return answer, goal_outcome(self._goal, self._vary, found, self._tries)

    async def _attempt(self, value: int) -> Found:
        if value not in self._known:
            self._known[value] = await self._asked_about(value)
        return self._known[value]

    async def _asked_about(self, value: int) -> Found:
        self._trying(len(self._tries) + 1, self._vary.said(value))
        try:
            played = await self._ask(self._vary.applied(self._asked, value))
        except (Conflict, InvalidInput) as error:
            if value == self._first:
                raise
            self._tries.append(GoalTry(value, False, refused=error.message))
            return Found.REFUSED
        except Unavailable:
            if not self._known:
                raise
            return Found.UNKNOWN
        return self._looked_at(value, played)

    def _looked_at(self, value: int, played: Played) -> Found:
        courses, _ = played
        outcome = outcome_of(self._goal, courses.before, courses.after)
        self._tries.append(tried(value, outcome))
        self._devices = max((course.devices for course in courses.before), default=0)
        # The search goes up while values miss and down once one holds, so the latest of each kind is the one that counts.
        if outcome.held:
            self._held = played
            return Found.HELD
        self._missed = played
        return Found.MISSED
