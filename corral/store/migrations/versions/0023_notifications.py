"""Channels for notifications of jobs, and the messages that wait to be sent or were sent."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add both tables, and the counter of messages."""
    op.create_table(
        "notify_channels",
        sa.Column("id", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("user", "name", "kind", "shown", "events")),
        sa.Column("waiting", sa.Integer(), nullable=False),
        sa.Column("jobs", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("verified_at", sa.Double()),
        sa.Column("code_at", sa.Double(), nullable=False),
        sa.Column("codes", sa.Integer(), nullable=False),
        sa.Column("wrong", sa.Integer(), nullable=False),
    )
    op.create_index("notify_channels_by_user", "notify_channels", ["user", "name"], unique=True)
    op.create_table(
        "notify_outbox",
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text(), nullable=False, unique=True),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("user", "channel", "channel_name", "message", "state")
        ),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.Double(), nullable=False),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
    )
    op.create_index("notify_outbox_by_user", "notify_outbox", ["user", "id"])
    queued = sa.text("state = 'queued'")
    op.create_index("notify_outbox_queued", "notify_outbox", ["next_at"], sqlite_where=queued, postgresql_where=queued)
    op.execute("INSERT INTO counters (name, value) VALUES ('notification', 0)")
