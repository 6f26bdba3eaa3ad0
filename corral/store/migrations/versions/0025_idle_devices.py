"""Jobs that left their devices idle, and what was done about it."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "idle_jobs",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("idle_jobs_by_time", "idle_jobs", ["at"])
