"""Add tables that link OpenID subjects to accounts, and tokens to provider sessions.

A link outlives a change of name at the provider and is deleted with the account.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Make the tables of identities and of the sessions that tokens began in."""
    op.create_table(
        "openid_identities",
        sa.Column("issuer", sa.Text(), primary_key=True),
        sa.Column("subject", sa.Text(), primary_key=True),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    op.create_index("openid_identities_by_user", "openid_identities", ["user"])
    op.create_table(
        "openid_sessions",
        sa.Column("token", sa.Text(), primary_key=True),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
    )
    op.create_index("openid_sessions_by_session", "openid_sessions", ["issuer", "session"])
