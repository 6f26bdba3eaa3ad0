"""What becomes of jobs that run while a budget is used up, and an index of what live jobs of a queue may still use."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add them; budgets of before warn."""
    live = sa.text("live")
    op.create_index("jobs_live_of_queue", "jobs", ["queue"], sqlite_where=live, postgresql_where=live)
    op.add_column("budgets", sa.Column("when_used_up", sa.Text(), nullable=False, server_default="warn"))
