"""Open SQLite or PostgreSQL with the same guarantees: durable commits, one writer at a time, consistent reads.

SQLite runs in WAL mode with `synchronous=FULL`. Its write transactions begin IMMEDIATE and wait for the other process
in half-millisecond steps, because SQLite's own busy handler sleeps up to 100 ms. A connection reads the schema while it
is prepared, and waits there like any reader: after a crash the other process may be recovering the log. On PostgreSQL a
write transaction first locks the counters' row, which gives the same order of commits.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, event, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import NullPool, QueuePool

from corral.kernel.errors import InvalidInput, Unavailable
from corral.store import tables
from corral.store.call_deadlines import LOCK_SECONDS, make_cuttable, make_stoppable
from corral.store.database_errors import LOCKED, READ_ONLY, StoreRefused, is_locked

READERS: Final = 3
"""Queries that run at once."""
_ABANDONED_SECONDS: Final = 3
"""Seconds after which a silent session in an open transaction is ended; its machine may be gone."""
_LOG_BYTES: Final = 64 * 1024**2
"""Bytes to which SQLite's write-ahead log is truncated after a checkpoint."""
_LOOK_SECONDS: Final = 1
"""Seconds between two checks of a waiting writer for abandoned sessions."""
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs", "gpfs"}
    | {"ocfs2", "gfs2", "orangefs", "panfs", "wekafs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.ceph-fuse"}
    | {"fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.juicefs"}
)


def parse_url(url: str) -> URL:
    """Parse the URL of a store: `sqlite:///FILE`, a plain file name, or `postgresql://…`.

    Raises InvalidInput for any other kind of database.
    """
    if "://" not in url:
        url = f"sqlite:///{url}"
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise InvalidInput(
            "store-url", "The store's URL cannot be read; write sqlite:///FILE or postgresql://…."
        ) from None
    kind = parsed.drivername.split("+")[0]
    if kind == "sqlite" and parsed.database:
        return parsed.set(drivername="sqlite+pysqlite")
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    raise InvalidInput(
        "store-url", f"The store's URL names {kind}; Corral keeps its state in a SQLite file or PostgreSQL."
    )


def check_folder(file: Path) -> None:
    """Refuse a SQLite file in a place where it cannot be stored safely.

    Raises StoreRefused for a missing or read-only folder, a network file system, and a path that is not a file.
    """
    folder = file.parent
    if not folder.is_dir():
        raise StoreRefused(
            "store-no-folder", f"The folder {folder} does not exist; create it, or name another data folder."
        )
    if file.exists() and not file.is_file():
        raise StoreRefused("store-not-a-database", f"{file} is not a file; move it away or name another data folder.")
    kind = filesystem(folder)
    if kind in _NETWORK:
        raise StoreRefused(
            "store-on-network-filesystem",
            f"{folder} is on a network file system ({kind}), where SQLite loses data; name a local folder, or PostgreSQL.",
        )
    if not os.access(folder, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)) or _read_only(folder):
        raise StoreRefused("store-read-only", READ_ONLY)


def filesystem(folder: Path, mounts: str = "/proc/self/mountinfo") -> str:
    """The type of the file system that `folder` is on, "" when unknown."""
    real = str(folder.resolve())
    best, kind = "", ""
    try:
        lines = Path(mounts).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        left, _, right = line.partition(" - ")
        point = left.split(" ")[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, right.split(" ")[0]
    return kind


def _read_only(folder: Path) -> bool:
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def writer_engine(url: URL, *, patience: Callable[[], float] | None = None) -> Engine:
    """The engine of the one connection that writes.

    `patience` tells the seconds to wait now for another process that writes to SQLite, by default 4.
    """
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, writes=True, patience=patience or (lambda: LOCK_SECONDS))
    given = url.normalized_query.get("options", ())
    options = " ".join((*given, f"-c lock_timeout={_LOOK_SECONDS * 1000}"))
    engine = create_engine(url, poolclass=NullPool, connect_args={**_postgres_arguments(), "options": options})
    make_cuttable(engine)
    return engine


def reader_engine(url: URL, *, patience: Callable[[], float] | None = None) -> Engine:
    """The engine of the connections that read; each transaction sees one consistent snapshot.

    SQLite's readers wait only for a process that opens or closes the file; a connection waits as long as `patience`
    told when it was opened.
    """
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, writes=False, patience=patience or (lambda: LOCK_SECONDS))
    engine = create_engine(
        url, isolation_level="REPEATABLE READ", pool_size=READERS, max_overflow=0, connect_args=_postgres_arguments()
    )
    make_cuttable(engine)
    return engine


def _postgres_arguments() -> dict[str, Any]:
    return {
        "connect_timeout": 3,
        "application_name": "corral",
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
    }


def _sqlite(url: URL, *, writes: bool, patience: Callable[[], float] = lambda: LOCK_SECONDS) -> Engine:
    engine = create_engine(
        url,
        poolclass=NullPool if writes else QueuePool,
        connect_args={"check_same_thread": False, "isolation_level": None},
        **({} if writes else {"pool_size": READERS, "max_overflow": 0}),
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, record: Any) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout={patience() * 1000:.0f}")
        make_stoppable(connection, record.info)
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA cache_size=-4000")
        connection.execute("PRAGMA temp_store=MEMORY")
        if writes:
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # effective only for a file that is still empty
            connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
            connection.execute("PRAGMA busy_timeout=0")  # from here on `wait_for_the_lock` waits
        else:
            connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if writes:
            wait_for_the_lock(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"), patience())
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def wait_for_the_lock(statement: Callable[[], object], seconds: float) -> None:
    """Repeat a SQLite `statement` that takes a lock while another process has it, for at most `seconds`.

    For the statements that SQLite's busy handler does not cover: BEGIN IMMEDIATE, for which it would wait too long, and
    the change of a new file to WAL, which reads before it writes and is therefore refused at once. Raises Unavailable
    when the lock is still held after that time.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            statement()
        except (OperationalError, sqlite3.OperationalError) as error:
            if not is_locked(error):
                raise
            if time.monotonic() > deadline:
                raise Unavailable("store-locked", LOCKED, retry_after=5) from None
            time.sleep(0.0005)
        else:
            return


def lock_order(connection: Connection) -> bool:
    """Make this write transaction the only one until it ends; False when it must be begun again.

    SQLite's transaction holds the lock already. On PostgreSQL a writer that waits too long ends the sessions that
    stopped in the middle of a transaction; otherwise one lost or stuck machine would block all others. PostgreSQL's own
    time-out for this misses the pipelines of `executemany`: in the middle of one a session counts as active and waits
    for its client.
    """
    if connection.dialect.name != "postgresql":
        return True
    try:
        connection.execute(_LOCK)
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", "") != _LOCK_TIMEOUT:
            raise
        connection.rollback()
        with connection.begin():
            connection.execute(_END_ABANDONED, {"seconds": _ABANDONED_SECONDS})
        return False
    return True


_LOCK_TIMEOUT: Final = "55P03"
_END_ABANDONED: Final = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND application_name = 'corral'"
    " AND (state LIKE 'idle in transaction%' OR (state = 'active' AND wait_event_type = 'Client'))"
    " AND state_change < clock_timestamp() - make_interval(secs => :seconds)"
)
_LOCK: Final = select(tables.counters.c.value).where(tables.counters.c.name == "event").with_for_update()
