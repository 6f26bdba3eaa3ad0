"""How much of their devices attempts were measured to use, and the same of removed jobs by day."""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"

_OF_ATTEMPTS = ("device_seconds", "used_device_seconds", "idle_device_seconds")
_OF_DAYS = ("measured_device_seconds", "used_device_seconds", "idle_device_seconds")


def upgrade() -> None:
    """Add the columns; of attempts and days of before no use of devices was counted."""
    for table, names in (("attempt_use", _OF_ATTEMPTS), ("usage_days", _OF_DAYS)):
        for name in names:
            op.add_column(table, sa.Column(name, sa.Double(), nullable=False, server_default="0"))
