"""Groups say which queues their members manage."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the queues that a group manages: none for the groups that are there."""
    op.add_column("groups", sa.Column("manages", sa.Text(), nullable=False, server_default="[]"))
