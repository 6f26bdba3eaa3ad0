"""Questions that are answered later, as the fronts of several servers know them: through the store that they share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, NamedTuple, Protocol

import msgspec
import structlog

from corral.kernel.errors import CorralError
from corral.model.what_if_progress import RUNNING, WhatIfProgress, WhatIfRefusal
from corral.service.context import Context
from corral.store.question_records import QuestionOwner, ToldQuestion

log = structlog.get_logger()
_LOOK_SECONDS: Final = 0.5
"""Seconds between two looks at a question of another front."""
_TELL_SECONDS: Final = 1.0
"""Seconds between two looks of a front whether its own question is still wanted."""
_LOST_SECONDS: Final = 60.0
"""Seconds without a word of its front after which a question that runs counts as lost."""
HEARTBEAT_SECONDS: Final = 15.0


class Told(msgspec.Struct, frozen=True):
    """The state of a question, without its answer."""

    number: str
    state: str
    asked_at: str
    progress: WhatIfProgress
    error: WhatIfRefusal | None = None


class Whole(NamedTuple):
    """A question of another front."""

    told: Told
    answer: bytes | None
    """Its answer as JSON."""


class OwnQuestion(Protocol):
    """A question that this front answers."""

    number: str
    state: str
    answer: bytes | None
    news: asyncio.Event

    def told(self) -> Told:
        """Its state now."""
        ...


class SharedQuestions:
    """Tells other fronts of the questions of this one, and asks for theirs; all of one kind."""

    def __init__(self, context: Context, kind: str, seconds: float) -> None:
        """An answer is kept for so many seconds."""
        self._store = context.store
        self._clock = context.clock
        self._kind = kind
        self._seconds = seconds

    # ---- own questions

    async def begin(self, question: OwnQuestion, owner: tuple[str, str]) -> None:
        """Tell of a new question; raises Unavailable."""
        now = self._clock.now()
        told = ToldQuestion(question.number, True, now, _encoded(question.told()))
        await self._store.begin_question(QuestionOwner(self._kind, *owner), told, now - self._seconds - _LOST_SECONDS)

    async def tell(self, question: OwnQuestion) -> None:
        """Tell of each change until the question is over; returns early once another front has cancelled it."""
        while True:
            news = question.news
            running = question.state == RUNNING
            answer = "" if question.answer is None else question.answer.decode()
            told = ToldQuestion(question.number, running, self._clock.now(), _encoded(question.told()), answer)
            wanted = await self._told(told)
            if wanted is False or (wanted is True and not running):
                return
            try:
                await asyncio.wait_for(news.wait(), _TELL_SECONDS)
            except TimeoutError:
                continue

    async def _told(self, told: ToldQuestion) -> bool | None:
        """Whether the question is still wanted; None while the store does not answer."""
        try:
            return await self._store.tell_question(told)
        except CorralError as error:
            log.warning("question not told to other fronts", number=told.number, code=error.code)
            return None

    async def is_wanted(self, number: str) -> bool:
        """Whether no other front has cancelled a question; also while the store does not answer."""
        try:
            return await self._store.is_question_there(number)
        except CorralError:
            return True

    async def forget(self, number: str) -> None:
        """Tell that a question is forgotten; if the store does not answer, its row goes later."""
        try:
            await self._store.forget_question(number)
        except CorralError as error:
            log.warning("question not forgotten", number=number, code=error.code)

    # ---- those of other fronts

    async def find(self, owner: tuple[str, str], number: str, *, whole: bool = False) -> Whole | None:
        """A question of an owner that another front answers or has answered; None if there is none. Raises Unavailable."""
        row = await self._store.question_told(QuestionOwner(self._kind, *owner), number, whole=whole)
        return None if row is None or self._is_lost(row) else _whole(row)

    async def of(self, owner: tuple[str, str]) -> list[Told]:
        """The questions of an owner at all fronts. Raises Unavailable."""
        rows = await self._store.questions_told(QuestionOwner(self._kind, *owner))
        return [_whole(row).told for row in rows if not self._is_lost(row)]

    async def cancel(self, owner: tuple[str, str], number: str) -> None:
        """End a question of another front; returns once it is over. Raises Unavailable."""
        row = await self._store.question_told(QuestionOwner(self._kind, *owner), number, whole=False)
        if row is None:
            return
        if row.running:
            await self._store.cancel_question(number)
            with contextlib.suppress(TimeoutError):  # then its front is lost
                async with asyncio.timeout(_LOST_SECONDS):
                    await self._ended(number)
        await self._store.forget_question(number)

    async def _ended(self, number: str) -> None:
        while True:
            if not await self._store.is_question_there(number):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def follow(self, owner: tuple[str, str], number: str) -> AsyncIterator[Told | None]:
        """The states of a question of another front, until it is over or lost; None is a heartbeat."""
        last: Told | None = None
        silent = 0.0
        while (found := await self.find(owner, number)) is not None:
            if found.told != last:
                last, silent = found.told, 0.0
                yield last
                if last.state != RUNNING:
                    return
            elif (silent := silent + _LOOK_SECONDS) >= HEARTBEAT_SECONDS:
                silent = 0.0
                yield None
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_lost(self, row: ToldQuestion) -> bool:
        return self._clock.now() - row.at > (_LOST_SECONDS if row.running else self._seconds)


def _encoded(told: Told) -> str:
    return msgspec.json.encode(told).decode()


def _whole(row: ToldQuestion) -> Whole:
    return Whole(msgspec.json.decode(row.doc, type=Told), row.answer.encode() if row.answer else None)
