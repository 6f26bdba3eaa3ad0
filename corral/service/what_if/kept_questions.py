"""Questions that are answered later: they are played in the background, and kept for a while with their answers.

Several servers share a PostgreSQL store, and each of their fronts answers for the questions of all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, cast

import msgspec
import structlog

from corral.kernel.errors import CorralError, NotFound, TooLarge, Unauthenticated, Unavailable
from corral.model.records import rfc3339
from corral.model.views import ProblemView
from corral.model.what_if_progress import (
    CANCELLED,
    DONE,
    FAILED,
    RUNNING,
    WhatIfProgress,
    WhatIfRefusal,
    in_words,
)
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.what_if.shared_questions import HEARTBEAT_SECONDS, SharedQuestions, Told

log = structlog.get_logger()

Asked = TypeVar("Asked")
AskedOf = TypeVar("AskedOf", contravariant=True)
Status = TypeVar("Status")
Items = TypeVar("Items")


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


class Asker(Protocol[AskedOf]):
    """Answers questions of one kind."""

    @property
    def action(self) -> str:
        """What the caller must be allowed to do."""
        ...

    async def check(self, actor: Actor, asked: AskedOf) -> None:
        """Check that the actor may ask, and the bounds of a question; raises Forbidden, InvalidInput."""
        ...

    def place(self, actor: Actor) -> contextlib.AbstractContextManager[None]:
        """Hold the one place of a user whose question is being answered; raises Unavailable when it is taken."""
        ...

    async def answered_later(self, actor: Actor, asked: AskedOf, told: Callable[[WhatIfProgress], None]) -> Any:
        """The answer to a question that was checked; `told` hears of its progress."""
        ...


class Shape(NamedTuple, Generic[Status, Items]):
    """How questions of one kind are told: alone, with the fields of `WhatIfStatus`, and as a list."""

    status: Callable[..., Status]
    items: Callable[[tuple[Status, ...]], Items]


class _Kept(Generic[Status]):
    """One question, from the call that asks it until its answer is forgotten."""

    def __init__(self, number: str, actor: Actor, asked_at: str, shape: Callable[..., Status]) -> None:
        self._shape = shape
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

    def status(self, *, whole: bool = False) -> Status:
        """What is told of it; with its answer if `whole`."""
        answer = msgspec.Raw(self.answer) if whole and self.answer is not None else None
        return self._shape(self.number, self.state, self.asked_at, self.progress, cast(Any, answer), self.error)

    def told(self) -> Told:
        return Told(self.number, self.state, self.asked_at, self.progress, self.error)

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


class KeptQuestions(Generic[Asked, Status, Items]):
    """The questions of one kind that this process answers later, by number.

    A question belongs to its user, and ends with the sign-in that asked it.
    """

    def __init__(
        self, context: Context, asker: Asker[Asked], shape: Shape[Status, Items], bounds: QuestionBounds = USUAL
    ) -> None:
        self._context = context
        self._asker = asker
        self._shape = shape
        self.bounds = bounds
        self._kept: dict[str, _Kept[Status]] = {}
        """Those of this front, oldest first."""
        several = context.store.dialect == "postgresql"
        self._shared = SharedQuestions(context, asker.action, bounds.seconds) if several else None
        context.at_close(self._close)

    async def start(self, actor: Actor, asked: Asked) -> Status:
        """Begin to answer a question.

        Raises Forbidden and InvalidInput as `Asker.check` does, Unavailable while the user's question before it runs, or
        too many run.
        """
        await self._asker.check(actor, asked)
        kept = _Kept(secrets.token_hex(16), actor, rfc3339(self._context.clock.now()), self._shape.status)
        self._make_room(kept.owner)
        kept.place.enter_context(self._asker.place(actor))
        if self._shared is not None:
            try:
                await self._shared.begin(kept, kept.owner)
            except BaseException:
                kept.place.close()
                raise
        self._kept[kept.number] = kept
        kept.task = asyncio.create_task(self._live(kept, actor, asked), name="what-if")
        kept.task.add_done_callback(lambda _: self._forget(kept))  # also for one that never began
        return kept.status()

    async def status(self, actor: Actor, number: str) -> Status:
        """The state of a question, with its answer if it is done.

        Raises NotFound, Forbidden.
        """
        if (kept := await self._own(actor, number)) is not None:
            return kept.status(whole=True)
        if self._shared is not None and (found := await self._shared.find(_owner(actor), number, whole=True)):
            return self._status(found.told, found.answer)
        raise self._not_found(number)

    async def of_user(self, actor: Actor) -> Items:
        """The caller's questions, without their answers.

        Raises Forbidden.
        """
        await self._context.check(actor, self._asker.action, Resource("cluster"))
        if self._shared is None:
            return self._shape.items(tuple(each.status() for each in self._of(_owner(actor))))
        everywhere = sorted(await self._shared.of(_owner(actor)), key=lambda told: told.asked_at)
        own = self._kept
        return self._shape.items(
            tuple(own[each.number].status() if each.number in own else self._status(each) for each in everywhere)
        )

    async def cancel(self, actor: Actor, number: str) -> None:
        """End a question if it runs, and forget its answer; returns once its work has ended.

        Raises NotFound, Forbidden.
        """
        if (kept := await self._own(actor, number)) is not None:
            kept.task.cancel()
            await asyncio.wait({kept.task})
            if self._shared is not None:
                await self._shared.forget(number)  # also one whose task never began
        elif self._shared is not None and await self._shared.find(_owner(actor), number):
            await self._shared.cancel(_owner(actor), number)
        else:
            raise self._not_found(number)

    async def follow(self, actor: Actor, number: str) -> AsyncIterator[Status | None]:
        """Return the states of a question: now, after each change, and at its end; None is a heartbeat.

        Raises NotFound, Forbidden.
        """
        if (kept := await self._own(actor, number)) is not None:
            return _states(kept)
        if self._shared is not None and await self._shared.find(_owner(actor), number):
            return self._states_elsewhere(self._shared, _owner(actor), number)
        raise self._not_found(number)

    async def _own(self, actor: Actor, number: str) -> _Kept[Status] | None:
        """A question of the actor that this front answers or has answered, unless another front was told to forget it."""
        await self._context.check(actor, self._asker.action, Resource("cluster"))
        kept = self._kept.get(number)
        if kept is None or kept.owner != _owner(actor):
            return None
        if kept.state != RUNNING and self._shared is not None and not await self._shared.is_wanted(number):
            kept.task.cancel()
            await asyncio.wait({kept.task})
            return None
        return kept

    def _not_found(self, number: str) -> NotFound:
        return NotFound(
            "question-not-found",
            f"There is no question {number[:40]} of yours; it was cancelled, ended more than "
            f"{round(self.bounds.seconds / 60)} minutes ago, or was lost with a restart of the server. Ask it again.",
        )

    def _status(self, told: Told, answer: bytes | None = None) -> Status:
        """What is told of a question of another front."""
        raw = None if answer is None else msgspec.Raw(answer)
        return self._shape.status(told.number, told.state, told.asked_at, told.progress, cast(Any, raw), told.error)

    async def _states_elsewhere(
        self, shared: SharedQuestions, owner: tuple[str, str], number: str
    ) -> AsyncIterator[Status | None]:
        last: Told | None = None
        async for told in shared.follow(owner, number):
            last = told or last
            yield None if told is None else self._status(told)
        if last is not None and last.state == RUNNING:
            yield self._status(msgspec.structs.replace(last, state=CANCELLED))

    def _of(self, owner: tuple[str, str]) -> list[_Kept[Status]]:
        return [each for each in self._kept.values() if each.owner == owner]

    # ---- the life of a question

    async def _live(self, kept: _Kept[Status], actor: Actor, asked: Asked) -> None:
        """Answer a question and keep the answer for a while; all of it ends with the sign-in of the actor."""
        async with self._told_elsewhere(kept):
            with contextlib.suppress(Unauthenticated):
                async with self._context.streams.held(actor):
                    await self._answer(kept, actor, asked)
                    await asyncio.sleep(self.bounds.seconds)

    @contextlib.asynccontextmanager
    async def _told_elsewhere(self, kept: _Kept[Status]) -> AsyncIterator[None]:
        """Tell the other fronts of a question inside the block; it ends when one of them cancels it."""
        shared = self._shared
        if shared is None:
            yield
            return

        async def tell() -> None:
            await shared.tell(kept)
            if kept.state == RUNNING:
                kept.task.cancel()

        telling = asyncio.create_task(tell(), name="what-if told")
        try:
            yield
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await shared.forget(kept.number)

    async def _answer(self, kept: _Kept[Status], actor: Actor, asked: Asked) -> None:
        try:
            answer = await self._asker.answered_later(actor, asked, kept.tell)
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

    def _forget(self, kept: _Kept[Status]) -> None:
        """Remove a question whose task is over; one that was running is cancelled by that."""
        self._kept.pop(kept.number, None)
        kept.end(CANCELLED if kept.state == RUNNING else kept.state)

    # ---- bounds

    def _make_room(self, owner: tuple[str, str]) -> None:
        """Forget the oldest answers of the owner, then of anybody, that one more question takes the room of.

        Raises Unavailable when too many questions run.
        """
        if sum(each.state == RUNNING for each in self._kept.values()) >= self.bounds.running:
            message = "Too many questions are being answered; ask again in a moment."
            raise Unavailable("too-many-questions", message, retry_after=10)
        self._drop_oldest(lambda: len(self._of(owner)) >= self.bounds.of_user, owner)
        self._drop_oldest(lambda: len(self._kept) >= self.bounds.in_all)

    def _bound_answers(self, kept: _Kept[Status]) -> None:
        """Forget the oldest other answers while they are too large together.

        Raises TooLarge for an answer that is too large alone.
        """
        size = len(kept.answer or b"")
        if size > self.bounds.answer_bytes:
            message = f"The answer has {size >> 20} MiB, more than the server keeps; ask for less."
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


def _bytes(questions: Iterable[_Kept[Any]]) -> int:
    return sum(len(each.answer or b"") for each in questions)


def _refusal(error: CorralError) -> WhatIfRefusal:
    problems = error.details.get("problems", ())
    return WhatIfRefusal(error.status, error.code, error.message, msgspec.convert(problems, tuple[ProblemView, ...]))


async def _states(kept: _Kept[Status]) -> AsyncIterator[Status | None]:
    while True:
        news = kept.news
        yield kept.status()
        if kept.state != RUNNING:
            return
        while not news.is_set():
            try:
                await asyncio.wait_for(news.wait(), HEARTBEAT_SECONDS)
            except TimeoutError:
                yield None
