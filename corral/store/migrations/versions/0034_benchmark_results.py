"""Results of benchmark suites: their runs, and what each measured on each node."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "benchmark_runs",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("nodes", sa.Integer(), nullable=False),
        sa.Column("figures", sa.Integer(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
    )
    op.create_index("benchmark_runs_by_time", "benchmark_runs", ["at"])
    op.create_table(
        "benchmark_figures",
        sa.Column("run", sa.Text(), primary_key=True),
        sa.Column("node", sa.Text(), primary_key=True),
        sa.Column("metric", sa.Text(), primary_key=True),
        sa.Column("rank", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("sku", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
    )
    op.create_index("benchmark_figures_by_metric", "benchmark_figures", ["metric", "at"])
    op.create_index("benchmark_figures_by_node", "benchmark_figures", ["node", "at"])
