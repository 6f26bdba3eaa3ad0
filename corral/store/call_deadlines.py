"""Deadlines of database calls: cut off a call that takes too long and answer its caller in time.

A front waits five seconds. A leading control waits until its lease expires; a separate thread renews the lease. So a
long statement on a responsive database may finish, and a silent database delays control no longer than the lease. A
front waits longer for SQLite's commit, which ends when the disk has answered. The waiting event loop does the cutting.
It shuts down PostgreSQL's socket below the driver, which then finds the connection broken; it stops the statements of
SQLite. Only a transaction that was being committed has an unknown outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from sqlalchemy import Connection, Engine, event

from corral.kernel.errors import Unavailable
from corral.store.database_errors import UNKNOWN

FRONT_SECONDS: Final = 5.0
CONTROL_SECONDS: Final = 3.0
"""Seconds for a control without a lease. One that leads has until its lease expires."""
TOOL_SECONDS: Final = 60.0
HELD_SECONDS: Final = 60.0
"""Seconds for which a leader's own transaction, which holds SQLite's lock, also keeps its lease."""
EXTEND_SECONDS: Final = 1.0
"""Seconds of holding the lock after which a transaction renews the lease itself."""
DISK_SECONDS: Final = 20.0
"""Seconds that a front waits for a call whose commit SQLite writes to the disk: then its outcome is known."""
LOCK_SECONDS: Final = 4.0
"""Seconds that a write waits for SQLite's lock while callers wait for it."""
_LOCK_MARGIN: Final = 1.0
_MARGIN: Final = 0.5
"""Seconds before the deadline at which a call is cut, so that its result can still arrive."""
_LEAST: Final = 0.05
_LINE: Final = "corral.line"
_STOP: Final = "corral.stop"
_LOOK_STEPS: Final = 1_000_000
"""Steps of SQLite's virtual machine, some 20 ms, after which a statement looks whether its call was cut."""
OVERDUE: Final = "The database has not answered in time, nothing was done; try again."


class Overdue(Exception):
    """The call was cut before any part of it was committed."""


class Limits:
    """Time limits of this process's calls."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lease_left: Callable[[], float] = lambda: 0.0
        """Seconds that this control still leads; always 0 in a process that never leads."""
        self.extended: Callable[[float], None] = lambda ago: None
        """Called after a transaction renewed the lease, with the seconds that have passed since then."""
        self._held_since: float | None = None

    def lock_seconds(self) -> float:
        """Seconds that a write may wait for SQLite's lock, so that its caller still gets the reason."""
        return max(LOCK_SECONDS, self.seconds - _LOCK_MARGIN)

    def call(self) -> Call:
        """Start a call now."""
        return Call(led=self.lease_left() > 0)

    @contextlib.contextmanager
    def holding(self, dialect: str) -> Iterator[None]:
        """Mark that this process holds the write lock.

        On SQLite no other process can become leader meanwhile, provided that this one led when it took the lock.
        """
        if dialect == "sqlite" and self.lease_left() > 0:
            self._held_since = time.monotonic()
        try:
            yield
        finally:
            self._held_since = None

    @property
    def held_seconds(self) -> float:
        """Seconds that a leader has held SQLite's lock; 0 when it does not, and from `HELD_SECONDS` on."""
        since = self._held_since
        held = 0.0 if since is None else max(1e-9, time.monotonic() - since)
        return held if held < HELD_SECONDS else 0.0

    def more(self, call: Call) -> float:
        """Seconds until the call must be cut."""
        if call.led:
            return self.lease_left() - _MARGIN
        seconds = max(self.seconds, DISK_SECONDS) if call.waits_for_disk else self.seconds
        return call.begun + seconds - _MARGIN - time.monotonic()


class Call:
    """One call to the database, with the connection that it uses now."""

    __slots__ = ("_connection", "_lock", "_stop", "begun", "committing", "is_cut", "led")

    def __init__(self, *, led: bool = False) -> None:
        self.begun, self.led = time.monotonic(), led
        self.is_cut = self.committing = False
        self._connection: Connection | None = None
        self._stop: threading.Event | None = None
        self._lock = threading.Lock()

    @property
    def waits_for_disk(self) -> bool:
        """Whether SQLite commits it now; only connections to SQLite can be stopped by an event."""
        return self.committing and self._stop is not None

    def hold(self, connection: Connection) -> None:
        """Attach the call to a connection.

        Raises Overdue when the call was cut already.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self._connection = connection
            self._stop = connection.info.get(_STOP)

    def release(self) -> None:
        """Detach the call from its connection, which others may use now."""
        with self._lock:
            if self._stop is not None:
                self._stop.clear()
            self._connection = self._stop = None

    @contextlib.contextmanager
    def on(self, connection: Connection) -> Iterator[None]:
        """Hold the connection inside the block."""
        self.hold(connection)
        try:
            yield
        finally:
            self.release()

    def commit(self) -> None:
        """Mark that the commit begins: from here on the outcome of a cut is unknown.

        Raises Overdue when the call was cut already.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing = True

    def again(self) -> None:
        """Mark that the transaction was rolled back and the call is run again.

        Raises Overdue when the call was cut meanwhile.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing = False

    def cut(self) -> bool:
        """Cut the call; returns whether its outcome is unknown."""
        with self._lock:
            self.is_cut = True
            if self._stop is not None and not self.committing:
                self._stop.set()
            if self._connection is not None:
                _cut(self._connection, committing=self.committing)
            return self.committing


class Watch:
    """Cut a call at its deadline and answer its caller a moment later. Call `end` when it has ended."""

    def __init__(self, call: Call, limits: Limits, answer: Callable[[Unavailable], None]) -> None:
        self._call, self._limits, self._answer = call, limits, answer
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(max(_LEAST, limits.more(call)), self._look)

    def _look(self) -> None:
        more = self._limits.more(self._call)
        if more > 0:
            self._timer = self._loop.call_later(max(_LEAST, more), self._look)
        elif self._call.cut():
            self._timer = self._loop.call_later(_MARGIN, self._answer, unknown())
        else:
            self._answer(overdue())

    def end(self) -> None:
        """The call has ended; stop the timer."""
        self._timer.cancel()


def overdue() -> Unavailable:
    """The error for a call that was cut before any part of it could be stored."""
    return Unavailable("store-unreachable", OVERDUE, retry_after=1)


def unknown() -> Unavailable:
    """The error for a call that was cut during its commit."""
    return Unavailable("store-outcome-unknown", UNKNOWN, retry_after=1)


def make_cuttable(engine: Engine) -> None:
    """Keep a duplicate of each connection's socket, because the driver may close its own while another thread cuts."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info[_LINE] = socket.fromfd(connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)

    @event.listens_for(engine, "close")
    def closed(connection: Any, record: Any) -> None:
        if (line := record.info.pop(_LINE, None)) is not None:
            line.close()


def make_stoppable(connection: sqlite3.Connection, info: dict[Any, Any]) -> None:
    """Let SQLite's long statements look now and then whether their call was cut; `info` is the connection's.

    `interrupt` alone stops only a statement that runs at that moment: a call that is cut between two statements, or
    before its first, would run on for as long as it likes (https://sqlite.org/c3ref/interrupt.html).
    """
    stop = info[_STOP] = threading.Event()
    connection.set_progress_handler(stop.is_set, _LOOK_STEPS)


def _cut(connection: Connection, *, committing: bool) -> None:
    with contextlib.suppress(Exception):
        if (line := connection.info.get(_LINE)) is not None:
            line.shutdown(socket.SHUT_RDWR)
            return
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection) and not committing:
            driver.interrupt()
