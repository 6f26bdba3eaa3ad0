"""Deadlines of calls to the database: whoever waits is answered in time, and what takes too long is cut off.

A front waits five seconds. A control that leads waits as long as its lease lasts, which a thread of its own renews: a
long statement on a database that answers goes on, and a database that falls silent is waited for no longer than that.
The event loop that waits does the cutting: PostgreSQL's connection is shut down below the driver, which then finds it
broken; a statement of SQLite's is interrupted. Only a transaction that is being committed then has an unknown outcome.
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
from corral.store.faults import UNKNOWN

FRONT_SECONDS: Final = 5.0
CONTROL_SECONDS: Final = 3.0
"""For a control without a lease; one that leads has until its lease is over."""
TOOL_SECONDS: Final = 60.0
HELD_SECONDS: Final = 60.0
"""For so long a transaction of a leader's own, which keeps SQLite's lock, keeps its lease too."""
EXTEND_SECONDS: Final = 1.0
"""A transaction that kept the lock for longer renews the lease itself."""
_MARGIN: Final = 0.5
"""So long before the end a call is cut, to hear what became of it."""
_LEAST: Final = 0.05
_LINE: Final = "corral.line"
OVERDUE: Final = "The database has not answered in time, nothing was done; try again."


class Overdue(Exception):
    """The call was cut before anything of it was committed."""


class Limits:
    """How long the calls of this process may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lease_left: Callable[[], float] = lambda: 0.0
        """For how many seconds this control still leads; always 0 where nobody leads."""
        self.extended: Callable[[float], None] = lambda ago: None
        """Hears that a transaction has renewed the lease as it was so many seconds ago."""
        self._held_since: float | None = None

    def call(self) -> Call:
        """A call that begins now."""
        return Call(led=self.lease_left() > 0)

    @contextlib.contextmanager
    def holding(self, dialect: str) -> Iterator[None]:
        """Inside, this process has the lock for writes: on SQLite nobody else can take the lead then.

        That is so from a moment on when this process led.
        """
        if dialect == "sqlite" and self.lease_left() > 0:
            self._held_since = time.monotonic()
        try:
            yield
        finally:
            self._held_since = None

    @property
    def held_seconds(self) -> float:
        """For how long a leader has had SQLite's lock; 0 where it has not, and once that takes too long."""
        since = self._held_since
        held = 0.0 if since is None else max(1e-9, time.monotonic() - since)
        return held if held < HELD_SECONDS else 0.0

    def more(self, call: Call) -> float:
        """Seconds until the call has to be cut."""
        if call.led:
            return self.lease_left() - _MARGIN
        return call.begun + self.seconds - _MARGIN - time.monotonic()


class Call:
    """One call to the database and the connection that it has at the moment."""

    __slots__ = ("_connection", "_lock", "begun", "committing", "is_cut", "led")

    def __init__(self, *, led: bool = False) -> None:
        self.begun, self.led = time.monotonic(), led
        self.is_cut = self.committing = False
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def hold(self, connection: Connection) -> None:
        """The call goes on on this connection.

        Raises Overdue when it was cut already.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self._connection = connection

    def release(self) -> None:
        """The connection may be used by others."""
        with self._lock:
            self._connection = None

    @contextlib.contextmanager
    def on(self, connection: Connection) -> Iterator[None]:
        """Hold the connection meanwhile."""
        self.hold(connection)
        try:
            yield
        finally:
            self.release()

    def commit(self) -> None:
        """From here on nobody knows whether the call comes to be stored.

        Raises Overdue when it was cut already.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing = True

    def again(self) -> None:
        """What was to be committed was rolled back; the call begins once more.

        Raises Overdue when it was cut meanwhile.
        """
        with self._lock:
            if self.is_cut:
                raise Overdue
            self.committing = False

    def cut(self) -> bool:
        """End the call; whether that leaves unknown what became of it."""
        with self._lock:
            self.is_cut = True
            if self._connection is not None:
                _cut(self._connection, committing=self.committing)
            return self.committing


class Watch:
    """Cuts a call when its time is over, and answers who waits for it a moment later; `end` it when it has ended."""

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
        """The call has come to something."""
        self._timer.cancel()


def overdue() -> Unavailable:
    """The answer to a call that was cut before anything of it could be stored."""
    return Unavailable("store-unreachable", OVERDUE, retry_after=1)


def unknown() -> Unavailable:
    """The answer to a call that was cut while it was being committed."""
    return Unavailable("store-outcome-unknown", UNKNOWN, retry_after=1)


def make_cuttable(engine: Engine) -> None:
    """Keep a second handle of each connection's socket: the driver may close its own while another thread cuts."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info[_LINE] = socket.fromfd(connection.pgconn.socket, socket.AF_INET, socket.SOCK_STREAM)

    @event.listens_for(engine, "close")
    def closed(connection: Any, record: Any) -> None:
        if (line := record.info.pop(_LINE, None)) is not None:
            line.close()


def _cut(connection: Connection, *, committing: bool) -> None:
    with contextlib.suppress(Exception):
        if (line := connection.info.get(_LINE)) is not None:
            line.shutdown(socket.SHUT_RDWR)
            return
        driver = connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection) and not committing:
            driver.interrupt()
