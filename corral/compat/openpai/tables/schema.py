"""OpenPAI's tables: the columns of its job lists, and the records that its clients store.

The two steps make the tables only where the store's own migrations 0008 and 0011 have not: until tenants declared their
tables, the store did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text

from corral.store.tenant_tables import JobNames, TenantTables

if TYPE_CHECKING:
    from alembic.operations import Operations

metadata = MetaData()

submitted_jobs = Table(
    "openpai_jobs",
    metadata,
    Column("job", Text, primary_key=True),
    Column("user", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("job_priority", Text),
    Column("roles", Integer, nullable=False),
    Index("openpai_jobs_by_name", "user", "name"),
)

client_records = Table(
    "openpai_kept",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
)


def _make_submitted_jobs(op: Operations) -> None:
    op.create_table(
        "openpai_jobs",
        Column("job", Text(), primary_key=True),
        Column("user", Text(), nullable=False),
        Column("name", Text(), nullable=False),
        Column("job_priority", Text()),
        Column("roles", Integer(), nullable=False),
        if_not_exists=True,
    )
    op.create_index("openpai_jobs_by_name", "openpai_jobs", ["user", "name"], if_not_exists=True)


def _make_client_records(op: Operations) -> None:
    op.create_table(
        "openpai_kept",
        Column("kind", Text(), primary_key=True),
        Column("name", Text(), primary_key=True),
        Column("owner", Text(), nullable=False),
        Column("body", Text(), nullable=False),
        Column("created_at", Double(), nullable=False),
        Column("changed_at", Double(), nullable=False),
        if_not_exists=True,
    )


TABLES: Final = TenantTables(
    metadata,
    steps=(_make_submitted_jobs, _make_client_records),
    by_job=(submitted_jobs.c.job,),
    by_account=(client_records.c.owner,),
    job_names=JobNames(submitted_jobs, priority=submitted_jobs.c.job_priority),
)
