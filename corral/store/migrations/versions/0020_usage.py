"""How much of devices each attempt holds, and the use of jobs that were removed, by day."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Add both; attempts of before count the whole devices that they name."""
    op.add_column("attempts", sa.Column("millis", sa.Integer(), nullable=False, server_default="0"))
    attempts = sa.table("attempts", sa.column("devices", sa.Text), sa.column("millis", sa.Integer))
    named = attempts.c.devices if op.get_bind().dialect.name == "sqlite" else sa.cast(attempts.c.devices, sa.JSON)
    op.execute(sa.update(attempts).values(millis=1000 * sa.func.json_array_length(named)))
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("user", sa.Text(), primary_key=True),
        sa.Column("queue", sa.Text(), primary_key=True),
        sa.Column("device_seconds", sa.Double(), nullable=False),
        sa.Column("lost_device_seconds", sa.Double(), nullable=False),
        sa.Column("task_seconds", sa.Double(), nullable=False),
    )
