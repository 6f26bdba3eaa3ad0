"""What attempts were measured to use, and the same of removed jobs by day."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

_OF_DAYS = ("measured_task_seconds", "used_cpu_seconds", "used_memory_gib_seconds", "energy_joules")


def upgrade() -> None:
    """Add both; of attempts and days of before nothing was measured."""
    op.create_table(
        "attempt_use",
        sa.Column("attempt", sa.Text(), primary_key=True),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("measured_seconds", sa.Double(), nullable=False),
        sa.Column("cpu_seconds", sa.Double(), nullable=False),
        sa.Column("memory_gib_seconds", sa.Double(), nullable=False),
        sa.Column("joules", sa.Double(), nullable=False),
    )
    op.create_index("attempt_use_by_job", "attempt_use", ["job"])
    for name in _OF_DAYS:
        op.add_column("usage_days", sa.Column(name, sa.Double(), nullable=False, server_default="0"))
