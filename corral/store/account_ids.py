"""The id of an account: its name, or its name with a number where an account before it had that name.

An id is given once and never again, so what goes by it (a user's folder on a storage, past use, the namespace of a
Framework) never passes to an account that is made later under the name of a deleted one.
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
"""The id of the account whose job a row of `jobs` is, also when that account was deleted."""


def give_id(transaction: Transaction, name: str, at: float) -> str:
    """An id for a new account of this name that no account has or had: NAME, else NAME-2, NAME-3, …"""
    given, number = name, 1
    while transaction.read(_TAKEN, {"i": given}).first() is not None:
        number += 1
        given = f"{name}-{number}"
    transaction.write(insert(_ids), {"id": given, "name": name, "at": at})
    return given
