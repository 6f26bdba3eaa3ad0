"""Questions that one front answers later, as other fronts see them: states, answers, and whether they are cancelled."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, select, update

from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import put
from corral.store.writer import Transaction

_questions = tables.questions
_TOLD = (_questions.c.number, _questions.c.running, _questions.c.at, _questions.c.doc)


class QuestionOwner(NamedTuple):
    """To whom a question belongs, and of which kind it is."""

    kind: str
    user: str
    role: str


class ToldQuestion(NamedTuple):
    """What a front told of a question."""

    number: str
    running: bool
    at: float
    """When it was told, in seconds since 1970."""
    doc: str
    """Its state as JSON."""
    answer: str = ""
    """Its answer as JSON; "" if it has none, or was not asked for."""


class QuestionRecords(Database):
    """Questions that are answered later. Times are in seconds since 1970."""

    async def begin_question(self, owner: QuestionOwner, told: ToldQuestion, before: float) -> None:
        """Store a new question, and drop those that were told of last before a time."""

        def run(transaction: Transaction) -> None:
            transaction.write(delete(_questions).where(_questions.c.at < before))
            put(transaction, _questions, [{**owner._asdict(), **told._asdict(), "cancelled": False}])

        await self.write(run)

    async def tell_question(self, told: ToldQuestion) -> bool:
        """Store the state of a question; returns whether it is still wanted."""

        def run(transaction: Transaction) -> bool:
            changed = {name: value for name, value in told._asdict().items() if name != "number"}
            statement = update(_questions).where(_questions.c.number == told.number, ~_questions.c.cancelled)
            return bool(transaction.write(statement.values(changed)).rowcount)

        return await self.write(run)

    async def question_told(self, owner: QuestionOwner, number: str, *, whole: bool) -> ToldQuestion | None:
        """A question of an owner, with its answer if `whole`; None if there is none, or it is being cancelled."""
        columns = (*_TOLD, _questions.c.answer) if whole else _TOLD
        query = select(*columns).where(*_of(owner), _questions.c.number == number, ~_questions.c.cancelled)
        found = await self.read(lambda reader: rows(reader, query))
        return _told(found[0]) if found else None

    async def questions_told(self, owner: QuestionOwner) -> list[ToldQuestion]:
        """The questions of an owner, without their answers."""
        query = select(*_TOLD).where(*_of(owner), ~_questions.c.cancelled)
        return [_told(each) for each in await self.read(lambda reader: rows(reader, query))]

    async def is_question_there(self, number: str) -> bool:
        """Whether a question is stored, also if it is being cancelled."""
        query = select(_questions.c.number).where(_questions.c.number == number)
        return bool(await self.read(lambda reader: rows(reader, query)))

    async def cancel_question(self, number: str) -> None:
        """Have the front that answers a question end it; it then forgets it."""
        await self.change(update(_questions).where(_questions.c.number == number).values(cancelled=True))

    async def forget_question(self, number: str) -> None:
        """Drop a question."""
        await self.change(delete(_questions).where(_questions.c.number == number))


def _of(owner: QuestionOwner) -> tuple[ColumnElement[bool], ...]:
    return _questions.c.kind == owner.kind, _questions.c.user == owner.user, _questions.c.role == owner.role


def _told(row: Any) -> ToldQuestion:
    return ToldQuestion(row.number, row.running, row.at, row.doc, getattr(row, "answer", ""))
