"""Add what attempts were measured to use to what is stored of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import select

from corral.kernel.ids import AttemptId
from corral.model.usage import Measured
from corral.store import tables
from corral.store.control_writes import check_epoch
from corral.store.database import Database
from corral.store.writer import Transaction

_used: Final = tables.attempt_use
_ADDED: Final = (
    "measured_seconds", "cpu_seconds", "memory_gib_seconds", "joules", "device_seconds", "used_device_seconds",
    "idle_device_seconds",
)  # fmt: skip
"""The columns, in the order of `Measured`."""


class MeasuredUse(Database):
    """What attempts used."""

    async def add_measured(self, epoch: int, found: Mapping[AttemptId, Measured]) -> None:
        """Add these amounts in one transaction; attempts that are not stored, as those of removed jobs, are passed over.

        Raises LeadershipLost, and Unavailable like the store.
        """
        known = select(tables.attempts.c.id, tables.attempts.c.job).where(tables.attempts.c.id.in_(list(found)))

        def run(transaction: Transaction) -> None:
            check_epoch(transaction, epoch)
            rows = [
                {"attempt": row.id, "job": row.job, **dict(zip(_ADDED, found[AttemptId(row.id)], strict=True))}
                for row in transaction.read(known)
            ]
            if rows:
                transaction.write(_adding(transaction.connection.dialect.name), rows)

        await self.write(run)


@cache
def _adding(dialect: str) -> Any:
    """The statement that inserts rows, or adds their amounts to those that are there."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    statement: Any = insert(_used)
    sums = {name: _used.c[name] + statement.excluded[name] for name in _ADDED}
    return statement.on_conflict_do_update(index_elements=["attempt"], set_=sums)
