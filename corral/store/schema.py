"""Migrate a store to this version's tables before use, and refuse one made by a newer version.

Alembic is imported only when there is something to migrate, because its import costs more than the rest of opening a
store. An empty SQLite file gets the newest tables at once; a test compares them with the result of all migrations.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError

from corral.store.connections import parse_url, writer_engine
from corral.store.database_errors import StoreRefused
from corral.store.tables import metadata
from corral.store.tenant_tables import are_migrated, create_tenants, migrate_tenants

HEAD: Final = "0034"
"""The newest migration."""
KNOWN: Final = tuple(f"{number:04}" for number in range(1, int(HEAD) + 1))
"""Every migration, oldest first."""
MIGRATIONS: Final = Path(__file__).parent / "migrations"


def version_of(engine: Engine) -> str | None:
    """The schema version of the tables; None for an empty database.

    Raises StoreRefused when there are tables, but none of Corral's.
    """
    with engine.connect() as connection:
        names = set(inspect(connection).get_table_names())
        if "alembic_version" in names:
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
            if version is not None:
                return str(version)
        if names - {"alembic_version"}:
            raise StoreRefused(
                "store-not-a-database", "The database belongs to another program; name an empty one in the store's URL."
            )
    return None


def is_empty(url: str) -> bool:
    """Whether a database answers and has no tables."""
    engine = writer_engine(parse_url(url))
    try:
        return version_of(engine) is None
    except (SQLAlchemyError, StoreRefused):
        return False
    finally:
        engine.dispose()


def bring_up(
    engine: Engine, *, create: bool = True, target: str = HEAD, tenant_steps: Mapping[str, int] | None = None
) -> None:
    """Migrate the tables to `target`, and those of tenants to their newest form, or as many steps as `tenant_steps` says.

    Raises StoreRefused when they were made by a newer Corral, or when they are missing and `create` is False.
    """
    version = version_of(engine)
    if version == target and (target != HEAD or are_migrated(engine)):
        return
    if version is not None and version not in KNOWN:
        raise StoreRefused(
            "store-newer",
            f"The database was made by a newer Corral (its schema is {version[:40]}, this one knows {HEAD}); "
            "install that version, or restore a backup made by this one.",
        )
    if version is None and not create:
        raise StoreRefused(
            "store-empty", "There is no Corral database there; name the right one, or start a server first."
        )
    new = version is None and target == HEAD and tenant_steps is None
    if new and engine.dialect.name == "sqlite" and _create(engine):
        return
    _upgrade(engine, version, target, tenant_steps)


_FIRST_ROWS: Final = (
    "INSERT INTO counters (name, value) VALUES ('event', 0), ('outbox', 0), ('audit', 0), ('document', 0), ('uid', 99999), "
    "('notification', 0)",
    "INSERT INTO leadership (id, epoch, renewals, cursor, address, expires_at) VALUES (1, 0, 0, 0, '', 0)",
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
    "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
)
"""The rows that the migrations insert into an empty database."""


def _create(engine: Engine) -> bool:
    """Create the newest tables in an empty SQLite file; False when another process created some before."""
    with engine.begin() as connection:
        if inspect(connection).get_table_names():
            return False
        metadata.create_all(connection, checkfirst=False)
        create_tenants(connection)
        for statement in _FIRST_ROWS:
            connection.execute(text(statement))
        connection.execute(text("INSERT INTO alembic_version (version_num) VALUES (:head)"), {"head": HEAD})
    return True


def _upgrade(engine: Engine, version: str | None, target: str, tenant_steps: Mapping[str, int] | None) -> None:
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(829135522)"))
        if version != target:
            _run_alembic(connection, target)
        if target == HEAD:
            migrate_tenants(connection, tenant_steps)


def _run_alembic(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)
