"""Store the code that users upload for their jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator

from corral.kernel.errors import NotFound, TooLarge, Unavailable
from corral.model.uploads import Uploaded, UploadProgress
from corral.service.access.rules import Decision, Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.storage.code_archives import BlobStore
from corral.store.cluster_views import too_much_code


class CodeArchives:
    """Uploaded code."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock

    @property
    def most_bytes(self) -> int:
        """The largest archive that may be uploaded."""
        return self._context.code_limit

    async def put(
        self, actor: Actor, chunks: AsyncIterator[bytes], *, declared: int | None = None, digest: str = ""
    ) -> Uploaded:
        """Store an uploaded archive; `declared` and `digest` are its length and SHA-256 as stated by the caller.

        Raises TooLarge before reading when the account would exceed its quota, unless it keeps this archive already.
        Raises TooLarge, InvalidInput and Unavailable as the blob store does, Unavailable when there is none.
        """
        decision = await self._context.check(actor, "code.put", Resource("code", owner=actor.user))
        blobs = self._blobs()
        if declared:
            await self._check_quota(actor, digest, declared, 0)
        digest, size = await blobs.put(chunks, self._context.code_limit, self._context.workers, digest)
        return await self._record(actor, decision, digest, size)

    async def append(
        self, actor: Actor, digest: str, chunks: AsyncIterator[bytes], *, offset: int, declared: int, last: bool
    ) -> UploadProgress:
        """Add `declared` bytes to the upload of an archive, which is stored after the `last` ones.

        Raises TooLarge before reading when the archive would be too long or pass the account's quota, with the parts
        of its other uploads; Conflict for another offset than the upload's; otherwise what `put` raises.
        """
        decision = await self._context.check(actor, "code.put", Resource("code", owner=actor.user))
        blobs, most = self._blobs(), self._context.code_limit
        if offset + declared > most:
            raise TooLarge("code-too-large", f"The code archive is longer than {most} bytes; use .corralignore.")
        with blobs.partial.claim(actor.user, digest, offset) as part:
            others = blobs.partial.kept(actor.user) - offset
            await self._check_quota(actor, digest, offset + declared, others)
            size = await blobs.append(chunks, part, most, self._context.workers, digest if last else "")
            if last:
                await self._record(actor, decision, digest, size)
        return UploadProgress(digest, size, last)

    async def progress(self, actor: Actor, digest: str) -> UploadProgress:
        """How far the upload of an archive is.

        Raises NotFound when the actor has sent nothing of it, or what was sent is gone.
        """
        whole = await self.size(actor, digest)
        if whole is not None:
            return UploadProgress(digest, whole, True)
        size = self._context.blobs.partial.size(actor.user, digest) if self._context.blobs else None
        if size is None:
            raise NotFound("no-such-upload", "No part of this archive is kept here.")
        return UploadProgress(digest, size, False)

    async def cancel(self, actor: Actor, digest: str) -> None:
        """Delete the part of an archive.

        Raises NotFound when there is none, Conflict while it is being sent.
        """
        await self._context.check(actor, "code.put", Resource("code", digest, owner=actor.user))
        self._blobs().partial.remove(actor.user, digest)

    async def size(self, actor: Actor, digest: str) -> int | None:
        """The size of an archive that the actor has uploaded; None when there is none, or when it is gone."""
        await self._context.check(actor, "code.read", Resource("code", digest, owner=actor.user))
        if self._context.blobs is None or await self._store.use_blob(digest, actor.user, self._clock.now()) is None:
            return None
        return await self._context.blobs.size(digest)

    def _blobs(self) -> BlobStore:
        if self._context.blobs is None:
            raise Unavailable("no-blob-store", "Code cannot be stored on this server.")
        return self._context.blobs

    async def _check_quota(self, actor: Actor, digest: str, size: int, others: int) -> None:
        """Raise TooLarge when an archive of that length, beside `others` bytes of parts, is more than the quota."""
        most = self._context.allowance.code_bytes
        if most:
            kept = others + await self._store.code_bytes(actor.user)
            if kept + size > most and not await self._keeps(actor, digest, size):
                raise too_much_code(actor.user, kept, size, most)

    async def _record(self, actor: Actor, decision: Decision, digest: str, size: int) -> Uploaded:
        """Note that an archive is the actor's, unless that passes the quota: then it is deleted again."""
        blobs = self._blobs()
        try:
            most = self._context.allowance.code_bytes
            await self._store.put_blob(digest, actor.user, size, self._clock.now(), most=most)
        except TooLarge:
            if not await self._store.has_blob(digest):  # nothing else would ever remove it
                await blobs.remove(digest)
            raise
        await self._context.note(actor, "code.put", Resource("code", digest, owner=actor.user), decision, size=size)
        return Uploaded(digest, size)

    async def _keeps(self, actor: Actor, digest: str, size: int) -> bool:
        """Whether the actor keeps an archive of this SHA-256 and length."""
        return bool(digest) and await self._store.use_blob(digest, actor.user, self._clock.now()) == size
