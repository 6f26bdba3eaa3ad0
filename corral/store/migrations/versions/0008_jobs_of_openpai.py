"""Add a table of OpenPAI's names for jobs, so that its lists and look-ups need no documents."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table of what lists show of jobs in OpenPAI's language."""
    op.create_table(
        "openpai_jobs",
        sa.Column("job", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("job_priority", sa.Text()),
        sa.Column("roles", sa.Integer(), nullable=False),
    )
    op.create_index("openpai_jobs_by_name", "openpai_jobs", ["user", "name"])
