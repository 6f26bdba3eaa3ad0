"""Store loans in thousandths of a device, because queues also lend device fractions."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Count what is lent in thousandths, and say so in the name."""
    op.execute("ALTER TABLE ledger RENAME COLUMN devices TO device_millis")
    op.execute("UPDATE ledger SET device_millis = device_millis * 1000")
