"""Empty stores with their tables made: migrations run once per test process, except in tests of migrations.

The stores of a test process share what SQLAlchemy made of their statements: each would make its own, for a tenth of the
processor time of the service's tests.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache

from corral.store.connections import parse_url, writer_engine
from corral.store.schema import bring_up


def sqlite_store(folder: Path) -> str:
    """The URL of a store in `folder`: a copy of an empty one, unless it exists already."""
    file = folder / "corral.db"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_migrated())
    return f"sqlite:///{file}"


@functools.cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "corral.db"
        file.touch()
        migrate(f"sqlite:///{file}")
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
