"""Count an account's submissions in an hour, in the transaction that stores each, for all front processes."""

from __future__ import annotations

import math
from typing import Final

from sqlalchemy import bindparam, insert, select, update

from corral.kernel.errors import TooManyRequests
from corral.model.store_writes import SubmitLimit
from corral.store import tables
from corral.store.database import Database
from corral.store.writer import Transaction

HOUR: Final = 3600.0
"""Seconds. The hour begins with the first submission that is counted in it."""
_counted = tables.submissions
_OF: Final = (_counted.c.user == bindparam("u"), _counted.c.api == bindparam("a"))
_COUNTED: Final = select(_counted.c.since, _counted.c.number).where(*_OF)
_ONE_MORE: Final = (
    update(_counted)
    .where(*_OF, _counted.c.number < bindparam("most"), _counted.c.since > bindparam("after"))
    .values(number=_counted.c.number + 1)
)
_BEGIN: Final = update(_counted).where(*_OF).values(since=bindparam("s"), number=1)


class Submissions(Database):
    """The counted submissions."""

    async def submissions(self, user: str, api: str, at: float) -> int:
        """Submissions of an account through one API in the hour that includes `at`."""
        row = await self.read(lambda connection: connection.execute(_COUNTED, {"u": user, "a": api}).first())
        return int(row.number) if row is not None and at - row.since < HOUR else 0


def count_submission(transaction: Transaction, user: str, limit: SubmitLimit, at: float) -> None:
    """Count a submission at time `at` (seconds since 1970); call it before the transaction writes anything else.

    Raises TooManyRequests `too-many-calls`.
    """
    of = {"u": user, "a": limit.api}
    if transaction.read(_ONE_MORE, {**of, "most": limit.most, "after": at - HOUR}).rowcount:
        transaction.wrote = True  # only now: while nothing was changed, the operation may still refuse
        return
    row = transaction.read(_COUNTED, of).first()
    if row is None:
        transaction.write(insert(_counted), {"user": user, "api": limit.api, "since": at, "number": 1})
    elif at - row.since >= HOUR:
        transaction.write(_BEGIN, {**of, "s": at})
    else:
        wait = max(1, math.ceil(HOUR - (at - row.since)))
        message = f"Too many submissions: {limit.most} in one hour are let through; wait {wait} seconds and try again."
        raise TooManyRequests("too-many-calls", message, retryAfter=wait)
