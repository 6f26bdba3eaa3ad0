"""Have control play the courses of questions: while the caller waits, or with its progress on the way."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.model.what_if import MOST_TRIES, Courses, Question
from corral.model.what_if_progress import COMPARING, WhatIfProgress, in_words
from corral.service.context import Context

PATIENCE: Final = 90.0
"""Seconds that control may take for an answer while the caller waits."""
_TURN_SECONDS: Final = 240.0
"""Seconds that a question waits for its turn at control when nobody holds a connection for it."""
_PLAY_SECONDS: Final = 70.0
"""Seconds that control takes to play a question, at most."""
_LOOK_SECONDS: Final = 0.4
"""Seconds between two looks at the progress."""
_NOT_FOUND: Final = frozenset({"node-not-found", "job-is-over"})


class ControlCourses:
    """Has control play questions, while the caller of the API waits for the answer."""

    def __init__(self, context: Context) -> None:
        self._control = context.control

    async def played(self, question: Question) -> Courses:
        """The courses of a question; control ends its processes when this is cancelled.

        Raises Unavailable, NotFound, InvalidInput.
        """
        try:
            found = await self._request(msgspec.to_builtins(question))
        except Unavailable:
            raise
        except CorralError as error:
            kind = NotFound if error.code in _NOT_FOUND else InvalidInput
            raise kind(error.code, error.message) from None
        return msgspec.convert(found, Courses)

    def trying(self, attempt: int, value: str) -> None:
        """Hear of an attempt of the search for a goal, from 1, and its value in words."""

    def comparing(self) -> None:
        """Hear that all courses are played."""

    async def _request(self, body: Any) -> Any:
        return await self._control.request("/what-if", body, seconds=PATIENCE)


class WatchedCourses(ControlCourses):
    """The same for a question that is answered later: it waits longer for its turn, and tells of its progress."""

    def __init__(self, context: Context, told: Callable[[WhatIfProgress], None]) -> None:
        """`told` is called with the progress each time that it has changed."""
        super().__init__(context)
        self._told = told
        self._step = WhatIfProgress()
        """The attempt that is being made; without a goal it has none."""
        self._last = self._step

    def trying(self, attempt: int, value: str) -> None:
        """Tell of an attempt."""
        self._step = WhatIfProgress(attempt=attempt, most_attempts=MOST_TRIES, trying=value)
        self._tell(WhatIfProgress())

    def comparing(self) -> None:
        """Tell that all courses are played."""
        self._step = WhatIfProgress()
        self._tell(WhatIfProgress(1.0, COMPARING, courses=self._last.courses))

    async def _request(self, body: Any) -> Any:
        number = secrets.token_hex(16)
        looking = asyncio.create_task(self._look(number))
        try:
            path = f"/what-if?number={number}&patience={_TURN_SECONDS:g}"
            return await self._control.request(path, body, seconds=_TURN_SECONDS + _PLAY_SECONDS)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _look(self, number: str) -> None:
        """Ask control again and again how far a question is."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                found = await self._control.request(f"/what-if/{number}/progress")
            except CorralError:  # the question itself is told why
                continue
            if found is not None:
                self._tell(msgspec.convert(found, WhatIfProgress))

    def _tell(self, found: WhatIfProgress) -> None:
        fraction, step = found.fraction, self._step
        if step.attempt:
            fraction = (step.attempt - 1 + fraction) / step.most_attempts
        told = msgspec.structs.replace(
            found,
            fraction=max(fraction, self._last.fraction),  # a course that starts anew does not take it back
            attempt=step.attempt,
            most_attempts=step.most_attempts,
            trying=step.trying,
        )
        told = in_words(told)
        if told != self._last:
            self._last = told
            self._told(told)
