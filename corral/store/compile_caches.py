"""Bundles of compiled code: which one is in force under a key, who shares it, and what tasks made of it.

Only rows are here; the files are in a blob store. A digest that no row names any more is kept in a table until its file
is deleted, so that no crash leaves files behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update

from corral.kernel.errors import Conflict, TooLarge
from corral.kernel.ids import JobId
from corral.model.compile_caches import CacheBundle, CacheUse
from corral.model.records import rfc3339
from corral.store import tables
from corral.store.database import Database, rows
from corral.store.rows import encode, put
from corral.store.writer import Transaction

_caches, _uses, _garbage = tables.compile_caches, tables.compile_cache_uses, tables.compile_cache_garbage
MOST_LISTED: Final = 1_000
_AT_ONCE: Final = 500
_FACTS: Final = msgspec.json.Decoder(dict[str, str])
_USE: Final = msgspec.json.Decoder(CacheUse)


class NewBundle(NamedTuple):
    """A bundle that a task publishes."""

    id: str
    scope: str
    key: str
    facts: str
    """As JSON."""
    digest: str
    size: int
    files: int
    user: str
    job: str
    at: float


class UseRow(NamedTuple):
    """What an attempt made of the cache, with what finds comparable attempts."""

    job: JobId
    user: str
    cache: str
    """The id of the bundle, also where there was none yet."""
    program: str
    """A hash of the command."""
    at: float
    use: CacheUse


class CompileCacheRecords(Database):
    """Bundles of compiled code. Times are in seconds since 1970."""

    async def cache_bundle(self, id: str) -> CacheBundle | None:
        """The bundle with this id."""
        return next(iter(await self._bundles(_caches.c.id == id)), None)

    async def cache_bundle_of(self, scope: str, digest: str) -> CacheBundle | None:
        """The bundle of a scope with this content."""
        return next(iter(await self._bundles(_caches.c.scope == scope, _caches.c.digest == digest)), None)

    async def cache_bundles(self, *, user: str = "", groups: Sequence[str] = ()) -> list[CacheBundle]:
        """At most a thousand bundles, the last used ones first: all, or those of a user and of some groups."""
        if not user:
            return await self._bundles()
        shared = [f"group:{each}" for each in groups]
        return await self._bundles(or_(_caches.c.user == user, _caches.c.scope.in_(shared)))

    async def cache_bytes(self, user: str) -> int:
        """The bytes of all bundles that a user published."""
        query = select(func.coalesce(func.sum(_caches.c.size), 0)).where(_caches.c.user == user)
        return int(await self.read(lambda reader: reader.execute(query).scalar_one()))

    async def publish_cache(self, new: NewBundle, *, after: str, most_bytes: int) -> list[str]:
        """Put a bundle in force in place of the one whose digest is `after` ("" is none); the ids of evicted bundles.

        With `most_bytes` the user's least recently used bundles make room. Raises Conflict `cache-taken` when another
        bundle is in force, TooLarge when it exceeds the quota alone. The first writer wins: nothing is ever replaced but
        by a task that started from it.
        """
        if most_bytes and new.size > most_bytes:
            raise TooLarge(
                "cache-too-large", f"The bundle is larger than all that {new.user} may keep ({most_bytes} bytes)."
            )

        def run(transaction: Transaction) -> list[str]:
            digest = transaction.read(select(_caches.c.digest).where(_caches.c.id == new.id)).scalar() or ""
            if digest != after:
                raise Conflict("cache-taken", "Another task has published its compiled code first.")
            evicted = _evict(transaction, new, most_bytes) if most_bytes else []
            drop_caches(transaction, ids=[new.id, *evicted])
            transaction.write(delete(_garbage).where(_garbage.c.digest == new.digest))
            put(transaction, _caches, [{**new._asdict(), "used_at": new.at, "uses": 0}])
            return evicted

        return await self.write(run)

    async def cache_given(self, id: str, at: float) -> None:
        """Note that a task is given a bundle."""
        changed = update(_caches).where(_caches.c.id == id).values(used_at=at, uses=_caches.c.uses + 1)
        await self.change(changed)

    async def drop_cache_bundles(self, ids: Sequence[str]) -> int:
        """Remove bundles; returns their number."""
        return await self.write(lambda transaction: drop_caches(transaction, ids=ids))

    async def put_cache_use(self, row: UseRow) -> None:
        """Store what an attempt made of the cache, in place of what was stored before."""
        use = row.use
        values = {
            "attempt": use.attempt, "job": row.job, "user": row.user, "at": row.at, "cache": row.cache,
            "program": row.program, "cold": not use.hit, "first_step": use.first_step_seconds, "doc": encode(use),
        }  # fmt: skip
        await self.write(lambda transaction: put(transaction, _uses, [values]))

    async def cache_use(self, attempt: str) -> CacheUse | None:
        """What an attempt made of the cache."""
        query = select(_uses.c.doc).where(_uses.c.attempt == attempt)
        doc = await self.read(lambda reader: reader.execute(query).scalar())
        return None if doc is None else _USE.decode(doc)

    async def cache_uses(self, job: str) -> list[CacheUse]:
        """What the attempts of a job made of the cache, the last ones first."""
        query = select(_uses.c.doc).where(_uses.c.job == job).order_by(_uses.c.at.desc()).limit(MOST_LISTED)
        return [_USE.decode(row.doc) for row in await self.read(lambda reader: rows(reader, query))]

    async def cold_first_step(self, user: str, cache: str, program: str) -> float | None:
        """The seconds to the first step of the last attempt of a command that had no bundle; None if none is known."""
        query = (
            select(_uses.c.first_step)
            .where(_uses.c.program == program, _uses.c.cache == cache, _uses.c.user == user)
            .where(_uses.c.cold, _uses.c.first_step.is_not(None))
            .order_by(_uses.c.at.desc())
            .limit(1)
        )
        return await self.read(lambda reader: reader.execute(query).scalar())

    async def discard_bundle(self, digest: str, size: int) -> None:
        """Have a file deleted, unless a bundle has this content."""
        await self.write(lambda transaction: put(transaction, _garbage, [{"digest": digest, "size": size}]))

    async def unneeded_bundles(self) -> list[str]:
        """Digests whose files are to be deleted: no bundle has this content."""
        needed = exists().where(_caches.c.digest == _garbage.c.digest)
        query = select(_garbage.c.digest).where(~needed).limit(_AT_ONCE)
        return [row.digest for row in await self.read(lambda reader: rows(reader, query))]

    async def bundle_deleted(self, digest: str) -> None:
        """Note that a file is deleted."""
        await self.change(delete(_garbage).where(_garbage.c.digest == digest))

    async def _bundles(self, *where: ColumnElement[bool]) -> list[CacheBundle]:
        query = select(_caches).where(*where).order_by(_caches.c.used_at.desc(), _caches.c.id).limit(MOST_LISTED)
        return [_bundle(row) for row in await self.read(lambda reader: rows(reader, query))]


def drop_caches(transaction: Transaction, *, scope: str = "", user: str = "", ids: Sequence[str] = ()) -> int:
    """Remove the bundles of a scope, of a user or with some ids; returns their number."""
    condition: ColumnElement[bool] = _caches.c.id.in_(ids)
    if scope:
        condition = _caches.c.scope == scope
    elif user:
        condition = or_(_caches.c.user == user, _caches.c.scope == f"user:{user}")
    gone = {row.digest: row.size for row in transaction.read(select(_caches.c.digest, _caches.c.size).where(condition))}
    if not gone:
        return 0
    put(transaction, _garbage, [{"digest": digest, "size": size} for digest, size in sorted(gone.items())])
    count: int = transaction.write(delete(_caches).where(condition)).rowcount
    return count


def _evict(transaction: Transaction, new: NewBundle, most_bytes: int) -> list[str]:
    """The user's least recently used bundles that must go so that a new one fits the quota."""
    others = select(_caches.c.id, _caches.c.size).where(_caches.c.user == new.user, _caches.c.id != new.id)
    kept = list(transaction.read(others.order_by(_caches.c.used_at, _caches.c.id)))
    total, gone = new.size + sum(row.size for row in kept), []
    for row in kept:
        if total <= most_bytes:
            break
        gone.append(row.id)
        total -= row.size
    return gone


def _bundle(row: Any) -> CacheBundle:
    share, _, of = row.scope.partition(":")
    return CacheBundle(
        row.id, share, of, row.key, _FACTS.decode(row.facts), row.digest, row.size, row.files, row.user, row.job,
        rfc3339(row.at), rfc3339(row.used_at), row.uses,
    )  # fmt: skip
