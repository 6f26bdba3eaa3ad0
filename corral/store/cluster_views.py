"""Nodes, queues, settings, secrets and uploaded code, looked up by name by front and control."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from corral.kernel.errors import TooLarge
from corral.model.accounts import QueueRecord
from corral.model.inventory import Node
from corral.model.queue_ancestors import cache_default, upwards
from corral.model.runs import TaskRun
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.documents import write_queues
from corral.store.rows import encode, put
from corral.store.writer import Transaction

_Amounts = dict[str, str | int | float]


class _Queue(msgspec.Struct, rename="camel"):
    """The fields of a queue's document that every submission checks."""

    closed: bool = False
    members_only: bool = False
    parent: str = ""
    cells: list[msgspec.Raw] | None = None
    pinned_cells: list[msgspec.Raw] | None = None
    limit: _Amounts = {}
    borrowing_limit: _Amounts = {}
    user_limit: _Amounts = {}
    group_limit: _Amounts = {}
    max_priority: int | None = None
    compile_cache: str | None = None

    @property
    def bounds(self) -> bool:
        """Whether the queue limits the resources of its jobs."""
        return bool(self.limit or self.borrowing_limit or self.user_limit or self.group_limit)


_NODE: Final = msgspec.json.Decoder(Node)
_QUEUE: Final = msgspec.json.Decoder(_Queue)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_secrets, _blobs, _settings = tables.secrets, tables.blobs, tables.settings
_BLOB_TOUCH_SECONDS: Final = 3600.0

CONTAINER_RUNTIME: Final = "engine.local.container_runtime"
"""The setting in which control stores the container runtime of this server ("" for none)."""
ADMISSION_SECONDS: Final = 0.5
"""Seconds for which submissions may miss a change of queues, grants, budgets or nodes made by another process."""
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])
_SEEN: Final = select(tables.nodes.c.engine, func.max(tables.nodes.c.seen_at), func.count()).group_by(
    tables.nodes.c.engine
)
_KEPT: Final = select(func.coalesce(func.sum(_blobs.c.size), 0)).where(_blobs.c.user == bindparam("u"))
_NODES: Final = select(tables.nodes.c.doc).order_by(tables.nodes.c.name)
_QUEUES: Final = select(tables.queues.c.name, tables.queues.c.doc).order_by(tables.queues.c.name)
_GRANTS: Final = select(tables.groups.c.queues)
_BUDGETS: Final = select(tables.budgets.c.name).limit(1)
_SETTING: Final = select(_settings.c.value).where(_settings.c.key == bindparam("k"))


def too_much_code(user: str, kept: int, size: int, most: int) -> TooLarge:
    """The error for an upload of `size` bytes by a user who stores `kept` bytes already."""
    return TooLarge(
        "too-much-code",
        f"{user} keeps {kept / 2**20:,.1f} MiB of code here, and may keep {most / 2**20:,.0f} MiB; these are "
        f"{size / 2**20:,.1f} MiB more. Code goes a day after its last use, once no job that is kept started from it.",
    )


def _bounded(queues: Mapping[str, _Queue]) -> dict[str, str]:
    """The queues whose jobs are limited, each with all limits that apply to it as one text."""
    found = {}
    for name in queues:
        bounds = [
            (above, each.limit, each.borrowing_limit, each.user_limit, each.group_limit)
            for above, each in upwards(queues, name)
            if each.bounds
        ]
        if bounds:
            found[name] = repr(bounds)
    return found


def _most_priority(queues: Mapping[str, _Queue]) -> dict[str, tuple[int, str]]:
    """By queue, the lowest maxPriority of it and its ancestors, with the name of the queue that sets it."""
    found = {}
    for name in queues:
        said = [(each.max_priority, above) for above, each in upwards(queues, name) if each.max_priority is not None]
        if said:
            found[name] = min(said, key=lambda one: one[0])
    return found


class NodeRow(msgspec.Struct, frozen=True):
    """A node as its engine last reported it."""

    node: Node
    engine: str
    seen_at: float


class HolderRow(msgspec.Struct, frozen=True):
    """A task that is placed on a node and has not ended."""

    job: str
    name: str
    user: str
    queue: str
    priority: int
    doc: str
    task: TaskRun


class Admission(msgspec.Struct, frozen=True):
    """The facts that admission checks for every submitted job."""

    queues: tuple[str, ...]
    granted: frozenset[str]
    """Queues for members only: some group grants them, or their documents say so."""
    closed: frozenset[str]
    """Queues that accept no new jobs."""
    owners: frozenset[str]
    """Queues that own cells."""
    nodes: tuple[Node, ...]
    container_runtime: str
    bounded: Mapping[str, str] = {}
    """Queues with a limit, their own or an ancestor's, each with those limits as text."""
    most_priority: Mapping[str, tuple[int, str]] = {}
    """By queue, the highest priority of its jobs and the queue that sets it (itself or an ancestor)."""
    parents: dict[str, str] = {}
    """Parent queue by queue."""
    compile_cache: Mapping[str, tuple[str, str]] = {}
    """By queue, the default of its jobs' `compileCache` and the queue that sets it (itself or an ancestor)."""
    has_budgets: bool = False
    """Whether there is any budget, of a queue or a user."""

    def managed(self, named: Iterable[str]) -> tuple[str, ...]:
        """These queues and all of their descendants; `*` stays as it is."""
        found, more = set(named), True
        while more:
            below = {name for name, parent in self.parents.items() if parent in found} - found
            found |= below
            more = bool(below)
        return tuple(sorted(found))


