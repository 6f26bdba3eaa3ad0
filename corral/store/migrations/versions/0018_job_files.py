"""The files that jobs were submitted as."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Add a table for the text of each job's file; the jobs that are there have none."""
    op.create_table(
        "job_files",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("parameters", sa.Text(), nullable=False),
    )
