"""Account ids: the account's name, or the name with a number when an earlier account had it.

An id is assigned once and never reused. So a folder on a storage, past usage and the namespace of a Framework never
pass to a later account that has the name of a deleted one.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import bindparam, func, insert, select

from corral.store import tables
from corral.store.writer import Transaction

_ids, _users, _jobs, _orphans = tables.account_ids, tables.users, tables.jobs, tables.orphaned_jobs
_TAKEN: Final = select(_ids.c.id).where(_ids.c.id == bindparam("i"))
OF_JOB: Final[Any] = func.coalesce(
    select(_orphans.c.account).where(_orphans.c.job == _jobs.c.id).scalar_subquery(),
    select(_users.c.id).where(_users.c.name == _jobs.c.user).scalar_subquery(),
    _jobs.c.user,
).label("account")
"""The id of the account that owns a job, for a row of `jobs`, also when that account was deleted."""


def give_id(transaction: Transaction, name: str, at: float) -> str:
    """Assign a new id to an account of this name: NAME, or NAME-2, NAME-3, … when an account has or had it."""
    given, number = name, 1
    while transaction.read(_TAKEN, {"i": given}).first() is not None:
        number += 1
        given = f"{name}-{number}"
    transaction.write(insert(_ids), {"id": given, "name": name, "at": at})
    return given
