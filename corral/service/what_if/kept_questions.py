"""Questions that are answered later: they are played in the background, and kept for a while with their answers."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, NamedTuple, cast

import msgspec
import structlog

from corral.kernel.errors import CorralError, NotFound, TooLarge, Unauthenticated, Unavailable
from corral.model.records import rfc3339
from corral.model.views import ProblemView
from corral.model.what_if import WhatIfRequest
from corral.model.what_if_progress import (
    CANCELLED,
    DONE,
    FAILED,
    RUNNING,
    WhatIfProgress,
    WhatIfQuestions,
    WhatIfRefusal,
    WhatIfStatus,
    in_words,
)
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.what_if.control_courses import WatchedCourses
from corral.service.what_if.questions import WhatIf

log = structlog.get_logger()

_HEARTBEAT_SECONDS: Final = 15.0


class QuestionBounds(NamedTuple):
    """What one process keeps of questions that are answered later."""

    of_user: int = 5
    """Questions of one user, the running one included; the oldest answers go first."""
    in_all: int = 200
    running: int = 50
    answer_bytes: int = 8 << 20
    """Bytes of one answer."""
    bytes_of_user: int = 16 << 20
    bytes_in_all: int = 128 << 20
    seconds: float = 600.0
    """How long an answer is kept."""


USUAL: Final = QuestionBounds()


class _Kept:
    """One question, from the call that asks it until its answer is forgotten."""

    def __init__(self, number: str, actor: Actor, asked_at: str) -> None:
        self.number = number
        self.owner = _owner(actor)
        self.asked_at = asked_at
        self.state = RUNNING
        self.progress = in_words(WhatIfProgress())
        self.answer: bytes | None = None
        """The answer as JSON."""
        self.error: WhatIfRefusal | None = None
        self.news = asyncio.Event()
        """Set, and replaced, whenever something has changed."""
        self.place = contextlib.ExitStack()
        """Holds the place of its user while it runs."""
        self.task: asyncio.Task[None]

    def status(self, *, whole: bool = False) -> WhatIfStatus:
        """What is told of it; with its answer if `whole`."""
        answer = msgspec.Raw(self.answer) if whole and self.answer is not None else None
        return WhatIfStatus(self.number, self.state, self.asked_at, self.progress, cast(Any, answer), self.error)

    def tell(self, progress: WhatIfProgress) -> None:
        self.progress = progress
        self.changed()

    def end(self, state: str) -> None:
        self.state = state
        self.place.close()
        self.changed()

    def changed(self) -> None:
        self.news.set()
        self.news = asyncio.Event()


class KeptQuestions:
    """The questions that this process answers later, by number.

    A question belongs to its user, and ends with the sign-in that asked it.
    """

    def __init__(self, context: Context, what_if: WhatIf, bounds: QuestionBounds = USUAL) -> None:
        self._context = context
        self._what_if = what_if
        self.bounds = bounds
        self._kept: dict[str, _Kept] = {}
        """Oldest first."""
        context.at_close(self._close)

    async def start(self, actor: Actor, asked: WhatIfRequest) -> WhatIfStatus:
        """Begin to answer a question.

        Raises Forbidden and InvalidInput as `WhatIf.check` does, Unavailable while the user's question before it runs, or
        too many run.
        """
        await self._what_if.check(actor, asked)
        kept = _Kept(secrets.token_hex(16), actor, rfc3339(self._context.clock.now()))
        self._make_room(kept.owner)
        kept.place.enter_context(self._what_if.place(actor))
        self._kept[kept.number] = kept
        kept.task = asyncio.create_task(self._live(kept, actor, asked), name="what-if")
        kept.task.add_done_callback(lambda _: self._forget(kept))  # also for one that never began
        return kept.status()

    async def status(self, actor: Actor, number: str) -> WhatIfStatus:
        """The state of a question, with its answer if it is done.

        Raises NotFound, Forbidden.
        """
        return (await self._find(actor, number)).status(whole=True)

    async def of_user(self, actor: Actor) -> WhatIfQuestions:
        """The caller's questions, without their answers.

        Raises Forbidden.
        """
        await self._context.check(actor, "cluster.ask", Resource("cluster"))
        return WhatIfQuestions(tuple(each.status() for each in self._of(_owner(actor))))

    async def cancel(self, actor: Actor, number: str) -> None:
        """End a question if it runs, and forget its answer; returns once its work has ended.

        Raises NotFound, Forbidden.
        """
        kept = await self._find(actor, number)
        kept.task.cancel()
        await asyncio.wait({kept.task})

    async def follow(self, actor: Actor, number: str) -> AsyncIterator[WhatIfStatus | None]:
        """Return the states of a question: now, after each change, and at its end; None is a heartbeat.

        Raises NotFound, Forbidden.
        """
        return _states(await self._find(actor, number))

    async def _find(self, actor: Actor, number: str) -> _Kept:
        await self._context.check(actor, "cluster.ask", Resource("cluster"))
        kept = self._kept.get(number)
        if kept is None or kept.owner != _owner(actor):
            raise NotFound(
                "question-not-found",
                f"There is no question {number[:40]} of yours; it was cancelled, ended more than "
                f"{round(self.bounds.seconds / 60)} minutes ago, or was lost with a restart of the server. Ask it again.",
            )
        return kept

    def _of(self, owner: tuple[str, str]) -> list[_Kept]:
        return [each for each in self._kept.values() if each.owner == owner]

    # ---- the life of a question

    async def _live(self, kept: _Kept, actor: Actor, asked: WhatIfRequest) -> None:
        """Answer a question and keep the answer for a while; all of it ends with the sign-in of the actor."""
        with contextlib.suppress(Unauthenticated):
            async with self._context.streams.held(actor):
                await self._answer(kept, actor, asked)
                await asyncio.sleep(self.bounds.seconds)

    async def _answer(self, kept: _Kept, actor: Actor, asked: WhatIfRequest) -> None:
        try:
            answer = await self._what_if.answered(actor, asked, WatchedCourses(self._context, kept.tell))
            kept.answer = msgspec.json.encode(answer)
            self._bound_answers(kept)
        except CorralError as error:
            kept.answer = None
            kept.error = _refusal(error)
        except Exception:
            log.exception("question not answered", number=kept.number)
            message = "The server failed to answer the question; its log says why (corral doctor says where it is)."
            kept.error = WhatIfRefusal(500, "internal-fault", message)
        kept.end(FAILED if kept.error else DONE)

    def _forget(self, kept: _Kept) -> None:
        """Remove a question whose task is over; one that was running is cancelled by that."""
        self._kept.pop(kept.number, None)
        kept.end(CANCELLED if kept.state == RUNNING else kept.state)

    # ---- bounds

    def _make_room(self, owner: tuple[str, str]) -> None:
        """Forget the oldest answers of the owner, then of anybody, that one more question takes the room of.

        Raises Unavailable when too many questions run.
        """
        if sum(each.state == RUNNING for each in self._kept.values()) >= self.bounds.running:
            message = "Too many what-if questions are being answered; ask again in a moment."
            raise Unavailable("too-many-questions", message, retry_after=10)
        self._drop_oldest(lambda: len(self._of(owner)) >= self.bounds.of_user, owner)
        self._drop_oldest(lambda: len(self._kept) >= self.bounds.in_all)

    def _bound_answers(self, kept: _Kept) -> None:
        """Forget the oldest other answers while they are too large together.

        Raises TooLarge for an answer that is too large alone.
        """
        size = len(kept.answer or b"")
        if size > self.bounds.answer_bytes:
            message = f"The answer has {size >> 20} MiB, more than the server keeps; ask without the timeline."
            raise TooLarge("answer-too-large", message)
        own = kept.owner
        self._drop_oldest(lambda: _bytes(self._of(own)) > self.bounds.bytes_of_user, own)
        self._drop_oldest(lambda: _bytes(self._kept.values()) > self.bounds.bytes_in_all)

    def _drop_oldest(self, too_much: Callable[[], bool], owner: tuple[str, str] | None = None) -> None:
        """Forget ended questions, oldest first, while there is too much; only those of `owner`, if one is named."""
        for each in list(self._kept.values()):
            if not too_much():
                return
            if each.state != RUNNING and owner in (None, each.owner):
                self._kept.pop(each.number)
                each.task.cancel()

    async def _close(self) -> None:
        """End all questions."""
        tasks = [each.task for each in self._kept.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _owner(actor: Actor) -> tuple[str, str]:
    """To whom a question belongs: what an administrator was told is not for the same account as an ordinary user."""
    return actor.user, actor.role


def _bytes(questions: Iterable[_Kept]) -> int:
    return sum(len(each.answer or b"") for each in questions)


def _refusal(error: CorralError) -> WhatIfRefusal:
    problems = error.details.get("problems", ())
    return WhatIfRefusal(error.status, error.code, error.message, msgspec.convert(problems, tuple[ProblemView, ...]))


async def _states(kept: _Kept) -> AsyncIterator[WhatIfStatus | None]:
    while True:
        news = kept.news
        yield kept.status()
        if kept.state != RUNNING:
            return
        while not news.is_set():
            try:
                await asyncio.wait_for(news.wait(), _HEARTBEAT_SECONDS)
            except TimeoutError:
                yield None
