"""Why: machines, queues, settings, secrets and uploads are small things that both processes look up by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from corral.kernel.errors import TooLarge
from corral.model.accounts import QueueRecord
from corral.model.inventory import Node
from corral.model.runs import TaskRun
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.documents import write_queues
from corral.store.rows import encode, put
from corral.store.writer import Transaction

_Amounts = dict[str, str | int | float]


class _Queue(msgspec.Struct, rename="camel"):
    """What every submit asks about of a queue's document."""

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

    @property
    def bounds(self) -> bool:
        """Whether it bounds what its jobs hold."""
        return bool(self.limit or self.borrowing_limit or self.user_limit or self.group_limit)


_NODE: Final = msgspec.json.Decoder(Node)
_QUEUE: Final = msgspec.json.Decoder(_Queue)
_TASK: Final = msgspec.json.Decoder(TaskRun)
_secrets, _blobs, _settings = tables.secrets, tables.blobs, tables.settings
_BLOB_TOUCH_SECONDS: Final = 3600.0

CONTAINER_RUNTIME: Final = "engine.local.container_runtime"
"""The setting in which control keeps what runs containers here ("" for nothing)."""
ADMISSION_SECONDS: Final = 0.5
"""How long a change of queues, grants or nodes by another process may go unnoticed by submits."""
_NAMES: Final = msgspec.json.Decoder(tuple[str, ...])
_SEEN: Final = select(tables.nodes.c.engine, func.max(tables.nodes.c.seen_at), func.count()).group_by(
    tables.nodes.c.engine
)
_KEPT: Final = select(func.coalesce(func.sum(_blobs.c.size), 0)).where(_blobs.c.user == bindparam("u"))
_NODES: Final = select(tables.nodes.c.doc).order_by(tables.nodes.c.name)
_QUEUES: Final = select(tables.queues.c.name, tables.queues.c.doc).order_by(tables.queues.c.name)
_GRANTS: Final = select(tables.groups.c.queues)
_SETTING: Final = select(_settings.c.value).where(_settings.c.key == bindparam("k"))


def too_much_code(user: str, kept: int, size: int, most: int) -> TooLarge:
    """The refusal of an upload of `size` bytes beside `kept` ones."""
    return TooLarge(
        "too-much-code",
        f"{user} keeps {kept / 2**20:,.1f} MiB of code here, and may keep {most / 2**20:,.0f} MiB; these are "
        f"{size / 2**20:,.1f} MiB more. Code goes a day after its last use, once no job that is kept started from it.",
    )


def _chain(queues: Mapping[str, _Queue], name: str) -> Iterator[tuple[str, _Queue]]:
    """A queue and those above it."""
    for _ in range(len(queues)):
        queue = queues.get(name)
        if queue is None:
            return
        yield name, queue
        name = queue.parent


def _bounded(queues: Mapping[str, _Queue]) -> dict[str, str]:
    """The queues whose jobs are bounded, each with all that bounds them as one text."""
    found = {}
    for name in queues:
        bounds = [
            (above, each.limit, each.borrowing_limit, each.user_limit, each.group_limit)
            for above, each in _chain(queues, name)
            if each.bounds
        ]
        if bounds:
            found[name] = repr(bounds)
    return found


def _most_priority(queues: Mapping[str, _Queue]) -> dict[str, tuple[int, str]]:
    """The lowest maxPriority of each queue and those above it, and whose it is."""
    found = {}
    for name in queues:
        said = [(each.max_priority, above) for above, each in _chain(queues, name) if each.max_priority is not None]
        if said:
            found[name] = min(said, key=lambda one: one[0])
    return found


class NodeRow(msgspec.Struct, frozen=True):
    """One node as an engine last reported it."""

    node: Node
    engine: str
    seen_at: float


class HolderRow(msgspec.Struct, frozen=True):
    """One task that holds something of a node."""

    job: str
    name: str
    user: str
    queue: str
    priority: int
    doc: str
    task: TaskRun


class Admission(msgspec.Struct, frozen=True):
    """What is asked of the store about every job that is submitted."""

    queues: tuple[str, ...]
    granted: frozenset[str]
    """The queues for members only: some group grants them, or their documents say so."""
    closed: frozenset[str]
    """The queues that take no new jobs."""
    owners: frozenset[str]
    """The queues that own cells."""
    nodes: tuple[Node, ...]
    container_runtime: str
    bounded: Mapping[str, str] = {}
    """The queues that bound what their jobs hold, or are part of one that does, with those bounds as text."""
    most_priority: Mapping[str, tuple[int, str]] = {}
    """By queue the highest priority of its jobs, and the queue (itself, or above it) that says so."""
    parents: dict[str, str] = {}
    """By queue, the one that it is part of."""

    def managed(self, named: Iterable[str]) -> tuple[str, ...]:
        """These queues and all that are below them; `*` stays."""
        found, more = set(named), True
        while more:
            below = {name for name, parent in self.parents.items() if parent in found} - found
            found |= below
            more = bool(below)
        return tuple(sorted(found))


