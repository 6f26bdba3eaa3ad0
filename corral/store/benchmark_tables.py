"""The tables of kept benchmark results; they are part of `corral.store.tables`."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text


def benchmark_tables(metadata: MetaData) -> tuple[Table, Table]:
    """The runs of benchmark suites, and what each measured on each node."""
    runs = Table(
        "benchmark_runs",
        metadata,
        Column("id", Text, primary_key=True),
        Column("at", Double, nullable=False),
        Column("user", Text, nullable=False),
        Column("suite", Text, nullable=False),
        Column("nodes", Integer, nullable=False),
        Column("figures", Integer, nullable=False),
        Column("problems", Text, nullable=False),
        Index("benchmark_runs_by_time", "at"),
    )
    figures = Table(
        "benchmark_figures",
        metadata,
        Column("run", Text, primary_key=True),
        Column("node", Text, primary_key=True),
        Column("metric", Text, primary_key=True),
        Column("rank", Integer, primary_key=True, autoincrement=False),
        Column("sku", Text, nullable=False),
        Column("at", Double, nullable=False),
        Column("value", Double, nullable=False),
        Index("benchmark_figures_by_metric", "metric", "at"),
        Index("benchmark_figures_by_node", "node", "at"),
    )
    return runs, figures
