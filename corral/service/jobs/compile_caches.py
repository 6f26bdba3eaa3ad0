"""Caches of compiled code: what a task is given and may publish, what its owner sees, and what is deleted.

A task is trusted with its own user's bundles alone, and with a group's if its job names the group and its owner is a
member. Its scope follows from the stored job, never from what the task says.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from corral.kernel.errors import Conflict, InvalidInput, NotFound, TooLarge, Unavailable
from corral.model.compile_caches import (
    CacheBundle,
    CacheList,
    CacheOffer,
    CacheScope,
    CacheTerms,
    CacheUse,
    JobCache,
    cache_terms,
    key_of,
)
from corral.model.records import rfc3339
from corral.model.store_writes import JobRecord
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.runtime_calls import own_job
from corral.service.logs.attempt_reference import parsed_attempt
from corral.service.people.authentication import Authentication
from corral.spec.job import UnifiedJob
from corral.storage.code_archives import BlobStore
from corral.store.compile_caches import NewBundle, UseRow
from corral.store.rows import encode

_MOST_FACTS: Final = 40
_LONGEST_FACT: Final = 1_000


class Measured(msgspec.Struct, frozen=True):
    """What the runtime tells of an attempt's cache."""

    files: int = 0
    restore_seconds: float | None = None
    new_files: int | None = None
    first_step_seconds: float | None = None
    refused: str = ""


