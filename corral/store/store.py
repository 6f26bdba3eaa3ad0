"""The store: one class with all reads and writes, and the function that opens it."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy import Engine
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from corral.kernel.clock import Clock
from corral.store.alert_history import AlertHistory
from corral.store.alert_records import AlertRecords
from corral.store.attempt_views import AttemptViews
from corral.store.audit import Audit
from corral.store.backup import Backups
from corral.store.benchmark_records import BenchmarkRecords
from corral.store.budget_records import BudgetRecords
from corral.store.budget_rulings import BudgetRulings
from corral.store.call_deadlines import CONTROL_SECONDS, FRONT_SECONDS, TOOL_SECONDS, Limits
from corral.store.cluster_views import ClusterViews
from corral.store.compile_caches import CompileCacheRecords
from corral.store.connections import check_folder, parse_url, reader_engine, wait_for_the_lock, writer_engine
from corral.store.control_writes import ControlWrites
from corral.store.database_errors import refusal
from corral.store.device_stays import DeviceStays
from corral.store.documents import DocumentStore
from corral.store.efficiency_records import EfficiencyRecords
from corral.store.estimate_records import EstimateRecords
from corral.store.fairness_records import FairnessRecords
from corral.store.groups import Groups
from corral.store.hang_records import HangRecords
from corral.store.health_records import HealthRecords
from corral.store.idle_records import IdleRecords
from corral.store.job_rows import JobRows
from corral.store.job_views import JobViews
from corral.store.job_writes import JobWrites
from corral.store.leadership import Leadership
from corral.store.measured_use import MeasuredUse
from corral.store.notification_channels import NotificationChannels
from corral.store.notification_outbox import NotificationOutbox
from corral.store.object_links import Objects
from corral.store.openid_identities import Identities
from corral.store.preemption_records import PreemptionRecords
from corral.store.profile_records import ProfileRecords
from corral.store.question_records import QuestionRecords
from corral.store.queue_waits import QueueWaits
from corral.store.retention import INCREMENTAL, Retention
from corral.store.saved_filters import SavedFilters
from corral.store.schema import bring_up
from corral.store.server_events import ServerEvents
from corral.store.submission_rate import Submissions
from corral.store.usage_records import UsageRecords
from corral.store.wakeup import NotifyWakeup, NoWakeup, SocketWakeup, Wakeup

_SECONDS: Final = {"front": FRONT_SECONDS, "control": CONTROL_SECONDS}
_REBUILT_BYTES: Final = 256 * 1024**2
"""Bytes; a larger file of an earlier version is not rewritten, because that would delay the start too long."""
_OPENING_SECONDS: Final = 60.0
"""Seconds that a start waits for the other process, whose first commit may wait for gigabytes written to disk."""


class Store(
    JobWrites,
    JobViews,
    AttemptViews,
    ControlWrites,
    Leadership,
    Groups,
    Identities,
    ClusterViews,
    DocumentStore,
    Audit,
    Retention,
    Backups,
    PreemptionRecords,
    Objects,
    JobRows,
    ServerEvents,
    Submissions,
    EstimateRecords,
    ProfileRecords,
    UsageRecords,
    DeviceStays,
    MeasuredUse,
    EfficiencyRecords,
    BudgetRecords,
    BudgetRulings,
    FairnessRecords,
    QueueWaits,
    HealthRecords,
    NotificationChannels,
    NotificationOutbox,
    AlertRecords,
    AlertHistory,
    IdleRecords,
    HangRecords,
    QuestionRecords,
    CompileCacheRecords,
    SavedFilters,
    BenchmarkRecords,
):
    """The open store."""

    def begin_to_serve(self, role: str) -> None:
        """Keep the short deadlines of `role` (`front`, `control`): from now on callers wait for answers."""
        self.limits.seconds = _SECONDS[role]
        self.limits.waits_for_disk = role == "front"


async def open_store(
    url: str, *, clock: Clock, create: bool = True, run_folder: Path | None = None, role: str = ""
) -> Store:
    """Open the store at `url`, creating or migrating its tables.

    `run_folder` is the folder of the wake-up sockets (SQLite). `role` (`front`, `control`) is the role that listens, ""
    for none. Calls may take a minute until `begin_to_serve`.

    Raises StoreRefused and Unavailable with the codes of `corral.store.database_errors`, InvalidInput for the URL.
    """
    parsed = parse_url(url)
    limits = Limits(TOOL_SECONDS)
    writer = await asyncio.get_running_loop().run_in_executor(None, _prepare, parsed, create, limits if role else None)
    wakeup: Wakeup = NoWakeup()
    if writer.dialect.name == "postgresql":
        wakeup = NotifyWakeup(parsed.set(drivername="postgresql").render_as_string(hide_password=False), role)
    elif run_folder is not None:
        wakeup = SocketWakeup(run_folder, role)
    readers = reader_engine(parsed, patience=limits.lock_seconds if role else None)
    return Store(writer, readers, wakeup, clock, limits)


def _prepare(url: URL, create: bool, limits: Limits | None) -> Engine:
    engine = writer_engine(url, patience=lambda: _OPENING_SECONDS)
    try:
        if engine.dialect.name == "sqlite":
            file = Path(str(url.database))
            check_folder(file)
            _prepare_sqlite(file, create)
        bring_up(engine, create=create)
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise refusal(error) from error
    finally:
        engine.dispose()
    return writer_engine(url, patience=limits.lock_seconds if limits is not None else None)


def _prepare_sqlite(file: Path, create: bool) -> None:
    if not file.exists() and create:
        file.touch(mode=0o600)
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=_OPENING_SECONDS)
    try:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
        wait_for_the_lock(lambda: connection.execute("PRAGMA journal_mode=WAL"), _OPENING_SECONDS)
        (kept,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        if kept != INCREMENTAL and file.stat().st_size <= _REBUILT_BYTES:
            wait_for_the_lock(lambda: _rebuild(connection), _OPENING_SECONDS)
    finally:
        connection.close()


def _rebuild(connection: sqlite3.Connection) -> None:
    """Rewrite a file of an earlier version, so that it can release free pages from now on."""
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("VACUUM")
