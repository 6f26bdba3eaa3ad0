"""Profiles of running jobs: rows alone, as their files are in a blob store.

A profile that is removed keeps its row until its file is deleted, so that no crash leaves files behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Update, bindparam, delete, func, or_, select, update

from corral.kernel.errors import Conflict
from corral.model.profiles import ProfileRow
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import put
from corral.store.writer import Transaction

_profiles = tables.profiles
MOST_LISTED: Final = 200
_AT_ONCE: Final = 500
TAKEN: Final = ("taking", "reading")
"""States of a profile that is not finished."""
_THERE: Final[ColumnElement[bool]] = _profiles.c.state != "removed"


class ProfileRecords(Database):
    """Profiles. Times are in seconds since 1970."""

    async def begin_profile(self, row: ProfileRow) -> None:
        """Store a profile that is being taken. Raises Conflict `profile-being-taken` while the job has another one."""
        running = select(func.count()).where(
            _profiles.c.job == row.job, _profiles.c.state.in_(TAKEN), _profiles.c.until > row.at
        )

        def run(transaction: Transaction) -> None:
            if transaction.read(running).scalar():
                raise Conflict("profile-being-taken", "A profile of this job is being taken; try again in a minute.")
            put(transaction, _profiles, [row._asdict()])

        await self.write(run)

    async def tell_profile(self, id: str, **values: Any) -> bool:
        """Store what became of a profile that is being taken; returns whether it is still wanted."""
        statement = update(_profiles).where(_profiles.c.id == id, _profiles.c.state.in_(TAKEN)).values(values)
        return await self.write(lambda transaction: transaction.write(statement).rowcount > 0)

    async def profile(self, id: str) -> ProfileRow | None:
        """The profile with this id, unless it was removed."""
        return next(iter(await self._profiles(_profiles.c.id == id)), None)

    async def profiles(self, *, job: str = "", user: str = "") -> list[ProfileRow]:
        """At most 200 profiles, newest first: of a job, of a user's jobs, or of all jobs."""
        where = [column == value for column, value in ((_profiles.c.job, job), (_profiles.c.user, user)) if value]
        return await self._profiles(*where)

    async def profile_bytes(self, user: str) -> int:
        """The bytes of all profiles of a user's jobs."""
        query = select(func.coalesce(func.sum(_profiles.c.size), 0)).where(_profiles.c.user == user, _THERE)
        return int(await self.read(lambda reader: reader.execute(query).scalar_one()))

    async def remove_profiles(self, ids: Sequence[str]) -> None:
        """Remove profiles; their files are deleted later."""
        await self.change(update(_profiles).where(_profiles.c.id.in_(ids)).values(state="removed"))

    async def trim_profiles(self, user: str, most_bytes: int, keep: str) -> None:
        """Remove a user's oldest profiles beyond the quota, but not the profile `keep`."""
        query = (
            select(_profiles.c.id, _profiles.c.size)
            .where(_profiles.c.user == user, _profiles.c.size > 0, _THERE)
            .order_by(_profiles.c.at.desc())
        )

        def run(transaction: Transaction) -> None:
            left, gone = most_bytes, []
            for row in transaction.read(query):
                left -= row.size
                if left < 0 and row.id != keep:
                    gone.append(row.id)
            if gone:
                transaction.write(update(_profiles).where(_profiles.c.id.in_(gone)).values(state="removed"))

        await self.write(run)

    async def profiles_to_delete(self, before: float) -> list[ProfileRow]:
        """Profiles whose files are to be deleted: those that were removed, and those older than a time."""
        old = or_(_profiles.c.state == "removed", _profiles.c.at < before)
        query = select(_profiles).where(old).order_by(_profiles.c.at).limit(_AT_ONCE)
        return [_row(each) for each in await self.read(lambda reader: rows(reader, query))]

    async def forget_profile(self, id: str) -> None:
        """Drop the row of a profile whose file is deleted."""
        await self.change(delete(_profiles).where(_profiles.c.id == id))

    async def _profiles(self, *where: ColumnElement[bool]) -> list[ProfileRow]:
        query = (
            select(_profiles).where(*where, _THERE).order_by(_profiles.c.at.desc(), _profiles.c.id).limit(MOST_LISTED)
        )
        return [_row(each) for each in await self.read(lambda reader: rows(reader, query))]


def removal_with_job() -> Update:
    """The statement that removes the profiles of the job `j`."""
    return update(_profiles).where(_profiles.c.job == bindparam("j")).values(state="removed")


def _row(row: Any) -> ProfileRow:
    return ProfileRow(*(getattr(row, name) for name in ProfileRow._fields))
