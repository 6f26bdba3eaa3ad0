"""Queries for lists and details of jobs, read page by page straight into the API's types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    and_,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
)

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId, job_id
from corral.model.exits import own_phrase
from corral.model.placement import DeviceShare, TaskPlacement
from corral.model.records import (
    JOB_ORDERS,
    ArrayView,
    AttemptRecord,
    EventRecord,
    ExitView,
    JobFilter,
    JobSummary,
    Page,
    ShareView,
    TaskRecord,
    exit_view,
    rfc3339,
    rfc3339_or_none,
)
from corral.model.runs import JobRun, TaskRun
from corral.model.store_writes import JobRecord, StoredFile
from corral.runtime.error_block import sentence
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.paging import after, bounded, read_cursor, write_cursor
from corral.store.tenant_tables import job_names


class _Placed(msgspec.Struct, frozen=True):
    """The part of a task that its rank depends on."""

    placement: TaskPlacement | None = None


_jobs, _runs, _tasks, _files = tables.jobs, tables.job_runs, tables.tasks, tables.job_files
_PARAMETERS: Final = msgspec.json.Decoder(dict[str, str])
ORPHANED: Final = exists().where(tables.orphaned_jobs.c.job == _jobs.c.id).label("orphaned")
"""Column: whether a job's account was deleted."""
_RECORDS: Final = (
    select(_jobs, tables.job_documents.c.doc, _runs.c.run, _runs.c.summary, ORPHANED)
    .join(tables.job_documents, tables.job_documents.c.job == _jobs.c.id)
    .join(_runs, _runs.c.job == _jobs.c.id)
)
"""The rows that `job_record` reads."""
_BY_ID: Final = _RECORDS.where(_jobs.c.id == bindparam("ref"))
_RUN: Final = msgspec.json.Decoder(JobRun)
_SUMMARY: Final = msgspec.json.Decoder(JobSummary)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_PLACED: Final = msgspec.json.Decoder(_Placed)
_ID_SLACK: Final = 60.0
"""Seconds by which an id's time may be later than its job's creation. An array numbers its jobs by the millisecond."""
_ID_BEGINNING: Final = re.compile(r"[0-9a-z]{4,13}", re.ASCII)
_DATA: Final = msgspec.json.Decoder(dict[str, Any])
_INDEXES: Final = msgspec.json.Decoder(tuple[int, ...])
_PORTS: Final = msgspec.json.Decoder(dict[str, tuple[int, ...]])

_ORDERS: Final[dict[str, tuple[list[tuple[Any, bool]], tuple[type, ...]]]] = {
    "newest": ([(_jobs.c.id, True)], (str,)),
    "oldest": ([(_jobs.c.id, False)], (str,)),
    "name": ([(_jobs.c.name, False), (_jobs.c.id, False)], (str, str)),
    "priority": ([(_jobs.c.priority, True), (_jobs.c.id, False)], (int, str)),
    "ended": ([(_jobs.c.ended_at, True), (_jobs.c.id, True)], (float, str)),
}
_AT_ONCE: Final = 500
"""Ids in one query at most."""


class JobViews(Database):
    """Queries about jobs for users."""

    async def list_jobs(self, wanted: JobFilter, *, limit: int = 50, after_cursor: str = "") -> Page[JobSummary]:
        """One page of the jobs that match the filter.

        Raises InvalidInput for an unknown order or a cursor of another list.
        """
        if wanted.order not in JOB_ORDERS:
            raise InvalidInput("bad-order", f"Jobs are ordered by one of {', '.join(JOB_ORDERS)}.")
        columns, kinds = _ORDERS[wanted.order]
        limit = bounded(limit)
        query = select(_jobs.c.id, *(column for column, _ in columns[:-1])).where(*_conditions(wanted, self.dialect))
        key = read_cursor(after_cursor, kinds)
        if key is not None:
            query = query.where(after(columns, key))
        query = query.order_by(*(column.desc() if descending else column for column, descending in columns))

        def run(connection: Connection) -> Page[JobSummary]:
            found = rows(connection, query.limit(limit + 1))
            shown = [row[0] for row in found[:limit]]
            texts = dict(rows(connection, select(_runs.c.job, _runs.c.summary).where(_runs.c.job.in_(shown))))
            last = found[limit - 1] if len(found) > limit else None
            more = write_cursor((*last[1:], last[0])) if last is not None else None
            found_arrays = _arrays(connection, shown) if wanted.arrays else {}
            summaries = [_SUMMARY.decode(texts[job]) for job in shown if job in texts]
            lines = [msgspec.structs.replace(each, array=found_arrays.get(each.id)) for each in summaries]
            return Page(lines if found_arrays else summaries, more)

        return await self.read(run)

    async def job_file(self, job: str) -> StoredFile | None:
        """The file that a job was submitted as; for an array, `job` is its first job."""
        query = select(_files.c.text, _files.c.parameters).where(_files.c.job == job)
        found = await self.read(lambda connection: rows(connection, query))
        return StoredFile(found[0].text, _PARAMETERS.decode(found[0].parameters)) if found else None

    async def find_job(self, ref: str, user: str | None = None) -> JobRecord | None:
        """The job that `ref` names: an id, `user~name`, or the name of `user`'s latest job. Live jobs come first.

        A job in a dialect is also found by the name that it was submitted under.
        """
        ref = ref.replace("\0", "")
        owner, tilde, name = ref.partition("~")
        wanted, whose = (name, owner) if tilde else (ref, user)

        def run(connection: Connection) -> JobRecord | None:
            row = None if tilde else connection.execute(_BY_ID, {"ref": ref}).first()
            for question in () if row is not None else _by_name(whose is not None):
                row = row or connection.execute(question, {"wanted": wanted, "whose": whose}).first()
            return None if row is None else job_record(row)

        return await self.read(run)

    async def jobs_by_id(self, ids: Sequence[str]) -> dict[str, JobRecord]:
        """Jobs by id; ids without a job are left out."""

        def run(connection: Connection) -> dict[str, JobRecord]:
            parts = (ids[begin : begin + _AT_ONCE] for begin in range(0, len(ids), _AT_ONCE))
            return {
                row.id: job_record(row)
                for some in parts
                for row in rows(connection, _RECORDS.where(_jobs.c.id.in_(some)))
            }

        return await self.read(run)

    async def names_of_jobs(self, ids: Sequence[str]) -> dict[str, str]:
        """Names of jobs by id; ids without a job are left out."""

        def run(connection: Connection) -> dict[str, str]:
            parts = (ids[begin : begin + _AT_ONCE] for begin in range(0, len(ids), _AT_ONCE))
            query = select(_jobs.c.id, _jobs.c.name)
            return {row.id: row.name for some in parts for row in rows(connection, query.where(_jobs.c.id.in_(some)))}

        return await self.read(run)

    async def owner_of(self, job: str) -> str | None:
        """The user whose job it is; None when the job does not exist."""
        return await self.read(
            lambda connection: connection.execute(select(_jobs.c.user).where(_jobs.c.id == job)).scalar()
        )

    async def standing_of(self, job: str) -> tuple[str, bool] | None:
        """The user whose job it is, and whether it is live; None when the job does not exist."""
        query = select(_jobs.c.user, _jobs.c.live).where(_jobs.c.id == job)
        found = await self.read(lambda connection: connection.execute(query).first())
        return (found.user, found.live) if found is not None else None

    async def children(self, parent: str) -> list[JobSummary]:
        """The jobs of an array, in order."""
        query = select(_runs.c.summary).join(_jobs, _jobs.c.id == _runs.c.job).where(_jobs.c.array_parent == parent)
        found = await self.read(lambda connection: rows(connection, query.order_by(_jobs.c.id)))
        return [_SUMMARY.decode(row.summary) for row in found]

    async def count_jobs(self) -> dict[str, dict[str, int]]:
        """Numbers of jobs by queue and phase."""
        query = select(_jobs.c.queue, _jobs.c.phase, func.count()).group_by(_jobs.c.queue, _jobs.c.phase)
        counts: dict[str, dict[str, int]] = {}
        for queue, phase, count in await self.read(lambda connection: rows(connection, query)):
            counts.setdefault(queue, {})[phase] = count
        return counts

    async def job_tasks(
        self, job: str, *, role: str = "", states: tuple[str, ...] = (), limit: int = 100, after_cursor: str = ""
    ) -> Page[TaskRecord]:
        """One page of a job's tasks, by role and index."""
        order: list[tuple[ColumnElement[Any], bool]] = [(_tasks.c.role, False), (_tasks.c.index, False)]
        query = select(_tasks.c.run).where(_tasks.c.job == job).order_by(_tasks.c.role, _tasks.c.index)
        if role:
            query = query.where(_tasks.c.role == role)
        if states:
            query = query.where(_tasks.c.state.in_(states))
        key = read_cursor(after_cursor, (str, int))
        if key is not None:
            query = query.where(after(order, key))

        def run(connection: Connection) -> Page[TaskRecord]:
            found = [_TASK.decode(text) for (text,) in connection.execute(query.limit(limit + 1))]
            more = write_cursor(tuple(found[limit - 1].key)) if len(found) > limit else None
            return Page([task_record(task) for task in found[:limit]], more)

        return await self.read(run)

    async def task(self, job: str, role: str, index: int) -> TaskRun | None:
        """One task of a job's current attempt; None when it does not exist."""
        query = select(_tasks.c.run).where(_tasks.c.job == job, _tasks.c.role == role, _tasks.c.index == index)
        text = await self.read(lambda connection: connection.execute(query).scalar())
        return None if text is None else _TASK.decode(text)

    async def job_attempts(
        self, job: str, role: str, index: int, *, limit: int = 100, after_cursor: str = ""
    ) -> Page[AttemptRecord]:
        """One page of a task's attempts, newest first."""
        table = tables.attempts
        order: list[tuple[ColumnElement[Any], bool]] = [(table.c.job_attempt, True), (table.c.task_attempt, True)]
        query = select(table).where(table.c.job == job, table.c.role == role, table.c.index == index)
        key = read_cursor(after_cursor, (int, int))
        if key is not None:
            query = query.where(after(order, key))
        query = query.order_by(table.c.job_attempt.desc(), table.c.task_attempt.desc()).limit(bounded(limit) + 1)
        found = await self.read(lambda connection: rows(connection, query))
        last = found[bounded(limit) - 1] if len(found) > bounded(limit) else None
        more = write_cursor((last.job_attempt, last.task_attempt)) if last is not None else None
        return Page([_attempt_record(row) for row in found[: bounded(limit)]], more)

    async def job_members(self, job: str) -> list[TaskPlacement]:
        """The current or last placements of all tasks of a job, in topology order."""
        return (await self.tasks_and_members(job, 0))[1]

    async def tasks_and_members(self, job: str, limit: int) -> tuple[list[TaskRecord], list[TaskPlacement]]:
        """The first `limit` tasks of a job by role and index, and the result of `job_members`, in one query."""
        query = select(_tasks.c.run).where(_tasks.c.job == job).order_by(_tasks.c.role, _tasks.c.index)

        def run(connection: Connection) -> tuple[list[TaskRecord], list[TaskPlacement]]:
            found = [text for (text,) in connection.execute(query)]
            shown = [_TASK.decode(text) for text in found[:limit]]
            placed = [task.placement for task in shown]
            placed += [_PLACED.decode(text).placement for text in found[limit:]]
            members = sorted((place for place in placed if place is not None), key=lambda place: place.order)
            return [task_record(task) for task in shown], members

        return await self.read(run)

    async def attempt_ended(self, attempt: str) -> bool | None:
        """Whether an attempt has ended; None when the attempt is unknown."""
        query = select(tables.attempts.c.ended_at).where(tables.attempts.c.id == attempt)
        row = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else row.ended_at is not None

    async def events(self, after_seq: int, limit: int = 500, job: str | None = None) -> list[EventRecord]:
        """Events with a higher seq than `after_seq`, in commit order."""
        table = tables.events
        query = select(table).where(table.c.seq > after_seq).order_by(table.c.seq).limit(bounded(limit))
        if job is not None:
            query = query.where(table.c.job == job)
        return [event_record(row) for row in await self.read(lambda connection: rows(connection, query))]

    async def task_reports(self, job: str, kind: str, job_attempt: int) -> list[EventRecord]:
        """What the runtimes of an attempt's tasks reported of one kind, in commit order.

        All of it: the reports of a job are bounded (`corral.service.jobs.runtime_calls`).
        """
        table = tables.events
        of_attempt = table.c.attempt.startswith(f"{job}.{job_attempt}.", autoescape=True)
        query = select(table).where(table.c.job == job, table.c.kind == f"runtime.{kind}", of_attempt)
        found = await self.read(lambda connection: rows(connection, query.order_by(table.c.seq)))
        return [event_record(row) for row in found]

    async def last_seq(self) -> int:
        """The seq of the last committed event; 0 when there is none."""
        query = select(tables.counters.c.value).where(tables.counters.c.name == "event")
        return int(await self.read(lambda connection: connection.execute(query).scalar_one()))


