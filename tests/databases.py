"""Empty stores with their tables made: migrations run once per test process, except in tests of migrations.

A copy is opened without looking at its tables, if nothing has changed it since it was made.

The stores of a test process share what SQLAlchemy made of their statements: each would make its own, for a tenth of the
processor time of the service's tests.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL
from sqlalchemy.util import LRUCache

from corral.store import store as opening
from corral.store.call_deadlines import Limits
from corral.store.connections import check_folder, parse_url, writer_engine
from corral.store.schema import bring_up


def sqlite_store(folder: Path) -> str:
    """The URL of a store in `folder`: a copy of an empty one, unless it exists already."""
    file = folder / "corral.db"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_migrated())
        _COPIES[str(file)] = _state(file)
    return f"sqlite:///{file}"


_COPIES: Final[dict[str, tuple[int, int, int] | None]] = {}
"""Copies that were not opened yet, each with its state when it was made."""


def _state(file: Path) -> tuple[int, int, int] | None:
    """What changes with a file's content; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def know_copies(patch: Callable[[object, str, object], None]) -> None:
    """Let the first opening of an unchanged copy take its tables for the newest: to look at them takes half of it."""
    prepare = opening._prepare

    def unless_known(url: URL, create: bool, limits: Limits | None) -> Engine:
        file = Path(str(url.database))
        made = _COPIES.pop(str(file), None)
        if made is None or made != _state(file) or file.with_name(f"{file.name}-wal").exists():
            return prepare(url, create, limits)
        check_folder(file)
        return writer_engine(url, patience=limits.lock_seconds if limits is not None else None)

    patch(opening, "_prepare", unless_known)


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "corral.db"
        file.touch()
        migrate(f"sqlite:///{file}")
        with contextlib.closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")  # as every opened store has: each copy would be changed to it
        return file.read_bytes()


def migrate(url: str) -> None:
    """Make the tables of a store in an empty database."""
    engine = writer_engine(parse_url(url))
    bring_up(engine)
    engine.dispose()


def share_statements(patch: Callable[[object, str, object], None]) -> None:
    """Let all SQLite engines of this process have one cache of compiled statements.

    A statement is found in it by its dialect, of which each engine has one. They are equal, as the store gives none of
    them a setting.
    """
    made = Engine.__init__
    cache: LRUCache[Any, Any] = LRUCache(2000)

    def sharing(engine: Engine, *given: Any, **named: Any) -> None:
        made(engine, *given, **named)
        if type(engine.dialect) is SQLiteDialect_pysqlite:
            engine._compiled_cache = cache

    patch(Engine, "__init__", sharing)
    patch(SQLiteDialect_pysqlite, "__eq__", lambda one, other: type(one) is type(other))
    patch(SQLiteDialect_pysqlite, "__hash__", lambda one: hash(type(one)))
