"""List and find jobs for OpenPAI's clients, which list thousands at once.

A line of the list is built from columns and two small JSON texts; a job's document is never read. Filters and order use
OpenPAI's states and names, so each of them is one SQL expression here. Jobs submitted in another language are listed
too, under their own names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, case, cast, func, literal, or_, select
from sqlalchemy.types import JSON, Float

from corral.compat.openpai.language.names import JOB_TYPE
from corral.compat.openpai.records.terms import STOPS, OpenPaiFilter, OpenPaiListing
from corral.model.outcome import Completion
from corral.model.records import EventRecord
from corral.model.runs import Retries, TaskRun
from corral.model.store_writes import JobRecord
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.job_views import ORPHANED, event_record, job_record

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


_jobs, _runs, _pai, _tags = tables.jobs, tables.job_runs, tables.openpai_jobs, tables.job_tags
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


class OpenPaiViews(Database):
    """Jobs as OpenPAI's clients list and find them."""

    async def openpai_jobs(self, wanted: OpenPaiFilter) -> Listed:
        """A part of the list of all jobs."""
        dialect = self.dialect
        conditions = _conditions(wanted, dialect)
        joined = _jobs.outerjoin(_pai, _pai.c.job == _jobs.c.id)
        found = _columns().select_from(joined.join(_runs, _runs.c.job == _jobs.c.id)).where(*conditions)
        found = found.order_by(*_order(wanted, dialect)).offset(wanted.offset).limit(wanted.limit)
        counted = select(func.count()).select_from(joined.join(_runs, _runs.c.job == _jobs.c.id)).where(*conditions)
        if not conditions:
            counted = select(func.count()).select_from(_jobs)

        def run(connection: Connection) -> Listed:
            shown = rows(connection, found)
            tags = _tags_of(connection, [row[0] for row in shown])
            total = connection.execute(counted).scalar_one() if wanted.count else None
            return Listed([_listed(row, tags.get(row[0], ())) for row in shown], total)

        return await self.read(run)

    async def openpai_job(self, user: str, name: str) -> tuple[JobRecord, OpenPaiListing | None] | None:
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

        def run(connection: Connection) -> tuple[JobRecord, OpenPaiListing | None] | None:
            row = connection.execute(of_openpai).first() or connection.execute(of_others).first()
            if row is None:
                return None
            listing = None if row.pai_name is None else OpenPaiListing(row.pai_name, row.job_priority, row.roles)
            return job_record(row), listing

        return await self.read(run)

    async def tags_of(self, job: str) -> tuple[str, ...]:
        """The current tags of one job."""
        return (await self.read(lambda connection: _tags_of(connection, [job]))).get(job, ())

    async def tasks_of(self, job: str) -> list[TaskRun]:
        """All tasks of a job's current attempt, by role and index."""
        query = select(_tasks.c.run).where(_tasks.c.job == job).order_by(_tasks.c.role, _tasks.c.index)
        return await self.read(lambda connection: [_TASK.decode(text) for (text,) in connection.execute(query)])

    async def attempts_of(
        self, job: str, job_attempt: int, *, role: str | None = None, index: int | None = None
    ) -> list[Any]:
        """The attempts of the tasks of one job attempt, by role, index and number."""
        query = select(_attempts).where(_attempts.c.job == job, _attempts.c.job_attempt == job_attempt)
        if role is not None:
            query = query.where(_attempts.c.role == role, _attempts.c.index == index)
        query = query.order_by(_attempts.c.role, _attempts.c.index, _attempts.c.task_attempt)
        return await self.read(lambda connection: rows(connection, query))

    async def attempt_ends(self, job: str) -> dict[int, float]:
        """By job attempt, the time at which its last task ended."""
        query = (
            select(_attempts.c.job_attempt, func.max(_attempts.c.ended_at))
            .where(_attempts.c.job == job, _attempts.c.ended_at.is_not(None))
            .group_by(_attempts.c.job_attempt)
        )
        found = await self.read(lambda connection: rows(connection, query))
        return {row[0]: row[1] for row in found}

    async def events_of(self, job: str, *, kinds: tuple[str, ...] = ()) -> list[EventRecord]:
        """The last 10,000 events of a job (of some kinds), newest first."""
        query = select(_events).where(_events.c.job == job).order_by(_events.c.seq.desc()).limit(_MOST_EVENTS)
        if kinds:
            query = query.where(_events.c.kind.in_(kinds))
        return [event_record(row) for row in await self.read(lambda connection: rows(connection, query))]


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


def _tags_of(connection: Connection, jobs: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tags of some jobs by id, in alphabetic order."""
    found: dict[str, list[str]] = defaultdict(list)
    for begin in range(0, len(jobs), _AT_ONCE):
        query = select(_tags.c.job, _tags.c.tag).where(_tags.c.job.in_(jobs[begin : begin + _AT_ONCE]))
        for job, tag in connection.execute(query):
            found[job].append(tag)
    return {job: tuple(sorted(tags)) for job, tags in found.items()}


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
