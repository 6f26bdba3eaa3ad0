"""The health of nodes: what is known of each, its history, and the figures of validations."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "node_health",
        sa.Column("node", sa.Text(), primary_key=True),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_table(
        "health_history",
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("node", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("health_history_by_node", "health_history", ["node", "seq"])
    op.create_table(
        "health_figures",
        sa.Column("node", sa.Text(), primary_key=True),
        sa.Column("alike", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
    )
    op.create_index("health_figures_by_alike", "health_figures", ["alike"])
