"""Alerts that fired, also after they are over."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "alert_history",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("fired_at", sa.Double(), primary_key=True),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("alert_history_by_time", "alert_history", ["fired_at"])
