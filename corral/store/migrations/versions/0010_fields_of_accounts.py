"""Add fields to accounts and groups: e-mail address, description, and clients' extension data."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add what they carry, empty for those that are there."""
    for table, name, empty in (
        ("users", "email", ""),
        ("users", "extension", "{}"),
        ("groups", "description", ""),
        ("groups", "external_name", ""),
        ("groups", "extension", "{}"),
    ):
        op.add_column(table, sa.Column(name, sa.Text(), nullable=False, server_default=empty))
    op.add_column("groups", sa.Column("admin", sa.Boolean(), nullable=False, server_default=sa.false()))