def _by_name(of_a_user: bool) -> Iterator[Select[Any]]:
    """The queries, one after the other, for the job that has the name `wanted`, of the user `whose` if asked for."""
    latest = (_jobs.c.live.desc(), _jobs.c.id.desc())
    named = _RECORDS.order_by(*latest).limit(1)
    of_corral = named.where(_jobs.c.name == bindparam("wanted"))
    yield of_corral.where(_jobs.c.user == bindparam("whose")) if of_a_user else of_corral
    for names in job_names().values() if of_a_user else ():
        table = names.table
        theirs = named.join(table, table.c.job == _jobs.c.id)
        yield theirs.where(table.c.user == bindparam("whose"), table.c.name == bindparam("wanted"))


def _arrays(connection: Connection, shown: Sequence[str]) -> dict[str, ArrayView]:
    """The arrays of those jobs that belong to one, by job id."""
    mine = select(_jobs.c.id, _jobs.c.array_parent, _jobs.c.name).where(
        _jobs.c.id.in_(shown), _jobs.c.array_parent != ""
    )
    parents = {row.id: (row.array_parent, row.name.rpartition("-")[0]) for row in rows(connection, mine)}
    counted = select(_jobs.c.array_parent, _jobs.c.phase, func.count()).where(
        _jobs.c.array_parent.in_({parent for parent, _ in parents.values()})
    )
    states: dict[str, dict[str, int]] = {}
    for parent, phase, count in rows(connection, counted.group_by(_jobs.c.array_parent, _jobs.c.phase)):
        states.setdefault(parent, {})[phase] = count
    return {job: ArrayView(name, f"array:{parent}", states[parent]) for job, (parent, name) in parents.items()}