class ClusterViews(Database):
    """Nodes with who holds what; queues; settings; sealed secrets; uploaded code."""

    _nodes_seen: tuple[tuple[Any, ...], tuple[Node, ...]] = ((), ())
    _admission: Admission | None = None
    _admission_at = 0.0

    async def nodes(self) -> list[NodeRow]:
        """Every node, by name."""
        query = select(tables.nodes).order_by(tables.nodes.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [NodeRow(_NODE.decode(row.doc), row.engine, row.seen_at) for row in found]

    async def node(self, name: str) -> NodeRow | None:
        """One node."""
        query = select(tables.nodes).where(tables.nodes.c.name == name)
        row = await self.read(lambda connection: connection.execute(query).first())
        return None if row is None else NodeRow(_NODE.decode(row.doc), row.engine, row.seen_at)

    async def holders(self, node: str | None = None) -> list[HolderRow]:
        """The tasks that are placed (on `node`, or anywhere) and not over."""
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
        """What is asked about every submitted job, in one look that serves all submits of the next moment.

        What another process changes meanwhile may go unnoticed for `ADMISSION_SECONDS`; what this one changes, not.
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
        """This process has changed what submits are asked about."""
        super().admission_changed()
        self._admission = None

    def _look_at_admission(self, connection: Connection) -> Admission:
        """Nodes are decoded only when they were seen anew."""
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
        )

    async def put_queues(self, queues: list[QueueRecord]) -> None:
        """Make these the queues that there are."""

        await self.write(lambda transaction: write_queues(transaction, queues))
        self.admission_changed()

    async def queues(self) -> list[QueueRecord]:
        """Every queue, by name."""
        query = select(tables.queues).order_by(tables.queues.c.name)
        found = await self.read(lambda connection: rows(connection, query))
        return [QueueRecord(row.name, msgspec.json.decode(row.doc)) for row in found]

    async def setting(self, key: str, default: Any = None) -> Any:
        """The JSON value stored under `key`."""
        query = select(_settings.c.value).where(_settings.c.key == key)
        text = await self.read(lambda connection: connection.execute(query).scalar())
        return default if text is None else msgspec.json.decode(text)

    async def put_setting(self, key: str, value: Any) -> None:
        """Store a JSON value under `key`."""
        row = {"key": key, "value": encode(value)}
        await self.write(lambda transaction: put(transaction, _settings, [row]))
        self.admission_changed()

    async def first_setting(self, key: str, value: Any) -> Any:
        """The JSON value stored under `key`: `value`, unless another one was stored before."""
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
        """Delete a secret; says whether it was there."""
        statement = delete(_secrets).where(_secrets.c.owner == owner, _secrets.c.name == name)
        return await self.write(lambda transaction: transaction.write(statement).rowcount > 0)

    async def sealed_count(self) -> int:
        """How many secrets are sealed with the server's key."""
        count = select(func.count()).select_from(_secrets)
        return await self.read(lambda connection: int(connection.execute(count).scalar_one()))

    async def reseal(self, change: Callable[[str, str, str], str]) -> int:
        """Replace every sealed secret by `change(owner, name, sealed)` in one transaction; returns how many."""

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
        """Note that `user` uploaded a blob, or did so again.

        With `most`, raises TooLarge `too-much-code` when the blobs of the user would have more bytes.
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
        """Whether somebody uploaded this blob, and it is kept."""
        query = select(_blobs.c.digest).where(_blobs.c.digest == digest).limit(1)
        return await self.read(lambda connection: connection.execute(query).first()) is not None

    async def code_bytes(self, user: str) -> int:
        """How many bytes of blobs that a user uploaded are kept."""
        return int(await self.read(lambda connection: connection.execute(_KEPT, {"u": user}).scalar_one()))

    async def use_blob(self, digest: str, user: str, at: float) -> int | None:
        """The size of a blob that `user` uploaded, which is then kept for another day; None when the user did not."""
        query = select(_blobs.c.size, _blobs.c.at).where(_blobs.c.digest == digest, _blobs.c.user == user)
        found = await self.read(lambda connection: connection.execute(query).first())
        if found is None:
            return None
        if found.at < at - _BLOB_TOUCH_SECONDS:
            await self.put_blob(digest, user, found.size, at)
        return int(found.size)

    async def ping(self) -> None:
        """Ask the database something.

        Raises Unavailable when it does not answer.
        """
        await self.read(
            lambda connection: connection.execute(select(func.count()).select_from(tables.counters)).scalar()
        )