class ClusterViews(Database):
    """Nodes and the tasks on them; queues; settings; sealed secrets; uploaded code."""

    _nodes_seen: tuple[tuple[Any, ...], tuple[Node, ...]] = ((), ())
    _admission: Admission | None = None
    _admission_at = 0.0

    async def nodes(self) -> list[NodeRow]:
        """Every node, by name."""
        query = select(tables.nodes).order_by(tables.nodes.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [NodeRow(_NODE.decode(row.doc), row.engine, row.seen_at) for row in found]

    async def node(self, name: str) -> NodeRow | None:
        """One node; None when it does not exist."""
        query = select(tables.nodes).where(tables.nodes.c.name == name)
        row = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else NodeRow(_NODE.decode(row.doc), row.engine, row.seen_at)

    async def holders(self, node: str | None = None) -> list[HolderRow]:
        """The tasks that are placed (on `node`, or anywhere) and have not ended."""
        task, job, doc = tables.tasks, tables.jobs, tables.job_documents
        query = (
            select(job.c.id, job.c.name, job.c.user, job.c.queue, job.c.priority, doc.c.doc, task.c.run)
            .join(job, job.c.id == task.c.job)
            .join(doc, doc.c.job == job.c.id)
            .where(job.c.live, task.c.node == node if node is not None else task.c.node != "")
            .where(task.c.state.not_in(("completed", "attempt-completed")))
            .order_by(job.c.id, task.c.role, task.c.index)
        )
        found = await self.read(lambda connection: rows(connection, query))
        return [
            HolderRow(row.id, row.name, row.user, row.queue, row.priority, row.doc, _TASK.decode(row.run))
            for row in found
        ]

    async def admission(self) -> Admission:
        """The facts for admission, read once and shared by all submissions of the next moment.

        Changes by another process may be missed for `ADMISSION_SECONDS`. Changes by this process are seen at once.
        """
        now = time.monotonic()
        if self._admission is not None and now - self._admission_at < ADMISSION_SECONDS:
            return self._admission
        changes = self.admission_changes
        found = await self.read(self._look_at_admission)
        if changes == self.admission_changes:
            self._admission, self._admission_at = found, now
        return found

    def admission_changed(self) -> None:
        """Drop the cached admission facts, because this process changed them."""
        super().admission_changed()
        self._admission = None

    def _look_at_admission(self, connection: Connection) -> Admission:
        """Read the admission facts. Nodes are decoded only when an engine reported again."""
        seen = tuple(tuple(row) for row in connection.execute(_SEEN))
        if seen != self._nodes_seen[0]:
            found = tuple(_NODE.decode(doc) for (doc,) in connection.execute(_NODES))
            self._nodes_seen = (seen, found)
        runtime = connection.execute(_SETTING, {"k": CONTAINER_RUNTIME}).scalar()
        grants = (_NAMES.decode(names) for (names,) in connection.execute(_GRANTS))
        queues = {name: _QUEUE.decode(doc) for name, doc in connection.execute(_QUEUES)}
        return Admission(
            queues=tuple(queues),
            closed=frozenset(name for name, queue in queues.items() if queue.closed),
            owners=frozenset(name for name, queue in queues.items() if queue.cells or queue.pinned_cells),
            granted=frozenset(name for names in grants for name in names)
            | {name for name, queue in queues.items() if queue.members_only},
            nodes=self._nodes_seen[1],
            container_runtime=msgspec.json.decode(runtime) if runtime else "",
            parents={name: queue.parent for name, queue in queues.items() if queue.parent},
            bounded=_bounded(queues),
            most_priority=_most_priority(queues),
            compile_cache={name: said for name in queues if (said := cache_default(queues, name)) is not None},
            has_budgets=connection.execute(_BUDGETS).first() is not None,
        )

    async def put_queues(self, queues: list[QueueRecord]) -> None:
        """Replace all queues by these."""

        await self.write(lambda transaction: write_queues(transaction, queues))
        self.admission_changed()

    async def queues(self) -> list[QueueRecord]:
        """Every queue, by name."""
        query = select(tables.queues).order_by(tables.queues.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [QueueRecord(row.name, msgspec.json.decode(row.doc)) for row in found]

    async def setting(self, key: str, default: Any = None) -> Any:
        """The JSON value stored under `key`, `default` when there is none."""
        query = select(_settings.c.value).where(_settings.c.key == key)
        text = await self.read(lambda connection: connection.execute(query).scalar())
        return default if text is None else msgspec.json.decode(text)

    async def put_setting(self, key: str, value: Any) -> None:
        """Store a JSON value under `key`."""
        row = {"key": key, "value": encode(value)}
        await self.write(lambda transaction: put(transaction, _settings, [row]))
        self.admission_changed()

    async def first_setting(self, key: str, value: Any) -> Any:
        """The JSON value stored under `key`; stores `value` when there is none."""
        query = select(_settings.c.value).where(_settings.c.key == key)

        def run(transaction: Transaction) -> Any:
            there = transaction.read(query).scalar()
            if there is None:
                put(transaction, _settings, [{"key": key, "value": encode(value)}])
            return value if there is None else msgspec.json.decode(there)

        kept = await self.write(run)
        self.admission_changed()
        return kept

    async def secrets(self, owner: str) -> dict[str, str]:
        """The sealed secrets of an owner (`user:NAME` or `job:ID`), by name."""
        query = select(_secrets.c.name, _secrets.c.sealed).where(_secrets.c.owner == owner).order_by(_secrets.c.name)
        return dict(await self.read(lambda connection: rows(connection, query)))

    async def put_secret(self, owner: str, name: str, sealed: str, at: float) -> None:
        """Store one sealed secret, replacing an earlier one."""
        row = {"owner": owner, "name": name, "sealed": sealed, "created_at": at}
        await self.write(lambda transaction: put(transaction, _secrets, [row]))

    async def remove_secret(self, owner: str, name: str) -> bool:
        """Delete a secret; returns whether it existed."""
        statement = delete(_secrets).where(_secrets.c.owner == owner, _secrets.c.name == name)
        return await self.write(lambda transaction: transaction.write(statement).rowcount > 0)

    async def sealed_count(self) -> int:
        """Count the secrets that are sealed with the server's key."""
        count = select(func.count()).select_from(_secrets)
        return await self.read(lambda connection: int(connection.execute(count).scalar_one()))

    async def reseal(self, change: Callable[[str, str, str], str]) -> int:
        """Replace every sealed secret by `change(owner, name, sealed)` in one transaction; returns their number."""

        def run(transaction: Transaction) -> int:
            found = [
                tuple(row) for row in transaction.read(select(_secrets.c.owner, _secrets.c.name, _secrets.c.sealed))
            ]
            new = [(owner, name, change(owner, name, sealed)) for owner, name, sealed in found]
            for owner, name, sealed in new:
                place = update(_secrets).where(_secrets.c.owner == owner, _secrets.c.name == name)
                transaction.write(place.values(sealed=sealed))
            return len(new)

        return await self.write(run)

    async def put_blob(self, digest: str, user: str, size: int, at: float, *, most: int = 0) -> None:
        """Record that `user` uploaded a blob, now or again.

        With `most`, raises TooLarge `too-much-code` when the user's blobs would exceed that many bytes.
        """
        own = (_blobs.c.digest == digest, _blobs.c.user == user)
        there = select(_blobs.c.size).where(*own)

        def run(transaction: Transaction) -> None:
            if transaction.read(there).first() is None:
                kept = int(transaction.read(_KEPT, {"u": user}).scalar_one()) if most else 0
                if most and kept + size > most:
                    raise too_much_code(user, kept, size, most)
                transaction.write(insert(_blobs), {"digest": digest, "user": user, "size": size, "at": at})
            else:
                transaction.write(update(_blobs).where(*own).values(at=at))

        await self.write(run)

    async def has_blob(self, digest: str) -> bool:
        """Whether a blob is recorded for any user."""
        query = select(_blobs.c.digest).where(_blobs.c.digest == digest).limit(1)
        return await self.read(lambda connection: connection.execute(query).first()) is not None

    async def code_bytes(self, user: str) -> int:
        """The stored bytes of the blobs that a user uploaded."""
        return int(await self.read(lambda connection: connection.execute(_KEPT, {"u": user}).scalar_one()))

    async def use_blob(self, digest: str, user: str, at: float) -> int | None:
        """The size in bytes of a blob that `user` uploaded, kept for another day; None when the user did not."""
        query = select(_blobs.c.size, _blobs.c.at).where(_blobs.c.digest == digest, _blobs.c.user == user)
        found = await self.read(lambda connection: connection.execute(query).first())
        if found is None:
            return None
        if found.at < at - _BLOB_TOUCH_SECONDS:
            await self.put_blob(digest, user, found.size, at)
        return int(found.size)

    async def ping(self) -> None:
        """Run a trivial query.

        Raises Unavailable when the database does not answer.
        """
        await self.read(
            lambda connection: connection.execute(select(func.count()).select_from(tables.counters)).scalar()
        )

    @property
    def database_name(self) -> str:
        """The database's product."""
        return "SQLite" if self.dialect == "sqlite" else "PostgreSQL"

    async def database_version(self) -> str:
        """The version of the database, from a query that it answers.

        Raises Unavailable when it does not.
        """
        version = func.sqlite_version() if self.dialect == "sqlite" else func.current_setting("server_version")
        return str(await self.read(lambda connection: connection.execute(select(version)).scalar()))