def _first_of_its_array(wanted: JobFilter, dialect: str) -> ColumnElement[bool]:
    """Condition: jobs of no array, and the first job of each array that matches the filter."""
    mate = _jobs.alias("mate")
    earlier = [mate.c.array_parent == _jobs.c.array_parent, mate.c.id < _jobs.c.id]
    if wanted.phases:
        earlier.append(mate.c.phase.in_(wanted.phases))
    if wanted.search:
        earlier.append(_matches(wanted.search, dialect, mate))
    earlier += _priorities(wanted, mate)
    if wanted.order == "ended":
        earlier.append(mate.c.ended_at.is_not(None))
    return or_(_jobs.c.array_parent == "", ~exists().where(*earlier))


def _priorities(wanted: JobFilter, jobs: FromClause = _jobs) -> list[ColumnElement[bool]]:
    """Conditions: jobs whose priority is within the bounds."""
    found: list[ColumnElement[bool]] = []
    if wanted.min_priority is not None:
        found.append(jobs.c.priority >= wanted.min_priority)
    if wanted.max_priority is not None:
        found.append(jobs.c.priority <= wanted.max_priority)
    return found


def _matches(search: str, dialect: str, jobs: FromClause = _jobs) -> ColumnElement[bool]:
    """Condition: jobs whose name contains the text in any case, or whose id begins with it.

    SQLite's LIKE ignores the case of ASCII letters already. Lowering every name first would take three times as long.
    """
    pattern = "%" + re.sub(r"([%_\\\\])", r"\\\1", search) + "%"
    like = jobs.c.name.like if dialect == "sqlite" else jobs.c.name.ilike
    named = like(pattern, escape="\\")
    if not _ID_BEGINNING.fullmatch(search):
        return named
    if dialect != "sqlite":
        return or_(named, jobs.c.id.startswith(search))
    return or_(named, and_(jobs.c.id >= search, jobs.c.id < search + "~"))


def _has_label(name: str, value: str, dialect: str) -> ColumnElement[bool]:
    """Condition: jobs whose document has a label. Read from the documents, so jobs stored by any version are found."""
    doc = tables.job_documents.c.doc
    if dialect == "sqlite":
        found = func.json_extract(doc, f'$.metadata.labels."{name}"')
    else:
        found = func.json_extract_path_text(cast(doc, JSON), "metadata", "labels", name)
    return exists().where(tables.job_documents.c.job == _jobs.c.id, found == value)


