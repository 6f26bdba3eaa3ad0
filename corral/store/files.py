"""Why: an administrator's tools look at the database of a server that is stopped, or ill; they need no open store."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def damage(database: Path) -> str:
    """What SQLite finds wrong with a database file, "" when it finds nothing."""
    try:
        with sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        connection.close()
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found


def set_aside(database: Path, kept: Path) -> None:
    """Move a stopped server's database, with what its write-ahead log still holds brought in first."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    database.rename(kept)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
