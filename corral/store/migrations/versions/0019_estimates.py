"""The estimates of starts that were given, and what came true."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add a table for them; none is known yet."""
    op.create_table(
        "estimates",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("at", sa.Double(), primary_key=True),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("given", sa.Text(), nullable=False),
        sa.Column("started", sa.Double()),
        sa.Column("ended", sa.Double()),
    )
    op.create_index("estimates_by_time", "estimates", ["at"])
    op.create_index(
        "estimates_open",
        "estimates",
        ["job"],
        sqlite_where=sa.text("started IS NULL AND ended IS NULL"),
        postgresql_where=sa.text("started IS NULL AND ended IS NULL"),
    )