def _id_at(seconds: float) -> str:
    """The smallest id that a job created at that time can have.

    Ids begin with the time, so a range of times is also a range of ids.
    """
    return job_id(max(0, int(seconds * 1000)), 0)


def _conditions(wanted: JobFilter, dialect: str) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for column, values in (
        (_jobs.c.phase, wanted.phases),
        (_jobs.c.user, wanted.users),
        (_jobs.c.queue, wanted.queues),
    ):
        if values:
            conditions.append(column == values[0] if len(values) == 1 else column.in_(values))
    if wanted.arrays:
        conditions.append(_first_of_its_array(wanted, dialect))
    if wanted.order == "ended":
        conditions.append(_jobs.c.ended_at.is_not(None))
    if wanted.job_type:
        conditions.append(_jobs.c.job_type == wanted.job_type)
    if wanted.search:
        conditions.append(_matches(wanted.search, dialect))
    if wanted.tag:
        conditions.append(_jobs.c.id.in_(select(tables.job_tags.c.job).where(tables.job_tags.c.tag == wanted.tag)))
    conditions += _priorities(wanted)
    conditions += [_has_label(name, value, dialect) for name, value in wanted.labels]
    if wanted.created_after is not None:
        conditions.append(_jobs.c.created_at > wanted.created_after)
        conditions.append(_jobs.c.id >= _id_at(wanted.created_after))
    if wanted.created_before is not None:
        conditions.append(_jobs.c.created_at < wanted.created_before)
        conditions.append(_jobs.c.id < _id_at(wanted.created_before + _ID_SLACK))
    return conditions


def task_record(task: TaskRun) -> TaskRecord:
    """Convert a task to the API's form."""
    placement = task.placement
    return TaskRecord(
        role=task.role,
        index=task.index,
        state=str(task.state),
        attempt=task.attempt,
        node=placement.node if placement else "",
        devices=placement.devices if placement else (),
        host=task.host,
        ports=task.ports,
        started_at=rfc3339_or_none(task.started_at),
        ended_at=rfc3339_or_none(task.ended_at),
        exit=exit_view(task.completion),
        retries=task.retries.total,
        counted_retries=task.retries.accountable,
        retry_at=rfc3339_or_none(task.retry_at),
        created_at=rfc3339(task.created_at),
        share=_share(placement.share) if placement and placement.share else None,
    )


def _share(share: DeviceShare) -> ShareView:
    return ShareView(share.compute / 10_000, share.memory / 10_000)


def job_record(row: Any) -> JobRecord:
    """The stored job in a row of all its columns."""
    return JobRecord(
        id=JobId(row.id),
        name=row.name,
        user=row.user,
        queue=row.queue,
        priority=row.priority,
        job_type=row.job_type,
        phase=row.phase,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        revision=row.revision,
        doc=row.doc,
        run=_RUN.decode(row.run),
        summary=_SUMMARY.decode(row.summary),
        live=row.live,
        array_parent=row.array_parent,
        orphaned=bool(row.orphaned),
    )


def _attempt_record(row: Any) -> AttemptRecord:
    phrase = own_phrase(row.code, row.phrase)
    ended = None if row.code is None else ExitView(row.code, phrase, row.exit_class, sentence(row.diagnostics))
    return AttemptRecord(
        id=row.id,
        job_attempt=row.job_attempt,
        role=row.role,
        index=row.index,
        attempt=row.task_attempt,
        node=row.node,
        devices=_INDEXES.decode(row.devices),
        host=row.host,
        ports=_PORTS.decode(row.ports),
        started_at=rfc3339_or_none(row.started_at),
        ended_at=rfc3339_or_none(row.ended_at),
        exit=ended,
    )


def event_record(row: Any) -> EventRecord:
    """Convert an event to the API's form."""
    return EventRecord(
        seq=row.seq,
        job=row.job,
        at=rfc3339(row.at),
        kind=row.kind,
        actor=row.actor,
        message=row.message,
        role=row.role,
        index=row.index,
        attempt=row.attempt,
        data=_DATA.decode(row.data) if row.data != "{}" else {},
    )
