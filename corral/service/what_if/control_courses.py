"""Have control play the courses of questions: while the caller waits, or with its progress on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.model.what_if import MOST_TRIES, Courses, Question
from corral.model.what_if_progress import COMPARING, WhatIfProgress, in_words
from corral.service.context import Context
from corral.service.what_if.watched_request import watched_request

PATIENCE: Final = 90.0
"""Seconds that control may take for an answer while the caller waits."""
_PLAY_SECONDS: Final = 70.0
"""Seconds that control takes to play a question, at most."""
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
        return await watched_request(self._control, "/what-if", body, self._tell, seconds=_PLAY_SECONDS)

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
