"""The two calls, `read` and `write`, through which every part of the store uses the database."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from corral.kernel.clock import Clock
from corral.kernel.errors import Unavailable
from corral.store.call_deadlines import TOOL_SECONDS, Call, Limits, Overdue, Watch, overdue
from corral.store.connections import READERS
from corral.store.database_errors import refusal
from corral.store.wakeup import Wakeup
from corral.store.writer import Transaction, Writer

Answer = TypeVar("Answer")
_TROUBLE_SECONDS: Final = 60.0


class Database:
    """The open database: `read` and `write`."""

    def __init__(
        self, writer: Engine, reader: Engine, wakeup: Wakeup, clock: Clock, limits: Limits | None = None
    ) -> None:
        """`limits` bounds the duration of calls."""
        self.limits = limits or Limits(TOOL_SECONDS)
        self.wakeup = wakeup
        self.clock = clock
        self._reader = reader
        self._writer_engine = writer
        self._pool = ThreadPoolExecutor(READERS, "store-reader")
        self._writer = Writer(writer, wakeup.ring_within, wakeup.ring_after, self.limits)
        self.admission_changes = 0

    @property
    def dialect(self) -> str:
        """The database's dialect: `sqlite` or `postgresql`."""
        return self._reader.dialect.name

    async def read(self, run: Callable[[Connection], Answer], *, limited: bool = True) -> Answer:
        """Run a query in a thread, on one consistent snapshot; with `limited`, within the time of a call.

        Raises the errors of `corral.store.database_errors`, Unavailable when the time is over.
        """
        call = self.limits.call()
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._pool, self._read, run, call)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise Unavailable("store-closed", "The store is closed.") from None
            raise
        if not limited:
            return await answer
        given_up: list[Unavailable] = []

        def give_up(why: Unavailable) -> None:
            given_up.append(why)
            answer.cancel()

        watch = Watch(call, self.limits, give_up)
        try:
            return await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if given_up and not (task is not None and task.cancelling()):
                raise given_up[0] from None
            raise
        finally:
            watch.end()

    async def write(self, run: Callable[[Transaction], Answer]) -> Answer:
        """Run a change; returns when it is durable (see `corral.store.writer`)."""
        return await self._writer.write(run)

    async def change(self, statement: Executable, parameters: Any = None) -> int:
        """Run one changing statement durably; returns the number of changed rows."""
        return await self.write(lambda transaction: transaction.write(statement, parameters).rowcount)

    def trouble(self) -> str:
        """The reason why the last write failed, if it was the database's and is less than a minute old; else ""."""
        trouble = self._writer.trouble
        return trouble[1] if trouble is not None and time.monotonic() - trouble[0] < _TROUBLE_SECONDS else ""

    def admission_changed(self) -> None:
        """Note that this process changed facts for admission: queues, grants, nodes or the container runtime."""
        self.admission_changes += 1

    def _read(self, run: Callable[[Connection], Answer], call: Call) -> Answer:
        for last in (False, True):
            try:
                with self._reader.connect() as connection, call.on(connection), connection.begin():
                    return run(connection)
            except Overdue:
                raise overdue() from None
            except DBAPIError as error:
                if call.is_cut:
                    raise overdue() from error
                if error.connection_invalidated and not last:
                    continue
                raise refusal(error) from error
            except (UnicodeEncodeError, OverflowError, PoolTimeout) as error:
                raise refusal(error) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Finish pending writes, then close all connections."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.close)
        await loop.run_in_executor(None, self._pool.shutdown)
        self._reader.dispose()
        self._writer_engine.dispose()
        await self.wakeup.close()


def rows(connection: Connection, statement: Any, parameters: Any = None) -> list[Any]:
    """All rows of a query."""
    return list(connection.execute(statement, parameters).all())