class CompileCaches:
    """Bundles of compiled code."""

    def __init__(self, context: Context, authentication: Authentication) -> None:
        self._context, self._authentication = context, authentication
        self._store, self._clock = context.store, context.clock
        self._arriving: set[str] = set()
        """Ids of bundles that are being uploaded here."""

    async def offer(self, actor: Actor, *, attempt: str, facts: dict[str, str]) -> CacheOffer:
        """The bundle for a task with these facts, and its key; an offer with a refusal where the job has no cache."""
        record = await own_job(self._context, actor, "runtime.cache")
        self._in_time(record, attempt)
        if len(facts) > _MOST_FACTS or any(len(each) > _LONGEST_FACT for fact in facts.items() for each in fact):
            raise InvalidInput(
                "too-many-facts", f"At most {_MOST_FACTS} facts of {_LONGEST_FACT} characters are taken."
            )
        scope = await self._scope(record)
        if isinstance(scope, str):
            return CacheOffer(refusal=scope)
        key = key_of(facts)
        bundle = await self._whole(scope.id_of(key))
        most = self._context.allowance.bundle_bytes
        now = self._clock.now()
        if await self._store.cache_use(attempt) is None:
            task = parsed_attempt(attempt, record.id)
            use = CacheUse(attempt, task.role, task.index, rfc3339(now), key, bundle is not None, facts)
            if bundle is not None:
                use = msgspec.structs.replace(use, digest=bundle.digest, bytes=bundle.size)
                await self._store.cache_given(bundle.id, now)
            await self._store.put_cache_use(self._row(record, scope, now, use))
        if bundle is None:
            return CacheOffer(key, most_bytes=most)
        return CacheOffer(key, bundle.digest, bundle.size, most)

    async def bundle(self, actor: Actor, digest: str, *, attempt: str) -> Path:
        """The file of a bundle that the task's job may read.

        Raises NotFound for any other one.
        """
        record = await own_job(self._context, actor, "runtime.cache")
        self._in_time(record, attempt)
        scope = await self._scope(record)
        if isinstance(scope, str) or await self._store.cache_bundle_of(scope.text, digest) is None:
            raise NotFound("no-such-cache", "The job may read no such bundle.")
        return await self._blobs().fetch(digest)

    async def publish(
        self, actor: Actor, chunks: AsyncIterator[bytes], *, attempt: str, key: str, after: str, files: int, digest: str
    ) -> str:
        """Store a bundle that a task packed, and put it in force under the key that the task was given; its digest.

        Raises Conflict `cache-taken` when another task was first, NotFound without a cache, TooLarge, InvalidInput.
        """
        record = await own_job(self._context, actor, "runtime.cache")
        self._in_time(record, attempt)
        scope, use = await self._scope(record), await self._store.cache_use(attempt)
        if isinstance(scope, str) or use is None or use.key != key:
            raise NotFound("no-such-cache", "The task has no cache with this key.")
        bundle, blobs, allowance = scope.id_of(key), self._blobs(), self._context.allowance
        known = await self._store.cache_bundle(bundle)
        if (known.digest if known else "") != after or bundle in self._arriving:
            raise Conflict("cache-taken", "Another task has published its compiled code first.")
        self._arriving.add(bundle)
        try:
            digest, size = await blobs.put(chunks, allowance.bundle_bytes, self._context.workers, digest)
            now = self._clock.now()
            facts = encode(use.facts)
            new = NewBundle(bundle, scope.text, key, facts, digest, size, files, record.user, record.id, now)
            try:
                await self._store.publish_cache(new, after=after, most_bytes=allowance.cache_bytes)
            except (Conflict, TooLarge):
                await self._store.discard_bundle(digest, size)
                raise
        finally:
            self._arriving.discard(bundle)
        use = msgspec.structs.replace(use, published=digest, published_bytes=size)
        await self._store.put_cache_use(self._row(record, scope, now, use))
        return digest

    async def used(self, actor: Actor, *, attempt: str, measured: Measured) -> None:
        """Record what an attempt's runtime measured; a bundle that it refused is checked here too, and removed if damaged.

        Raises NotFound for an attempt that was offered nothing.
        """
        record = await own_job(self._context, actor, "runtime.cache")
        self._in_time(record, attempt)
        scope, use = await self._scope(record), await self._store.cache_use(attempt)
        if isinstance(scope, str) or use is None:
            raise NotFound("no-such-cache", "The task has no cache.")
        told = {name: value for name, value in msgspec.structs.asdict(measured).items() if value not in (None, "", 0)}
        if measured.new_files == 0:
            told["new_files"] = 0
        use = msgspec.structs.replace(use, **told)
        if use.refused and use.hit:
            await self._check(scope, use.digest)
            use = msgspec.structs.replace(use, hit=False, bytes=0)
        if use.hit and use.first_step_seconds is not None and use.restore_seconds is not None:
            row = self._row(record, scope, 0.0, use)
            cold = await self._store.cold_first_step(record.user, row.cache, row.program)
            if cold is not None:
                saved = cold - use.restore_seconds - use.first_step_seconds
                use = msgspec.structs.replace(use, cold_seconds=cold, saved_seconds=saved)
        await self._store.put_cache_use(self._row(record, scope, self._clock.now(), use))

    async def of_job(self, actor: Actor, ref: str) -> JobCache:
        """What the tasks of a job made of the cache."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        uses = tuple(await self._store.cache_uses(record.id))
        hits = [use for use in uses if use.hit]
        saved = [use.saved_seconds for use in hits if use.saved_seconds is not None]
        terms = await self._terms(record)
        return JobCache(
            *terms,
            len(hits),
            len(uses),
            sum(use.bytes for use in hits),
            sum(saved) if saved else None,
            uses,
        )

    async def list(self, actor: Actor, *, everyone: bool = False) -> CacheList:
        """The bundles that an actor published or shares, the last used ones first; those of everyone for administrators.

        Raises Forbidden for everyone's where the actor is no administrator.
        """
        await self._context.check(actor, "cache.list", Resource("cache", owner="" if everyone else actor.user))
        groups = () if everyone else actor.groups
        found = await self._store.cache_bundles(user="" if everyone else actor.user, groups=groups)
        own = await self._store.cache_bytes(actor.user)
        return CacheList(tuple(found), own, self._context.allowance.cache_bytes)

    async def remove(self, actor: Actor, id: str) -> None:
        """Remove a bundle that the actor published; tasks that start later compile anew.

        Raises NotFound `no-such-cache`, also for a bundle of others that the actor does not share.
        """
        bundle = await self._store.cache_bundle(id)
        shared = bundle is not None and bundle.share == "group" and bundle.of in actor.groups
        if bundle is None or not (shared or actor.is_admin or bundle.user == actor.user):
            raise NotFound("no-such-cache", "There is no such bundle of compiled code; corral cache list shows yours.")
        resource = Resource("cache", bundle.id, owner=bundle.user)
        decision = await self._context.check(actor, "cache.delete", resource)
        await self._store.drop_cache_bundles([bundle.id])
        await self._context.note(actor, "cache.delete", resource, decision, digest=bundle.digest, of=bundle.of)

    async def _scope(self, record: JobRecord) -> CacheScope | str:
        """Who shares the bundles of a job's tasks, or why the job has no cache."""
        terms = await self._terms(record)
        if self._context.caches is None:
            return "this server keeps none"
        if terms.share == "none":
            return f"the {terms.source} asks for none"
        if terms.share == "job":
            return CacheScope("job", record.id)
        if record.orphaned:
            return "the account of the job is gone"
        if terms.share == "user":
            return CacheScope("user", record.user)
        owner = await self._authentication.job_owner(record)
        group = _document(record).spec.compile_cache.group
        if group not in owner.groups:
            return f"{record.user} is not in the group {group}"
        return CacheScope("group", group)

    async def _terms(self, record: JobRecord) -> CacheTerms:
        """Who shares what the job's tasks compile: by its own word, or by the defaults that are in force now."""
        own = _document(record).spec.compile_cache.share
        if own != "default":
            return cache_terms(own, None, "none")
        admission = await self._context.store.admission()
        return cache_terms(own, admission.compile_cache.get(record.queue), self._context.allowance.compile_cache)

    async def _whole(self, id: str) -> CacheBundle | None:
        """The bundle with an id, if its file is there; a bundle without its file is removed."""
        bundle = await self._store.cache_bundle(id)
        if bundle is None or await self._blobs().size(bundle.digest) == bundle.size:
            return bundle
        await self._store.drop_cache_bundles([id])
        return None

    async def _check(self, scope: CacheScope, digest: str) -> None:
        """Remove a bundle whose file is not what was published."""
        bundle = await self._store.cache_bundle_of(scope.text, digest)
        if bundle is not None and not await self._blobs().is_intact(digest):
            await self._store.drop_cache_bundles([bundle.id])
            await self._blobs().remove(digest)

    def _blobs(self) -> BlobStore:
        if self._context.caches is None:
            raise Unavailable("no-blob-store", "Compiled code cannot be stored on this server.")
        return self._context.caches

    def _in_time(self, record: JobRecord, attempt: str) -> None:
        if parsed_attempt(attempt, record.id).job_attempt != record.run.attempt:
            raise Conflict("attempt-over", "This attempt of the job is over; its cache no longer counts.")

    def _row(self, record: JobRecord, scope: CacheScope, now: float, use: CacheUse) -> UseRow:
        job = _document(record)
        words = [job.spec.job_type, *job.role(use.role).command]
        program = hashlib.sha256(msgspec.json.encode(words)).hexdigest()
        return UseRow(record.id, record.user, scope.id_of(use.key), program, now, use)


def _document(record: JobRecord) -> UnifiedJob:
    return UnifiedJob.model_validate_json(record.doc)
