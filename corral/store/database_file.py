"""Check and move a SQLite file, for administrators' commands that work without an open store."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def damage(database: Path) -> str:
    """The damage that SQLite finds in a database file, "" when it finds none."""
    try:
        with sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True) as connection:
            found = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
        connection.close()
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else found


def set_aside(database: Path, kept: Path) -> None:
    """Move a stopped server's database, after its write-ahead log was merged into it."""
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    database.rename(kept)
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
