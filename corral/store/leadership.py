"""Elect the one control process that may decide, with a lease in a single row and no comparison of clocks.

A candidate waits by its own clock until the row has not changed for the lease's time to live. It need not wait when the
holder released the lease or is provably gone on this host. Every control transaction checks the epoch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

import msgspec
from sqlalchemy import Connection, Engine, bindparam, func, select, update

from corral.model.store_writes import EngineHome, Holder, Lease, home_of_engine
from corral.store import tables
from corral.store.call_deadlines import Call, overdue
from corral.store.database import Database
from corral.store.database_errors import LeadershipLost, refusal
from corral.store.rows import encode, put
from corral.store.writer import Transaction

TTL: Final = 3.0
"""Seconds from the last renewal until a lease expires."""
BLOCKED_SECONDS: Final = 1.0
"""Seconds; a candidate that waited longer for the write lock restarts its wait for the lease to expire."""
_ROW: Final = select(tables.leadership).with_for_update()
"""Locked on PostgreSQL: a renewal on another connection happens before this read or after the epoch is taken."""
_TAKE: Final = update(tables.leadership).values(
    epoch=bindparam("e"), renewals=0, holder=bindparam("h"), address=bindparam("a"), expires_at=bindparam("x")
)
_RENEW: Final = update(tables.leadership).values(renewals=bindparam("r"), expires_at=bindparam("x"))
_RENEW_BESIDE: Final = (
    update(tables.leadership)
    .where(tables.leadership.c.epoch == bindparam("e"), tables.leadership.c.holder.is_not(None))
    .values(renewals=tables.leadership.c.renewals + 1, expires_at=bindparam("x"))
)
_RELEASE: Final = update(tables.leadership).values(holder=None, address="", expires_at=0.0)


ENGINE_HOME: Final = "engine.home"
"""The setting that records where the tasks of this database run."""
_HOME: Final = select(tables.settings.c.value).where(tables.settings.c.key == ENGINE_HOME)
_PLACED: Final = (
    select(func.count())
    .select_from(tables.tasks.join(tables.jobs, tables.jobs.c.id == tables.tasks.c.job))
    .where(tables.jobs.c.live, tables.tasks.c.node != "")
    .where(tables.tasks.c.state.not_in(("completed", "attempt-completed")))
)


_NODE_OF_ANOTHER: Final = (
    select(tables.tasks.c.node)
    .select_from(tables.tasks.join(tables.jobs, tables.jobs.c.id == tables.tasks.c.job))
    .where(tables.jobs.c.live, tables.tasks.c.node != "", tables.tasks.c.node.not_like(bindparam("p")))
    .where(tables.tasks.c.state.not_in(("completed", "attempt-completed")))
    .limit(1)
)


class Leadership(Database):
    """The lease of the leading control process, in one row."""

    _seen: tuple[int, int] | None = None
    _seen_at = 0.0
    _asked: float | None = None
    """Time at which this candidate began to wait for the write lock."""

    async def lead(
        self, holder: Holder, *, ttl: float = TTL, takeover: Callable[[Holder], bool] = lambda _: False
    ) -> Lease | None:
        """Try to become leader; None while another process leads: call again soon.

        `takeover` says whether the recorded holder is provably gone; it is called in the writer's thread.
        """

        self._asked = self.clock.now() if self._asked is None else self._asked

        def run(transaction: Transaction) -> Lease | None:
            now = self.clock.now()
            if self._asked is not None and now - self._asked > BLOCKED_SECONDS:
                self._seen = None  # whoever held the lock blocked the leader's renewal too
            self._asked = None
            row = transaction.read(_ROW).one()
            if row.holder is not None:
                before = msgspec.json.decode(row.holder, type=Holder)
                if before != holder and not takeover(before) and not self._stale((row.epoch, row.renewals), now, ttl):
                    return None
            lease = Lease(row.epoch + 1, now + ttl, row.cursor, holder)
            text = msgspec.json.encode(holder).decode()
            new = {"e": lease.epoch, "h": text, "a": holder.address, "x": lease.expires_at}
            transaction.write(_TAKE, new)
            return lease

        return await self.write(run)

    def _stale(self, state: tuple[int, int], now: float, ttl: float) -> bool:
        if self._seen != state:
            self._seen, self._seen_at = state, now
        return now - self._seen_at >= ttl

    async def renew(self, lease: Lease, *, ttl: float = TTL) -> Lease:
        """Renew the lease and return it with its new expiry.

        Raises LeadershipLost when another epoch has begun, Unavailable when the store does not answer.
        """

        def run(transaction: Transaction) -> Lease:
            now = self.clock.now()
            row = transaction.read(_ROW).one()
            if row.epoch != lease.epoch or row.holder is None:
                raise LeadershipLost
            new = {"r": row.renewals + 1, "x": now + ttl}
            transaction.write(_RENEW, new)
            return msgspec.structs.replace(lease, expires_at=now + ttl, cursor=row.cursor, renewals=row.renewals + 1)

        return await self.write(run)

    def renewal(self) -> Renewal:
        """A renewer of leases for a thread of the caller, which must close it in that thread."""
        return Renewal(self._writer_engine, self.clock.now)

    async def release(self, lease: Lease) -> None:
        """Give up the lease, so that another process can lead at once. Does nothing when another one leads already."""

        def run(transaction: Transaction) -> None:
            if transaction.read(_ROW).one().epoch == lease.epoch:
                transaction.write(_RELEASE)
                transaction.ring("control")

        await self.write(run)

    async def settle_engine(
        self,
        home: EngineHome,
        holder: Holder,
        *,
        is_same: Callable[[EngineHome, EngineHome], bool],
        take_over: bool,
        engine: str = "local",
    ) -> EngineHome | None:
        """Record where this server's tasks run; returns the recorded other home while tasks may still run there.

        Without a record, the nodes of placed tasks show whether they belong to another engine than `engine`. Tasks may
        still run there while another process than `holder` leads, or while tasks have nodes; `take_over` declares those
        lost. Call again while holding the lease: only then does the answer not depend on a clock.
        """

        def run(transaction: Transaction) -> EngineHome | None:
            text = transaction.read(_HOME).scalar()
            before = msgspec.json.decode(text, type=EngineHome) if text else None
            if before is None and (node := transaction.read(_NODE_OF_ANOTHER, {"p": f"{engine}/%"}).scalar()):
                before = home_of_engine(node.partition("/")[0])
            if before is not None and not is_same(before, home):
                row = transaction.read(_ROW).one()
                leader = msgspec.json.decode(row.holder, type=Holder) if row.holder else holder
                led = leader != holder and row.expires_at > self.clock.now()
                if led or (not take_over and transaction.read(_PLACED).scalar_one()):
                    return before
            if before != home or not text:
                put(transaction, tables.settings, [{"key": ENGINE_HOME, "value": encode(home)}])
            return None

        return await self.write(run)

    async def leader(self) -> Holder | None:
        """The recorded leader, None when there is none."""
        text = await self.read(lambda connection: connection.execute(select(tables.leadership.c.holder)).scalar())
        return msgspec.json.decode(text, type=Holder) if text else None


class Renewal:
    """Renews leases on its own connection, so that it waits for no other write; for use by one thread."""

    def __init__(self, engine: Engine, now: Callable[[], float]) -> None:
        self._engine, self._now = engine, now
        self._connection: Connection | None = None
        self._call: Call | None = None

    def renew(self, lease: Lease, *, ttl: float = TTL) -> None:
        """Renew the lease for `ttl` seconds.

        Raises LeadershipLost when another epoch has begun or nobody leads, Unavailable when the store does not answer.
        """
        self._call = call = Call()
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            with call.on(self._connection), self._connection.begin():
                new = {"e": lease.epoch, "x": self._now() + ttl}
                renewed = self._connection.execute(_RENEW_BESIDE, new).rowcount
        except Exception as error:
            self.close()
            raise overdue() if call.is_cut else refusal(error) from error
        finally:
            self._call = None
        if not renewed:
            raise LeadershipLost

    def cut(self) -> None:
        """Cut off a renewal that has taken longer than a lease lasts; may be called from any thread."""
        call = self._call
        if call is not None and time.monotonic() - call.begun > TTL:
            call.cut()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.invalidate()
                connection.close()
