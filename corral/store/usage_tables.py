"""The tables of who used how much, beside the attempts themselves."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Double, Index, Integer, MetaData, Table, Text

_ASKED: Final = ("device_seconds", "lost_device_seconds", "task_seconds", "cpu_seconds", "memory_gib_seconds")
_MEASURED: Final = (
    "measured_task_seconds", "used_cpu_seconds", "used_memory_gib_seconds", "energy_joules", "measured_device_seconds",
    "used_device_seconds", "idle_device_seconds",
)  # fmt: skip
_OF_DEVICES: Final = ("device_seconds", "used_device_seconds", "idle_device_seconds")


def usage_tables(metadata: MetaData) -> tuple[Table, Table]:
    """Declare the tables: what each attempt was measured to use, and the use of removed jobs by day.

    The former is no part of the rows of attempts, because control writes these as a whole.
    """
    attempt_use = Table(
        "attempt_use",
        metadata,
        Column("attempt", Text, primary_key=True),
        Column("job", Text, nullable=False),
        Column("measured_seconds", Double, nullable=False),
        Column("cpu_seconds", Double, nullable=False),
        Column("memory_gib_seconds", Double, nullable=False),
        Column("joules", Double, nullable=False),
        *(Column(name, Double, nullable=False, server_default="0") for name in _OF_DEVICES),
        Index("attempt_use_by_job", "job"),
    )
    usage_days = Table(
        "usage_days",
        metadata,
        Column("day", Integer, primary_key=True, autoincrement=False),
        Column("user", Text, primary_key=True),
        Column("queue", Text, primary_key=True),
        Column("model", Text, primary_key=True),
        *(Column(name, Double, nullable=False) for name in _ASKED),
        *(Column(name, Double, nullable=False, server_default="0") for name in _MEASURED),
    )
    return attempt_use, usage_days
