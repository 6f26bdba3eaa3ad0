"""Why: every part of the store reads and writes through these two calls, so that none of them can forget the rules."""

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
from corral.store.connect import READERS
from corral.store.faults import refusal
from corral.store.wakeup import Wakeup
from corral.store.writer import Transaction, Writer

Answer = TypeVar("Answer")
_TROUBLE_SECONDS: Final = 60.0


class Database:
    """The open database: `read` and `write`."""

    def __init__(self, writer: Engine, reader: Engine, wakeup: Wakeup, clock: Clock) -> None:
        self.wakeup = wakeup
        self.clock = clock
        self._reader = reader
        self._writer_engine = writer
        self._pool = ThreadPoolExecutor(READERS, "store-reader")
        self._writer = Writer(writer, wakeup.ring_within, wakeup.ring_after)
        self.admission_changes = 0

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._reader.dialect.name

    async def read(self, run: Callable[[Connection], Answer]) -> Answer:
        """Run a question in a thread, on one consistent view of the database.

        Raises the refusals of `corral.store.faults`.
        """
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, self._read, run)
        except RuntimeError as error:
            if "shutdown" in str(error):
                raise Unavailable("store-closed", "The store is closed.") from None
            raise

    async def write(self, run: Callable[[Transaction], Answer]) -> Answer:
        """Run a change; returns once it is durable (see `corral.store.writer`)."""
        return await self._writer.write(run)

    async def change(self, statement: Executable, parameters: Any = None) -> int:
        """Run one changing statement durably; returns how many rows it touched."""
        return await self.write(lambda transaction: transaction.write(statement, parameters).rowcount)

    def trouble(self) -> str:
        """Why the last write was refused, if that was the database's doing and is less than a minute ago; else ""."""
        trouble = self._writer.trouble
        return trouble[1] if trouble is not None and time.monotonic() - trouble[0] < _TROUBLE_SECONDS else ""

    def admission_changed(self) -> None:
        """This process has changed what submits are asked about: queues, grants, nodes, the container runtime."""
        self.admission_changes += 1

    def _read(self, run: Callable[[Connection], Answer]) -> Answer:
        for last in (False, True):
            try:
                with self._reader.connect() as connection, connection.begin():
                    return run(connection)
            except DBAPIError as error:
                if error.connection_invalidated and not last:
                    continue
                raise refusal(error) from error
            except (UnicodeEncodeError, OverflowError, PoolTimeout) as error:
                raise refusal(error) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Finish what is being written, then let the database go."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._writer.close)
        await loop.run_in_executor(None, self._pool.shutdown)
        self._reader.dispose()
        self._writer_engine.dispose()
        await self.wakeup.close()


def rows(connection: Connection, statement: Any, parameters: Any = None) -> list[Any]:
    """All rows of a question."""
    return list(connection.execute(statement, parameters).all())
