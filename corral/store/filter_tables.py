"""The table of saved filters; it is part of `corral.store.tables`."""

from __future__ import annotations

from sqlalchemy import Column, MetaData, Table, Text


def filter_tables(metadata: MetaData) -> Table:
    """The filters of the list of jobs that people saved under names."""
    return Table(
        "saved_filters",
        metadata,
        Column("user", Text, primary_key=True),
        Column("name", Text, primary_key=True),
        Column("filter", Text, nullable=False),
    )
