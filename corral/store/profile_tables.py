"""The table of profiles of running jobs."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, Table, Text


def profile_table(metadata: MetaData) -> Table:
    """Declare the table."""
    return Table(
        "profiles",
        metadata,
        Column("id", Text, primary_key=True),
        Column("job", Text, nullable=False),
        Column("user", Text, nullable=False),
        Column("taken_by", Text, nullable=False),
        Column("what", Text, nullable=False),
        Column("seconds", Integer, nullable=False),
        Column("at", Double, nullable=False),
        Column("until", Double, nullable=False),
        Column("state", Text, nullable=False),
        Column("doc", Text, nullable=False),
        Column("digest", Text, nullable=False),
        Column("size", BigInteger, nullable=False),
        Index("profiles_by_job", "job", "at"),
        Index("profiles_by_user", "user", "at"),
    )
