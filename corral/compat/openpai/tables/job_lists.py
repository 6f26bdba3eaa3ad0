"""List and find jobs for OpenPAI's clients, which list thousands at once.

A line of the list is built from columns and two small JSON texts; a job's document is never read. Filters and order use
OpenPAI's states and names, so each of them is one SQL expression here. Jobs submitted in another language are listed
too, under their own names.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, case, cast, func, literal, or_, select
from sqlalchemy.types import JSON, Float

from corral.compat.openpai.language.names import JOB_TYPE
from corral.compat.openpai.records.terms import STOPS, OpenPaiFilter
from corral.compat.openpai.tables.listing import Listing
from corral.compat.openpai.tables.schema import submitted_jobs
from corral.model.outcome import Completion
from corral.model.runs import Retries, TaskRun
from corral.model.store_writes import JobRecord
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.job_rows import tags_of_jobs
from corral.store.job_views import ORPHANED, job_record

_AT_ONCE: Final = 500
"""Ids in one query at most."""
_MOST_EVENTS: Final = 10_000


class RunGlance(msgspec.Struct, frozen=True):
    """The part of a job's run that a line of the list needs."""

    state: str
    attempt: int = 0
    retries: Retries = Retries()
    task_retries: int = 0
    yield_retries: int = 0
    stop_requested: bool = False
    ended_at: float | None = None
    wake_at: float | None = None
    completion: Completion | None = None
    roles: dict[str, msgspec.Raw] = {}


class _Tasks(msgspec.Struct, frozen=True):
    total: int = 0


class SummaryGlance(msgspec.Struct, frozen=True):
    """The part of a job's summary that a line of the list needs."""

    tasks: _Tasks = _Tasks()
    devices: float = 0


class ListedJob(msgspec.Struct, frozen=True):
    """One job of the list."""

    name: str
    user: str
    queue: str
    phase: str
    created_at: float
    started_at: float | None
    run: RunGlance
    summary: SummaryGlance
    tags: tuple[str, ...]
    job_priority: str | None
    roles: int


class Listed(msgspec.Struct, frozen=True):
    """A part of the list; `total` counts all matching jobs, when the filter asked for it."""

    jobs: list[ListedJob]
    total: int | None = None


_jobs, _runs, _pai, _tags = tables.jobs, tables.job_runs, submitted_jobs, tables.job_tags
_tasks, _attempts, _events = tables.tasks, tables.attempts, tables.events
_RUN: Final = msgspec.json.Decoder(RunGlance)
_SUMMARY: Final = msgspec.json.Decoder(SummaryGlance)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_NAME: Final = func.coalesce(_pai.c.name, _jobs.c.name)
_ENDED_STATES: Final = {"succeeded": "SUCCEEDED", "failed": "FAILED", "stopped": "STOPPED"}
_PHASES_OF: Final = {
    "WAITING": ("waiting", "starting"),
    "RUNNING": ("running", "stopping", "waiting"),
    "STOPPING": ("stopping", "waiting"),
    "STOPPED": ("stopped",),
    "SUCCEEDED": ("succeeded",),
    "FAILED": ("failed",),
}
"""The phases that a job in an OpenPAI state can have, for a search by index."""


