"""Back up the store while the server runs, and restore a backup into SQLite or PostgreSQL.

A backup is a SQLite file with the rows of every table as of one read transaction. On SQLite it is made by the
database's online backup; from PostgreSQL the rows are copied. A restore needs an empty store. The next control process
then reconciles with the engines, as after any restart: tasks that the backup does not know are ended, and tasks that it
knows but that are gone end as lost.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, delete, func, insert, inspect, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from corral.kernel.errors import Conflict
from corral.store import tables
from corral.store.connections import parse_url, writer_engine
from corral.store.database import Database
from corral.store.database_errors import StoreRefused, refusal
from corral.store.leadership import ENGINE_HOME
from corral.store.schema import HEAD, bring_up, version_of
from corral.store.tenant_tables import all_tables, forget_absent, steps_taken

_PIECE: Final = 1000
_MUST_BE_EMPTY: Final = (tables.jobs, tables.users, tables.events)


class Backups(Database):
    """Take backups while the store is in use."""

    async def backup(self, file: Path) -> None:
        """Write a consistent copy of the store to `file`, which appears only when it is complete.

        Raises Conflict when `file` exists, Unavailable when the disk is full, StoreRefused when it cannot be written.
        """
        await self.read(lambda connection: _back_up(connection, file), limited=False)


def _back_up(connection: Connection, file: Path) -> None:
    if file.exists():
        raise Conflict("backup-exists", f"{file} is there already; choose another name.")
    part = file.with_name(f".{file.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        if connection.dialect.name == "sqlite":
            _copy_sqlite(connection, part)
        else:
            _copy_rows(connection, part)
        _flush(part)
        part.rename(file)
        _flush(file.parent)
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise refusal(error) from error
    except OSError as error:
        raise StoreRefused("backup-failed", f"The backup cannot be written to {file}: {error.strerror}.") from error
    finally:
        part.unlink(missing_ok=True)


def _copy_sqlite(connection: Connection, part: Path) -> None:
    """Run SQLite's online backup on a separate connection, because the reader's may be in a transaction."""
    path = Path(str(connection.engine.url.database)).absolute()
    source = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    target = sqlite3.connect(part)
    try:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()
        source.close()


def _copy_rows(connection: Connection, part: Path) -> None:
    engine = writer_engine(parse_url(f"sqlite:///{part}"))
    try:
        bring_up(engine)
        with engine.begin() as target:
            _empty(target)
            copy_tables(connection, target)
    finally:
        engine.dispose()


def copy_tables(source: Connection, target: Connection) -> None:
    """Copy every row of every table that the source has, in batches of 1,000; of an older schema, the columns it has."""
    there = inspect(source)
    names = frozenset(there.get_table_names())
    for table in all_tables():
        if table.name not in names:
            continue
        columns = frozenset(column["name"] for column in there.get_columns(table.name))
        found = source.execution_options(yield_per=_PIECE).execute(select(*(c for c in table.c if c.name in columns)))
        for piece in found.mappings().partitions(_PIECE):
            target.execute(insert(table), [dict(row) for row in piece])


def restore(file: Path, url: str) -> None:
    """Restore a backup into an empty store (SQLite file or PostgreSQL database). The server must not run.

    Raises StoreRefused when `file` is not a backup or was made by a newer Corral, Conflict when the store is not empty.
    """
    if not file.is_file():
        raise StoreRefused("no-backup", f"There is no backup at {file}.")
    parsed = parse_url(url)
    source, target = _backup_engine(file), writer_engine(parsed)
    try:
        if not _is_backup(source):
            raise StoreRefused(
                "not-a-backup", f"{file} is not a backup of Corral; name one that `corral backup` wrote."
            )
        _restore_into(source, target, parsed)
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise refusal(error) from error
    finally:
        source.dispose()
        target.dispose()


def _is_backup(source: Engine) -> bool:
    try:
        return version_of(source) is not None
    except (SQLAlchemyError, sqlite3.Error):
        return False


def _backup_engine(file: Path) -> Engine:
    return create_engine(f"sqlite:///file:{file.absolute()}?mode=ro&uri=true", poolclass=NullPool)


def _restore_into(source: Engine, target: Engine, url: URL) -> None:
    if target.dialect.name == "sqlite":
        path = Path(str(url.database))
        if not path.exists():
            path.touch(mode=0o600)
    version = str(version_of(source))
    with source.connect() as old:
        taken = steps_taken(old) if version == HEAD else {}
    bring_up(target, target=version, tenant_steps=taken)
    with source.connect() as old, target.begin() as new:
        if any(new.execute(select(func.count()).select_from(table)).scalar_one() for table in _MUST_BE_EMPTY):
            message = "The store has jobs or users already; restore into a new data folder or an empty database."
            raise Conflict("store-not-empty", message)
        _empty(new)
        copy_tables(old, new)
        forget_absent(new)
        new.execute(_nobody_leads())
        new.execute(delete(tables.settings).where(tables.settings.c.key == ENGINE_HOME))  # its tasks are not there
    bring_up(target)


def _empty(connection: Connection) -> None:
    """Delete the rows that a new schema starts with."""
    names = frozenset(inspect(connection).get_table_names())
    for table in all_tables():
        if table.name in names:
            connection.execute(delete(table))


def _nobody_leads() -> Any:
    return tables.leadership.update().values(holder=None, address="", expires_at=0.0)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
