"""The model, processors and memory of each attempt, budgets of device-hours, and what they count of live jobs."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_AT_ONCE = 500
"""Documents of jobs in memory at once."""
_KEYS = ("day", "user", "queue")
_SUMS = ("device_seconds", "lost_device_seconds", "task_seconds")


def upgrade() -> None:
    """Add them; of attempts of before neither model nor processors nor memory are known."""
    op.add_column("attempts", sa.Column("model", sa.Text(), nullable=False, server_default=""))
    for name in ("cpu_millis", "memory_bytes"):
        op.add_column("attempts", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    for name in ("device_millis", "longest_seconds"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    _fill_live_jobs()
    _add_models_to_days()
    op.create_table(
        "budgets",
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("window", sa.Text(), primary_key=True),
        sa.Column("device_hours", sa.Double(), nullable=False),
        sa.Column("warn_at", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
    )
    op.create_table(
        "budget_top_ups",
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("window", sa.Text(), primary_key=True),
        sa.Column("since", sa.Double(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("device_hours", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
    )


def _add_models_to_days() -> None:
    """Make the table of removed jobs anew: a column joins its primary key."""
    op.rename_table("usage_days", "usage_days_before")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER INDEX usage_days_pkey RENAME TO usage_days_before_pkey")
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("queue", sa.Text(), primary_key=True),
        sa.Column("model", sa.Text(), primary_key=True),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("lost_device_seconds", sa.Double(), nullable=False),
        sa.Column("task_seconds", sa.Double(), nullable=False),
        sa.Column("cpu_seconds", sa.Double(), nullable=False),
        sa.Column("memory_gib_seconds", sa.Double(), nullable=False),
    )
    names = (*_KEYS, *_SUMS, "model", "cpu_seconds", "memory_gib_seconds")
    new = sa.table("usage_days", *map(sa.column, names))
    old = sa.table("usage_days_before", *map(sa.column, (*_KEYS, *_SUMS)))
    kept = sa.select(*(old.c[name] for name in (*_KEYS, *_SUMS)), sa.literal(""), sa.literal(0.0), sa.literal(0.0))
    op.execute(sa.insert(new).from_select(list(names), kept))
    op.drop_table("usage_days_before")


def _fill_live_jobs() -> None:
    """Store what live jobs ask for and how long they may run, from their lists' entries and documents."""
    connection = op.get_bind()
    jobs = sa.table(
        "jobs", sa.column("id"), sa.column("live", sa.Boolean), sa.column("device_millis"), sa.column("longest_seconds")
    )
    documents = sa.table("job_documents", sa.column("job"), sa.column("doc"))
    runs = sa.table("job_runs", sa.column("job"), sa.column("summary"))
    ids = [row.id for row in connection.execute(sa.select(jobs.c.id).where(jobs.c.live))]
    joined = sa.select(jobs.c.id, documents.c.doc, runs.c.summary).select_from(
        jobs.outerjoin(documents, documents.c.job == jobs.c.id).outerjoin(runs, runs.c.job == jobs.c.id)
    )
    for part in range(0, len(ids), _AT_ONCE):
        found = connection.execute(joined.where(jobs.c.id.in_(ids[part : part + _AT_ONCE]))).all()
        for row in found:
            millis = round(1000 * (json.loads(row.summary or "{}").get("devices") or 0))
            longest = (json.loads(row.doc or "{}").get("spec") or {}).get("maxDurationSeconds") or 0
            changed = sa.update(jobs).where(jobs.c.id == row.id).values(device_millis=millis, longest_seconds=longest)
            connection.execute(changed)
