"""The highest priority that an account, and the members of a group, may give their jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add a ceiling to users and groups; none is set."""
    op.add_column("users", sa.Column("max_priority", sa.Integer()))
    op.add_column("groups", sa.Column("max_priority", sa.Integer()))
