"""What the users of a queue held in the past decides between them, so it outlives every process."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table of the past use of users."""
    op.create_table(
        "user_usage",
        sa.Column("queue", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )
