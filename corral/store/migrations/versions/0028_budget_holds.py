"""What becomes of jobs that run while a budget is used up."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Add the column; budgets of before warn."""
    op.add_column("budgets", sa.Column("when_used_up", sa.Text(), nullable=False, server_default="warn"))
