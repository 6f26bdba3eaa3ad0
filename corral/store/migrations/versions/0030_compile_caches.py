"""Bundles of compiled code, what tasks made of them, and those that are to be deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "compile_caches",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("used_at", sa.Double(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
    )
    op.create_index("compile_caches_by_scope", "compile_caches", ["scope"])
    op.create_index("compile_caches_by_user", "compile_caches", ["user", "used_at"])
    op.create_index("compile_caches_by_digest", "compile_caches", ["digest"])
    op.create_table(
        "compile_cache_uses",
        sa.Column("attempt", sa.Text(), primary_key=True),
        sa.Column("job", sa.Text(), nullable=False),
        sa.Column("user", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("cache", sa.Text(), nullable=False),
        sa.Column("program", sa.Text(), nullable=False),
        sa.Column("cold", sa.Boolean(), nullable=False),
        sa.Column("first_step", sa.Double()),
        sa.Column("doc", sa.Text(), nullable=False),
    )
    op.create_index("compile_cache_uses_by_job", "compile_cache_uses", ["job"])
    op.create_index("compile_cache_uses_by_program", "compile_cache_uses", ["program", "cache", "at"])
    op.create_table(
        "compile_cache_garbage",
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
    )
