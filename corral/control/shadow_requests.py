"""Requests to compare a candidate policy with the one in force: each is answered by a forked process.

Control's own process reads no file of the journal, and never waits for a comparison.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.control.caller_disconnect import while_connected
from corral.control.shadow.comparison import Question, compare
from corral.control.shadow.lives import CandidateRules
from corral.control.shadow.source import FolderSource
from corral.control.what_if.forked import Fork, ForkLimits
from corral.control.what_if.turns import PATIENCE, Turns
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.policy_shadow import ShadowQuestion
from corral.model.records import rfc3339
from corral.model.what_if_progress import COMPARING, READING, WAITING, WhatIfProgress, in_words

LIMITS: Final = ForkLimits(memory=1 << 30, seconds=600.0, advice="compare fewer hours")
_LONGEST_NUMBER: Final = 64
"""Characters of the number of a question."""
_NICER: Final = 10
_MOST_REPORT: Final = 8 << 20
"""Bytes of a report: many hours of many queues have more."""


class _Progress:
    """How far a comparison is, in memory that its process shares with control's; times are in seconds since 1970."""

    def __init__(self, until: float) -> None:
        self._until = until
        self._cells = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("d")
        """From where on it compares, and how far it has come; 0: it has not begun to."""
        self.begun = False
        """Whether its process was started."""

    def come_to(self, at: float) -> None:
        """Take down how far it has come."""
        self._cells[0] = self._cells[0] or at
        self._cells[1] = at

    def told(self) -> WhatIfProgress:
        """The progress now."""
        begin, at = self._cells[0], self._cells[1]
        if not begin:
            return in_words(WhatIfProgress(stage=READING if self.begun else WAITING))
        fraction = (at - begin) / max(1.0, self._until - begin)
        return WhatIfProgress(min(1.0, fraction), COMPARING, says=f"Compared to {rfc3339(at)}.")


class ShadowRequests:
    """Answers one request at a time; the next one waits for a while, and is then refused."""

    def __init__(
        self, journal: Callable[[], Path | None], now: Callable[[], float], limits: ForkLimits = LIMITS
    ) -> None:
        """`journal` is the folder of the server's journal, if it keeps one."""
        self._journal = journal
        self._now = now
        self._limits = limits
        self._turns = Turns("comparison-busy", "Another policy is being compared; ask again in a moment.")
        self._progress: dict[str, _Progress] = {}
        """By the number that the asker gave to a request, how far it is."""

    def routes(self) -> tuple[Route, ...]:
        """The routes of control's door."""
        return (
            Route("/policy-shadow", self._compare, methods=["POST"]),
            Route("/policy-shadow/{number}/progress", self._told),
        )

    def folder(self) -> Path:
        """The folder of the journal; raises NotFound `no-journal`."""
        folder = self._journal()
        if folder is None or not folder.is_dir():
            raise NotFound("no-journal", "This server keeps no journal; start it with `journal_days` above 0.")
        return folder

    async def answer(self, question: ShadowQuestion, number: str = "", patience: float = PATIENCE) -> bytes:
        """A `ShadowReport` as JSON; its process ends when the caller is cancelled.

        Raises NotFound `no-journal`, Unavailable `comparison-busy` while others are answered, and the errors of
        `Fork.answer` and of `compare`.
        """
        folder = self.folder()
        until = min(self._now(), inf if question.until is None else question.until)
        progress = _Progress(until)
        if number:
            self._progress[number] = progress
        try:
            async with self._turns.taken(patience):
                fork = Fork(partial(_compared, question, folder, progress), self._limits)
                progress.begun = True
                try:
                    return await fork.answer()
                finally:
                    await fork.end()
        finally:
            self._progress.pop(number, None)

    async def _compare(self, request: Request) -> Response:
        try:
            question = msgspec.json.decode(await request.body(), type=ShadowQuestion)
        except msgspec.DecodeError as error:
            raise InvalidInput("bad-question", f"Control does not understand the question: {error}.") from None
        number = request.query_params.get("number", "")[:_LONGEST_NUMBER]
        patience = float(request.query_params.get("patience", PATIENCE))
        report = await while_connected(request, self.answer(question, number, patience))
        return Response(report, media_type="application/json")

    def progress(self, number: str) -> WhatIfProgress | None:
        """How far a request is; None if none of this number is being answered."""
        found = self._progress.get(number)
        return None if found is None else found.told()

    async def _told(self, request: Request) -> Response:
        """How far a request is; null if none of this number is being answered."""
        found = self.progress(request.path_params["number"])
        return Response(msgspec.json.encode(found), media_type="application/json")


def _compared(question: ShadowQuestion, folder: Path, progress: _Progress) -> bytes:
    """Compare; runs in a forked child."""
    os.nice(_NICER)
    asked = Question(
        CandidateRules(question.policy, question.documents),
        question.candidate,
        question.since,
        inf if question.until is None else question.until,
        question.idle_until,
        anew=question.anew,
        most=question.differences,
        within=question.within,
        told=progress.come_to,
    )
    report = msgspec.json.encode(compare(FolderSource(folder), asked))
    if len(report) > _MOST_REPORT:
        size, most = len(report) >> 20, _MOST_REPORT >> 20
        message = (
            f"The report has {size} MiB, and {most} are sent at most; compare fewer hours, or list fewer differences."
        )
        raise InvalidInput("report-too-large", message)
    return report
