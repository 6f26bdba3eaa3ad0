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
DISK_SECONDS: Final = 15.0
"""Seconds that a front waits while a commit of SQLite, its own or another process's, is written to the disk."""
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
        self.waits_for_disk = False
        """Whether a write waits for `DISK_SECONDS` in all, but for its own statements."""
        self._held_since: float | None = None

    def lock_seconds(self) -> float:
        """Seconds that a write may wait for SQLite's lock, so that its caller still gets the reason."""
        caller = DISK_SECONDS if self.waits_for_disk else self.seconds
        return max(LOCK_SECONDS, caller - _LOCK_MARGIN)

    def call(self, *, sqlite_write: bool = False) -> Call:
        """Start a call now."""
        return Call(led=self.lease_left() > 0, for_disk=sqlite_write and self.waits_for_disk)

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
        until = call.began_to_work + self.seconds
        if call.for_disk and not call.works:
            until = max(until, call.begun + DISK_SECONDS)
        return until - _MARGIN - time.monotonic()


class Call:
    """One call to the database, with the connection that it uses now."""

    __slots__ = (
        "_connection",
        "_lock",
        "_stop",
        "began_to_work",
        "begun",
        "committing",
        "for_disk",
        "is_cut",
        "led",
        "works",
    )

    def __init__(self, *, led: bool = False, for_disk: bool = False) -> None:
        self.begun = self.began_to_work = time.monotonic()
        self.led, self.for_disk = led, for_disk
        self.works = False
        """Whether its statements run: it has SQLite's lock and does not commit yet."""
        self.is_cut = self.committing = False
        self._connection: Connection | None = None
        self._stop: threading.Event | None = None
        self._lock = threading.Lock()

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

    def work(self) -> None:
        """Mark that the transaction has begun; what waits for the disk then has its usual time."""
        if self.for_disk:
            self.began_to_work, self.works = time.monotonic(), True

    def commit(self) -> None:
        """Mark that the commit begins: from here on the outcome of a cut is unknown.

        Raises Overdue when the call was cut already.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing, self.works = True, False

    def again(self) -> None:
        """Mark that the transaction was rolled back and the call is run again.

        Raises Overdue when the call was cut meanwhile.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing = self.works = False

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
        self._timer = self._loop.call_later(self._pause(), self._look)

    def _look(self) -> None:
        if self._limits.more(self._call) > 0:
            self._timer = self._loop.call_later(self._pause(), self._look)
        elif self._call.cut():
            self._timer = self._loop.call_later(_MARGIN, self._answer, unknown())
        else:
            self._answer(overdue())

    def _pause(self) -> float:
        """Seconds to the next look; the deadline comes nearer when a call that waited for the disk begins to work."""
        return max(_LEAST, min(self._limits.more(self._call), self._limits.seconds))

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