class OpenPaiLists:
    """Jobs as OpenPAI's clients list and find them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, wanted: OpenPaiFilter) -> Listed:
        """A part of the list of all jobs."""
        dialect = self._database.dialect
        conditions = _conditions(wanted, dialect)
        joined = _jobs.outerjoin(_pai, _pai.c.job == _jobs.c.id)
        found = _columns().select_from(joined.join(_runs, _runs.c.job == _jobs.c.id)).where(*conditions)
        found = found.order_by(*_order(wanted, dialect)).offset(wanted.offset).limit(wanted.limit)
        counted = select(func.count()).select_from(joined.join(_runs, _runs.c.job == _jobs.c.id)).where(*conditions)
        if not conditions:
            counted = select(func.count()).select_from(_jobs)

        def run(connection: Connection) -> Listed:
            shown = rows(connection, found)
            tags = tags_of_jobs(connection, [row[0] for row in shown])
            total = connection.execute(counted).scalar_one() if wanted.count else None
            return Listed([_listed(row, tags.get(row[0], ())) for row in shown], total)

        return await self._database.read(run)

    async def find(self, user: str, name: str) -> tuple[JobRecord, Listing | None] | None:
        """The job submitted under that name; OpenPAI jobs come before others, then live ones first."""
        found = (
            select(_jobs, tables.job_documents.c.doc, _runs.c.run, _runs.c.summary, ORPHANED)
            .add_columns(_pai.c.name.label("pai_name"), _pai.c.job_priority, _pai.c.roles)
            .join(tables.job_documents, tables.job_documents.c.job == _jobs.c.id)
            .join(_runs, _runs.c.job == _jobs.c.id)
            .outerjoin(_pai, _pai.c.job == _jobs.c.id)
            .order_by(_jobs.c.live.desc(), _jobs.c.id.desc())
            .limit(1)
        )
        user, name = user.replace("\0", ""), name.replace("\0", "")
        of_openpai = found.where(_pai.c.user == user, _pai.c.name == name)
        of_others = found.where(_jobs.c.user == user, _jobs.c.name == name, _jobs.c.job_type != JOB_TYPE)

        def run(connection: Connection) -> tuple[JobRecord, Listing | None] | None:
            row = connection.execute(of_openpai).first() or connection.execute(of_others).first()
            if row is None:
                return None
            listing = None if row.pai_name is None else Listing(row.pai_name, row.job_priority, row.roles)
            return job_record(row), listing

        return await self._database.read(run)


def _columns() -> Select[Any]:
    return select(
        _jobs.c.id,
        _NAME,
        _jobs.c.user,
        _jobs.c.queue,
        _jobs.c.phase,
        _jobs.c.created_at,
        _jobs.c.started_at,
        _runs.c.run,
        _runs.c.summary,
        _pai.c.job_priority,
        _pai.c.roles,
    )


def _listed(row: Any, tags: tuple[str, ...]) -> ListedJob:
    _, name, user, queue, phase, created_at, started_at, run_text, summary, priority, roles = row
    run = _RUN.decode(run_text)
    roles = roles or len(run.roles) or 1
    return ListedJob(
        name, user, queue, phase, created_at, started_at, run, _SUMMARY.decode(summary), tags, priority, roles
    )


def _inside(column: Any, dialect: str, *path: str) -> ColumnElement[Any]:
    """A value inside a column of JSON text, as text (on SQLite with its JSON type)."""
    if dialect == "sqlite":
        return func.json_extract(column, "$." + ".".join(path))
    return func.json_extract_path_text(cast(column, JSON), *path)


def _number(column: Any, dialect: str, *path: str) -> ColumnElement[Any]:
    return cast(_inside(column, dialect, *path), Float)


def _state(dialect: str) -> ColumnElement[str]:
    """The OpenPAI state of a job. The run is read only where the phase does not decide it."""
    code = _number(_runs.c.run, dialect, "completion", "code")
    ending = case((code.in_(STOPS), literal("STOPPING")), else_=literal("RUNNING"))
    between = _inside(_runs.c.run, dialect, "state") == "attempt-completed"
    return case(
        *((_jobs.c.phase == phase, literal(word)) for phase, word in _ENDED_STATES.items()),
        (_jobs.c.phase == "running", literal("RUNNING")),
        (_jobs.c.phase == "starting", literal("WAITING")),
        (or_(_jobs.c.phase == "stopping", between), ending),
        else_=literal("WAITING"),
    )


def _conditions(wanted: OpenPaiFilter, dialect: str) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if wanted.users:
        conditions.append(_jobs.c.user.in_(wanted.users))
    if wanted.queues:
        conditions.append(_jobs.c.queue.in_(wanted.queues))
    if wanted.states:
        phases = {phase for state in wanted.states for phase in _PHASES_OF.get(state, ())}
        conditions.append(and_(_jobs.c.phase.in_(sorted(phases)), _state(dialect).in_(wanted.states)))
    if wanted.keyword:
        place = func.instr if dialect == "sqlite" else func.strpos
        columns = (_NAME, _jobs.c.user, _jobs.c.queue)
        conditions.append(or_(*(place(column, wanted.keyword) > 0 for column in columns)))
    if wanted.name:
        own = and_(_pai.c.job.is_(None), _jobs.c.name == wanted.name)
        conditions.append(or_(_pai.c.name == wanted.name, own))
    if wanted.tags:
        conditions.append(_jobs.c.id.in_(select(_tags.c.job).where(_tags.c.tag.in_(wanted.tags))))
    if wanted.without_tags:
        conditions.append(_jobs.c.id.not_in(select(_tags.c.job).where(_tags.c.tag.in_(wanted.without_tags))))
    if wanted.priorities:
        named = [each for each in wanted.priorities if each is not None]
        either = [_pai.c.job_priority.in_(named)] if named else []
        if None in wanted.priorities:
            either.append(_pai.c.job_priority.is_(None))
        conditions.append(or_(*either))
    return conditions


def _order(wanted: OpenPaiFilter, dialect: str) -> list[ColumnElement[Any]]:
    """The sort keys of the list; null is greater than everything, as in OpenPAI's database."""
    by_id = _jobs.c.id.desc() if wanted.descending else _jobs.c.id.asc()
    if wanted.order == "submissionTime":
        return [by_id]
    keys: dict[str, ColumnElement[Any]] = {
        "jobName": _NAME,
        "username": _jobs.c.user,
        "vc": _jobs.c.queue,
        "retries": _number(_runs.c.run, dialect, "retries", "total")
        + func.coalesce(_number(_runs.c.run, dialect, "task_retries"), 0.0)
        + func.coalesce(_number(_runs.c.run, dialect, "yield_retries"), 0.0),
        "totalTaskNumber": _number(_runs.c.summary, dialect, "tasks", "total"),
        "totalGpuNumber": _number(_runs.c.summary, dialect, "devices"),
        "state": _state(dialect),
        "completionTime": case((~_jobs.c.live, _jobs.c.ended_at), else_=None),
        "jobPriority": _pai.c.job_priority,
    }
    key = keys[wanted.order]
    return [key.desc().nulls_first() if wanted.descending else key.asc().nulls_last(), by_id]
