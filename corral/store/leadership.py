"""Elect the one control process that may decide, with a lease in a single row and no comparison of clocks.

A candidate waits by its own clock until the row has not changed for the lease's time to live. It need not wait when the
holder released the lease or is provably gone on this host. Every control transaction checks the epoch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from sqlalchemy import Connection, Engine, bindparam, delete, select, update

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
"""The setting by which a server with one engine recorded where its tasks run."""
ENGINE_HOMES: Final = "engine.homes"
"""The setting that records where the tasks of this database run, by engine."""
_SETTING: Final = select(tables.settings.c.value).where(tables.settings.c.key == bindparam("k"))
_PLACED_NODES: Final = (
    select(tables.tasks.c.node)
    .distinct()
    .select_from(tables.tasks.join(tables.jobs, tables.jobs.c.id == tables.tasks.c.job))
    .where(tables.jobs.c.live, tables.tasks.c.node != "")
    .where(tables.tasks.c.state.not_in(("completed", "attempt-completed")))
)
_FORGET_HOME: Final = delete(tables.settings).where(tables.settings.c.key == ENGINE_HOME)
_DECODE_HOMES: Final = msgspec.json.Decoder(dict[str, EngineHome])


def _recorded_homes(transaction: Transaction) -> dict[str, EngineHome]:
    """The recorded homes by engine; a server with one engine recorded the home alone."""
    if text := transaction.read(_SETTING, {"k": ENGINE_HOMES}).scalar():
        return _DECODE_HOMES.decode(text)
    if text := transaction.read(_SETTING, {"k": ENGINE_HOME}).scalar():
        home = msgspec.json.decode(text, type=EngineHome)
        return {"local" if home.folder else home.name: home}
    return {}


def _used_engines(transaction: Transaction) -> frozenset[str]:
    """The engines on whose nodes tasks of live jobs have a place."""
    return frozenset(node.partition("/")[0] for node in transaction.read(_PLACED_NODES).scalars())


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

    async def settle_engines(
        self,
        homes: Mapping[str, EngineHome],
        holder: Holder,
        *,
        is_same: Callable[[str, EngineHome, EngineHome], bool],
        take_over: bool,
    ) -> tuple[str, EngineHome] | None:
        """Record where this server's tasks run, by engine.

        Returns an engine of the database, with its home, that is not this server's while tasks may still run there: an
        engine that this server does not have, or has in another home, as `is_same` (engine, before, now) says.

        Tasks may still run there while another process than `holder` leads, or while tasks have nodes of that engine;
        `take_over` declares those lost. Call again while holding the lease: only then does the answer not depend on a
        clock.
        """

        def run(transaction: Transaction) -> tuple[str, EngineHome] | None:
            recorded = _recorded_homes(transaction)
            before = recorded or {name: home_of_engine(name) for name in _used_engines(transaction) - homes.keys()}
            moved = {name: old for name, old in before.items() if not is_here(name, old)}
            fresh = homes.keys() - recorded.keys() if recorded else frozenset()
            led = bool(moved or fresh) and self._is_led_by_another(transaction, holder)
            used = _used_engines(transaction) if moved and not take_over else frozenset()
            for name, old in moved.items():
                if led or name in used:
                    return name, old
            after = {name: home for name, home in homes.items() if not (led and name in fresh)}
            if after != recorded:
                put(transaction, tables.settings, [{"key": ENGINE_HOMES, "value": encode(after)}])
                transaction.write(_FORGET_HOME)
            return None

        def is_here(name: str, old: EngineHome) -> bool:
            return name in homes and is_same(name, old, homes[name])

        return await self.write(run)

    def _is_led_by_another(self, transaction: Transaction, holder: Holder) -> bool:
        row = transaction.read(_ROW).one()
        leader = msgspec.json.decode(row.holder, type=Holder) if row.holder else holder
        return leader != holder and bool(row.expires_at > self.clock.now())

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
