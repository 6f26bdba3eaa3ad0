"""Map database errors to Corral's errors with a code; no other package sees an error of a database driver.

```
store-not-a-database   the file is something else            store-corrupt     the file is damaged
store-read-only        the folder or file cannot be written  store-newer       made by a newer Corral
store-on-network-filesystem                                  store-locked      another program holds it
storage-full           no space left: nothing was accepted   store-unreachable PostgreSQL does not answer
no-descriptors         this process can open no file
store-outcome-unknown  the connection broke at the commit, or it took too long            store-failed      anything else
```
"""

from __future__ import annotations

import errno
import os
import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from corral.kernel.errors import CorralError, InvalidInput, Unavailable


class StoreRefused(CorralError):
    """The store cannot be used as it is; the message says how to fix it."""


class LeadershipLost(Unavailable):
    """Another control process leads now; this one must stop writing."""

    def __init__(self) -> None:
        super().__init__("leadership-lost", "Another control process has taken over; this one stops writing.")


FULL = "The disk that holds Corral's data is full, nothing was accepted; free some space and try again."
LOCKED = (
    "The database was locked for too long, by a slow disk or another program (such as a backup or a database browser);"
    " try again."
)
CORRUPT = "The database is damaged; restore a backup with `corral restore`."
NOT_A_DATABASE = "The file is not a Corral database; move it away or name another data folder."
READ_ONLY = "The database cannot be written; give Corral's user write access to its data folder."
UNREACHABLE = "The database does not answer; Corral goes on as soon as it does."
NO_DESCRIPTORS = "The server can open no more files; try again, and raise its limit (ulimit -n) if that stays so."
UNKNOWN = (
    "The database did not answer in time, so it is unknown whether this was stored; check, or repeat it with the same "
    "Idempotency-Key, which stores it once."
)


def refusal(error: Exception, *, committing: bool = False) -> Exception:
    """Map a database error to Corral's error; any other error is a bug and is returned unchanged."""
    if isinstance(error, CorralError):
        return error
    if isinstance(error, PoolTimeout):
        return Unavailable("store-busy", "Too many questions to the database at once; try again.", retry_after=1)
    if isinstance(error, DataError | UnicodeEncodeError | OverflowError):
        return InvalidInput(
            "bad-value", "A value cannot be stored: it has a NUL character, broken text, or too large a number."
        )
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        return _sqlite_refusal(cause)
    if isinstance(error, DBAPIError):
        return _postgres_refusal(error, committing)
    return error


def no_descriptors() -> bool:
    """Whether this process has no file descriptor left."""
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


def is_locked(error: BaseException) -> bool:
    """Whether SQLite refused only because another connection writes now."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(cause, sqlite3.Error) and _code(cause) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _sqlite_refusal(error: sqlite3.Error) -> CorralError:
    code = _code(error)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return Unavailable(
            "storage-full" if code == sqlite3.SQLITE_FULL else "storage-failed",
            FULL
            if code == sqlite3.SQLITE_FULL
            else f"The disk that holds Corral's data failed ({error}), nothing was accepted; check the disk.",
            retry_after=30,
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Unavailable("store-locked", LOCKED, retry_after=5)
    if code == sqlite3.SQLITE_CANTOPEN and no_descriptors():
        return Unavailable("no-descriptors", NO_DESCRIPTORS, retry_after=5)
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreRefused("store-read-only", READ_ONLY)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreRefused("store-not-a-database", NOT_A_DATABASE)
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreRefused("store-corrupt", CORRUPT)
    return StoreRefused("store-failed", f"The database refused: {error}")


def _postgres_refusal(error: DBAPIError, committing: bool) -> CorralError:
    state = str(getattr(error.orig, "sqlstate", "") or "")
    if state == "53100":
        return Unavailable("storage-full", FULL, retry_after=30)
    if state == "55P03":
        return Unavailable("store-locked", LOCKED, retry_after=5)
    if state.startswith("25006"):
        return StoreRefused(
            "store-read-only", "The PostgreSQL server is read-only; name its primary in the store's URL."
        )
    if (
        error.connection_invalidated
        or state[:2] in ("08", "57", "53")
        or (isinstance(error, OperationalError | InterfaceError) and not state)
    ):
        if no_descriptors():
            return Unavailable("no-descriptors", NO_DESCRIPTORS, retry_after=5)
        if committing:
            return Unavailable("store-outcome-unknown", UNKNOWN, retry_after=1)
        return Unavailable("store-unreachable", UNREACHABLE, retry_after=1)
    first = (str(error.orig).splitlines() or [type(error.orig).__name__])[0]
    return StoreRefused("store-failed", f"The database refused: {first}")
