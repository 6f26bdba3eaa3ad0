"""The state of alerts, and silences."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Add both."""
    op.create_table(
        "alerts",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_table(
        "silences",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("ends_at", sa.Double(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
