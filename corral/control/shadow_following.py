"""A comparison that goes on beside a server, and tells at any time what a comparison up to then would say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from corral.control.shadow.comparison import Comparison, Question
from corral.control.shadow.source import FolderSource
from corral.control.what_if.forked import Fork, ForkLimits
from corral.model.policy_shadow import ShadowReport

LIMITS: Final = ForkLimits(memory=8 << 30, seconds=3000.0, advice="begin later")
_LOOKS: Final = 0.5
"""Seconds between two looks whether it is to stop."""


class Following:
    """Reads what a journal has more each time, and keeps in memory what the hours that are over come to.

    Of the last day run times may still become known. So it is compared anew each time, in a forked process, from the
    hours before it on.
    """

    def __init__(self, source: FolderSource, question: Question) -> None:
        self._source = source
        self._since = question.since
        self._comparison = Comparison(question)

    def read(self) -> None:
        """Read what is new in the journal; raises as `Comparison.read` does."""
        self._comparison.read(self._source.more(self._since))

    async def report(self, now: float, stopped: Callable[[], bool] = lambda: False) -> ShadowReport | None:
        """Compare what was read up to now, and go on as if nobody had asked; None if it was stopped meanwhile.

        Raises as `Comparison.finish` and `Fork.answer` do.
        """
        fork = Fork(partial(self._told, now), LIMITS)
        answer = asyncio.ensure_future(fork.answer())
        try:
            while not answer.done() and not stopped():
                await asyncio.wait([answer], timeout=_LOOKS)
            return msgspec.json.decode(await answer, type=ShadowReport) if answer.done() else None
        finally:
            answer.cancel()
            await fork.end()

    def finish(self, now: float) -> ShadowReport:
        """Compare what was read up to now; nothing can be read after that."""
        return self._comparison.finish(self._source.problem, now)

    def _told(self, now: float) -> bytes:
        """Runs in a forked child."""
        return msgspec.json.encode(self.finish(now))
