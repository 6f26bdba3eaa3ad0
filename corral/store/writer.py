"""The thread that writes: it groups concurrent writes into one transaction, for thousands of submits a second.

A durable commit costs a disk flush, so writes that wait at the same time share one. The thread owns the only writing
connection. It takes every waiting operation, runs them in one transaction, commits, and only then answers all of them.
An operation that refuses must do so before it writes. If one fails later, the whole group is rolled back and its
operations are run again one by one, so that a failure affects only its own operation.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, Executable, bindparam, select, update
from sqlalchemy.engine import CursorResult, RootTransaction
from sqlalchemy.exc import DBAPIError

from corral.kernel.errors import CorralError, Unavailable
from corral.store import tables
from corral.store.call_deadlines import EXTEND_SECONDS, Call, Limits, Overdue, Watch, overdue
from corral.store.connections import lock_order
from corral.store.database_errors import refusal

Answer = TypeVar("Answer")
_MAX_GROUP: Final = 512


class Transaction:
    """An open write transaction, shared by the operations of a group."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.wrote = False
        self.rings: set[str] = set()
        self._counters: dict[str, int] = {}
        self._changed: set[str] = set()

    def read(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a query."""
        result: CursorResult[Any] = self.connection.execute(statement, parameters)
        return result

    def write(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        """Run a change; after it the operation must not refuse any more."""
        self.wrote = True
        return self.read(statement, parameters)

    def take(self, counter: str, count: int = 1) -> int:
        """Reserve `count` consecutive numbers and return the first; they follow the order of commits, with gaps."""
        value = self.current(counter)
        self._counters[counter] = value + count
        self._changed.add(counter)
        return value + 1

    def current(self, counter: str) -> int:
        """The last number taken."""
        if counter not in self._counters:
            self._counters[counter] = self.read(_COUNTER, {"counter": counter}).scalar_one()
        return self._counters[counter]

    def ring(self, role: str) -> None:
        """Wake `role` after the commit."""
        self.rings.add(role)

    def finish(self) -> None:
        """Store the counters."""
        for name in sorted(self._changed):
            self.connection.execute(_COUNT, {"counter": name, "count": self._counters[name]})


_COUNTER: Final = select(tables.counters.c.value).where(tables.counters.c.name == bindparam("counter"))
_COUNT: Final = (
    update(tables.counters).where(tables.counters.c.name == bindparam("counter")).values(value=bindparam("count"))
)
_EXTEND: Final = update(tables.leadership).values(
    renewals=tables.leadership.c.renewals + 1, expires_at=tables.leadership.c.expires_at + bindparam("more")
)


class _Operation:
    __slots__ = ("answer", "call", "error", "future", "run")

    def __init__(self, run: Callable[[Transaction], Any], future: asyncio.Future[Any], call: Call) -> None:
        self.run = run
        self.future = future
        self.call = call
        self.answer: Any = None
        self.error: Exception | None = None


class Writer:
    """The thread that writes, with its queue."""

    def __init__(
        self,
        engine: Engine,
        ring: Callable[[Connection, frozenset[str]], None],
        rung: Callable[[frozenset[str]], None],
        limits: Limits,
    ) -> None:
        self._engine = engine
        self._limits = limits
        self._ring = ring
        self._rung = rung
        self._queue: SimpleQueue[_Operation | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self.trouble: tuple[float, str] | None = None
        """Time and reason of the last write that the database refused, since the last successful write."""
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)
        self._thread.start()

    async def write(self, run: Callable[[Transaction], Answer]) -> Answer:
        """Run `run` in a write transaction; returns when it is durable.

        Raises the errors of `run` and of `corral.store.database_errors`, and Unavailable when its time is over. Its
        code is then `store-outcome-unknown` when the transaction was being committed; otherwise nothing was stored.
        """
        if self._closed:
            raise Unavailable("store-closed", "The store is closed.")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        call = self._limits.call(sqlite_write=self._engine.dialect.name == "sqlite")

        def give_up(why: Unavailable) -> None:
            self.trouble = (time.monotonic(), why.message)
            if not future.done():
                future.set_exception(why)

        self._queue.put(_Operation(run, future, call))
        watch = Watch(call, self._limits, give_up)
        try:
            return await future
        finally:
            watch.end()

    def close(self) -> None:
        """Finish waiting operations, then end the thread and close its connection."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        last = False
        while not last:
            group, last = self._next_group()
            if group:
                self._run_group(group)
                _answer(group)
        self._drop_connection()

    def _next_group(self) -> tuple[list[_Operation], bool]:
        group: list[_Operation] = []
        operation = self._queue.get()
        while operation is not None:
            group.append(operation)
            if len(group) == _MAX_GROUP:
                return group, False
            try:
                operation = self._queue.get_nowait()
            except Empty:
                return group, False
        return group, True

    def _run_group(self, group: list[_Operation]) -> None:
        if len(group) > 1 and self._attempt(group, alone=False):
            return
        for operation in group:
            operation.error = None
            try:
                operation.call.again()
            except Overdue:
                operation.error = overdue()
            else:
                self._attempt([operation], alone=True)

    def _attempt(self, group: list[_Operation], *, alone: bool) -> bool:
        """Run the group in one transaction; False (only when not `alone`) when it must be run one by one."""
        committing = False
        try:
            connection, outer = self._begun(group)
            with self._limits.holding(connection.dialect.name), outer:
                transaction = Transaction(connection)
                for operation in group:
                    operation.call.work()
                for operation in group:
                    transaction.wrote = False
                    try:
                        operation.answer = operation.run(transaction)
                    except CorralError as error:
                        if transaction.wrote:
                            raise
                        operation.error = error
                transaction.finish()
                rings = frozenset(transaction.rings)
                self._ring(connection, rings)
                for operation in group:
                    operation.call.commit()
                committing = True
                extended = self._extended(connection)
                outer.commit()
                if extended is not None:
                    self._limits.extended(time.monotonic() - extended)
            self.trouble = None
            self._rung(rings)
        except Exception as error:
            found = overdue() if isinstance(error, Overdue) and alone else refusal(error, committing=committing)
            if found is not error:
                found.__cause__ = error
            if isinstance(found, Unavailable):
                self.trouble = (time.monotonic(), found.message)
                self._drop_connection()
            elif not alone:
                return False
            for operation in group:
                operation.error = found
        finally:
            for operation in group:
                operation.call.release()
        return True

    def _extended(self, connection: Connection) -> float | None:
        """Renew the lease within a transaction that held SQLite's lock for `EXTEND_SECONDS` or more.

        Returns the monotonic time of the renewal, None for a shorter transaction.
        """
        held = self._limits.held_seconds
        if held < EXTEND_SECONDS:
            return None
        connection.execute(_EXTEND, {"more": held})
        return time.monotonic()

    def _begun(self, group: list[_Operation]) -> tuple[Connection, RootTransaction]:
        """Begin a transaction that no other writer can interleave with.

        A connection that died while idle is reopened.
        """
        kept = self._connection is not None
        while True:
            connection = self._connected()
            for operation in group:
                operation.call.hold(connection)
            outer = connection.begin()
            try:
                if not lock_order(connection):
                    continue
            except DBAPIError as error:
                if not (kept and error.connection_invalidated):
                    raise
                kept = False
                self._drop_connection()
            else:
                return connection, outer

    def _connected(self) -> Connection:
        if self._connection is None or self._connection.invalidated:
            self._drop_connection()
            self._connection = self._engine.connect()
        return self._connection

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None


def _answer(group: list[_Operation]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[_Operation]] = {}
    for operation in group:
        loops.setdefault(operation.future.get_loop(), []).append(operation)
    for loop, operations in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop has ended, so nobody waits
            loop.call_soon_threadsafe(_resolve, operations)


def _resolve(operations: list[_Operation]) -> None:
    for operation in operations:
        if operation.future.done():
            continue
        if operation.error is not None:
            operation.future.set_exception(operation.error)
        else:
            operation.future.set_result(operation.answer)
