"""Filters of the list of jobs that people saved under names."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "saved_filters",
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("filter", sa.Text(), nullable=False),
    )
