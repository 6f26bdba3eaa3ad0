"""Store the code that users upload for their jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator

from corral.kernel.errors import TooLarge, Unavailable
from corral.model.views import Uploaded
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.store.cluster_views import too_much_code


class CodeArchives:
    """Uploaded code."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    async def put(
        self, actor: Actor, chunks: AsyncIterator[bytes], *, declared: int | None = None, digest: str = ""
    ) -> Uploaded:
        """Store an uploaded archive; `declared` and `digest` are its length and SHA-256 as stated by the caller.

        Raises TooLarge before reading when the account would exceed its quota, unless it keeps this archive already.
        Raises TooLarge, InvalidInput and Unavailable as the blob store does, Unavailable when there is none.
        """
        decision = await self._context.check(actor, "code.put", Resource("code", owner=actor.user))
        if self._context.blobs is None:
            raise Unavailable("no-blob-store", "Code cannot be stored on this server.")
        most = self._context.allowance.code_bytes
        if most and declared:
            kept = await self._store.code_bytes(actor.user)
            if kept + declared > most and not await self._keeps(actor, digest, declared):
                raise too_much_code(actor.user, kept, declared, most)
        digest, size = await self._context.blobs.put(chunks, self._context.code_limit, self._context.workers, digest)
        try:
            await self._store.put_blob(digest, actor.user, size, self._clock.now(), most=most)
        except TooLarge:
            if not await self._store.has_blob(digest):  # nothing else would ever remove it
                await self._context.blobs.remove(digest)
            raise
        await self._context.note(actor, "code.put", Resource("code", digest, owner=actor.user), decision, size=size)
        return Uploaded(digest, size)

    async def size(self, actor: Actor, digest: str) -> int | None:
        """The size of an archive that the actor has uploaded; None when there is none, or when it is gone."""
        await self._context.check(actor, "code.read", Resource("code", digest, owner=actor.user))
        if self._context.blobs is None or await self._store.use_blob(digest, actor.user, self._clock.now()) is None:
            return None
        return await self._context.blobs.size(digest)

    async def _keeps(self, actor: Actor, digest: str, size: int) -> bool:
        """Whether the actor keeps an archive of this SHA-256 and length."""
        return bool(digest) and await self._store.use_blob(digest, actor.user, self._clock.now()) == size
