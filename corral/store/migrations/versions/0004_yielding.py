"""Add tables for preemption receipts, loans between queues and cordoned nodes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of receipts, ledgers and cordons."""
    op.create_table(
        "receipts",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("by_queue", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("closed", sa.Boolean(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("receipts_by_time", "receipts", ["at", "job", "number"])
    op.create_index("receipts_by_queue", "receipts", ["queue", "at"])
    op.create_index(
        "receipts_open",
        "receipts",
        ["job"],
        sqlite_where=sa.text("NOT closed"),
        postgresql_where=sa.text("NOT closed"),
    )
    op.create_table(
        "ledger",
        sa.Column("lender", sa.Text(), primary_key=True),
        sa.Column("borrower", sa.Text(), primary_key=True),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    op.create_table(
        "cordons",
        sa.Column("node", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )
