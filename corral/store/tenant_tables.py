"""Tables that tenants declare, found by entry point; the store makes, migrates, backs up and cleans them.

The chain of migrations is the store's own steps, then those of each tenant in the order of their names, in one
transaction. How many of a tenant's steps a database has taken is stored in `settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, Connection, Engine, MetaData, Table, delete, insert, select

from corral.kernel.plug_ins import broken, load, plug_ins
from corral.store import tables
from corral.store.database_errors import StoreRefused

if TYPE_CHECKING:
    from alembic.operations import Operations

GROUP: Final = "corral.tables"
"""The entry-point group; an entry point's name is the tenant's, its object a `TenantTables`."""
_TAKEN: Final = "tenant-steps:"
_settings = tables.settings
_RECORDS: Final = select(_settings.c.key, _settings.c.value).where(_settings.c.key.startswith(_TAKEN, autoescape=True))


@dataclass(frozen=True)
class JobNames:
    """A table of the names that jobs were submitted under, in a language with names of its own.

    A job is found by this name too, and among the tenant's jobs it is the one that must be unique.
    """

    table: Table
    """Has the columns `job` (the primary key), `user` and `name`; further ones are `SubmittedAs.columns`."""
    priority: Column[Any] | None = None
    """A column with the name of the job's priority, which follows a change of it; None for no such column."""


@dataclass(frozen=True)
class TenantTables:
    """The tables of a tenant, as its newest step leaves them. Their names begin with the tenant's and `_`."""

    metadata: MetaData
    steps: tuple[Callable[[Operations], None], ...]
    """Make the tables in their first form, then change them; a step that was released stays as it is."""
    by_job: tuple[Column[Any], ...] = ()
    """Columns with the id of a job: their rows are deleted with the job."""
    by_account: tuple[Column[Any], ...] = ()
    """Columns with the name of an account: they become "" when the account is deleted."""
    job_names: JobNames | None = None


@cache
def tenant_tables() -> Mapping[str, TenantTables]:
    """The tables of all tenants, in the order of the tenants' names.

    Raises InvalidInput `broken-plug-in` if they cannot be loaded, or a table is named like another package's.
    """
    found = {}
    for name, point in sorted(plug_ins(GROUP).items()):
        declared = load(point, "tables", lambda each: each)
        if not isinstance(declared, TenantTables):
            raise broken(point, "tables", "must be a TenantTables")
        if strange := [each for each in declared.metadata.tables if not each.startswith(f"{name}_")]:
            raise broken(point, "tables", f"has the table {strange[0]}, whose name must begin with {name}_")
        found[name] = declared
    return found


def all_metadata() -> tuple[MetaData, ...]:
    """The tables of the store and of all tenants."""
    return (tables.metadata, *(each.metadata for each in tenant_tables().values()))


def all_tables() -> Iterator[Table]:
    """Every table of the store and of all tenants."""
    return (table for metadata in all_metadata() for table in metadata.sorted_tables)


def job_names() -> Mapping[str, JobNames]:
    """The tables of names of jobs by the name of the table."""
    declared = (each.job_names for each in tenant_tables().values())
    return {each.table.name: each for each in declared if each is not None}


def create_tenants(connection: Connection) -> None:
    """Make the tables of all tenants at once in a new database, as their newest steps leave them."""
    for name, declared in tenant_tables().items():
        declared.metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(_settings), {"key": f"{_TAKEN}{name}", "value": str(len(declared.steps))})


def steps_taken(connection: Connection) -> dict[str, int]:
    """By tenant, how many of its steps the database has taken."""
    return {row.key.removeprefix(_TAKEN): int(row.value) for row in connection.execute(_RECORDS)}


def migrate_tenants(connection: Connection, wanted: Mapping[str, int] | None = None) -> None:
    """Take the steps of each tenant that the database has not taken: all, or those up to the `wanted` number.

    Raises StoreRefused when a newer version of a tenant has migrated its tables.
    """
    before = steps_taken(connection)
    for name, declared in tenant_tables().items():
        taken, newest = before.get(name, 0), len(declared.steps)
        if taken > newest:
            raise StoreRefused(
                "store-newer",
                f"The tables of {name} were made by a newer version (step {taken}, this one knows {newest}); "
                "install that version, or restore a backup made by this one.",
            )
        last = newest if wanted is None else min(wanted.get(name, 0), newest)
        if taken < last:
            _take(connection, declared.steps[taken:last])
            key = f"{_TAKEN}{name}"
            connection.execute(delete(_settings).where(_settings.c.key == key))
            connection.execute(insert(_settings), {"key": key, "value": str(last)})


def forget_absent(connection: Connection) -> None:
    """Forget the steps of tenants that are not installed, whose tables a restore leaves out."""
    for name in steps_taken(connection).keys() - tenant_tables().keys():
        connection.execute(delete(_settings).where(_settings.c.key == f"{_TAKEN}{name}"))


def are_migrated(engine: Engine) -> bool:
    """Whether each tenant's tables are those of its newest step."""
    with engine.connect() as connection:
        taken = steps_taken(connection)
    return all(taken.get(name) == len(each.steps) for name, each in tenant_tables().items())


def _take(connection: Connection, steps: tuple[Callable[[Operations], None], ...]) -> None:
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    batch = {"render_as_batch": connection.dialect.name == "sqlite"}
    operations = Operations(MigrationContext.configure(connection, opts=batch))
    for step in steps:
        step(operations)
