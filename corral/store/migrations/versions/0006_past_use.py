"""Add a table for the past usage of queues, which fair ordering counts."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Make the table of past use."""
    op.create_table(
        "queue_usage",
        sa.Column("queue", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )
