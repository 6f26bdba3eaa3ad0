"""Delete old jobs, logs and code, so that a server's disk use stays bounded."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from corral.control.loop import Control
from corral.kernel.errors import Unavailable
from corral.kernel.ids import JobId
from corral.storage.code_archives import BlobStore
from corral.storage.log_archiver import LogArchiver
from corral.storage.log_files import LogStore

log = structlog.get_logger()

CODE_SECONDS: Final = 86_400.0
"""Seconds for which code that no job names is kept after its upload, last submit, or a client's query for it."""
_EVERY_SECONDS: Final = 600.0
_AT_ONCE: Final = 200


class Housekeeping:
    """Turns old jobs into history, and deletes logs and code that no job needs."""

    def __init__(
        self,
        control: Control,
        logs: LogStore | LogArchiver,
        code: BlobStore,
        caches: BlobStore | None = None,
        profiles: BlobStore | None = None,
        *,
        retention_seconds: float,
        profile_days: float = 30.0,
    ) -> None:
        """`caches` has the bundles of compiled code, `profiles` those of jobs. `logs` are those of this machine, with
        an archive also those in it; retention 0 keeps every job for ever.
        """
        self._control = control
        self._forget = logs.forget if isinstance(logs, LogArchiver) else logs.remove
        self._code, self._caches, self._profiles = code, caches, profiles
        self._profile_seconds = profile_days * 86_400
        self._retention = retention_seconds
        control.removed = self.forget

    async def run(self) -> None:
        """Tidy every ten minutes until cancelled."""
        await self._control.ready.wait()
        while True:
            try:
                await self.tidy(self._control.clock.now())
            except Unavailable as error:
                log.warning("what is old could not be removed", code=error.code, message=error.message)
            await asyncio.sleep(_EVERY_SECONDS)

    async def tidy(self, now: float) -> None:
        """Retire old jobs, delete expired keys, links, tokens and code, and release their disk space.

        Raises Unavailable, LeadershipLost.
        """
        await self.retire(now)
        store = self._control.store
        await store.forget_old(now)
        more = True
        while more:
            more = await store.give_space_back()
        unused = await store.unused_code(now - CODE_SECONDS)
        for digest in unused:
            await self._code.size(digest)  # raises when the remote folder does not answer: delete nothing then
            if await store.forget_code([digest], now - CODE_SECONDS):
                await self._code.remove(digest)

        self._code.partial.forget_old()
        await self._delete_bundles()
        await self._delete_profiles(now - self._profile_seconds)

    async def _delete_bundles(self) -> None:
        """Delete the files of bundles of compiled code that were removed, evicted or replaced."""
        store = self._control.store
        if self._caches is None:
            return
        for digest in await store.unneeded_bundles():
            await self._caches.remove(digest)
            await store.bundle_deleted(digest)

    async def _delete_profiles(self, before: float) -> None:
        """Delete the profiles that were removed, and those that were taken before a time."""
        store = self._control.store
        if self._profiles is None:
            return
        for each in await store.profiles_to_delete(before):
            if each.digest:
                await self._profiles.remove(each.digest)
            await store.forget_profile(each.id)

    async def retire(self, now: float) -> int:
        """Retire every job that ended longer ago than the retention; returns their number.

        Raises Unavailable, LeadershipLost.
        """
        if not self._retention:
            return 0
        count = 0
        while True:
            gone = await self._control.retire(now - self._retention, _AT_ONCE)
            for job in gone:
                self.forget(job)
            count += len(gone)
            if len(gone) < _AT_ONCE:
                return count

    def forget(self, job: JobId) -> None:
        """Remove the logs of a job that is gone."""
        self._forget(job)
