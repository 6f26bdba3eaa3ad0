"""The times that a job hung, and the bundles of what its ranks did then."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from corral.kernel.errors import NotFound
from corral.model.hangs.records import HUNG, HangList, hang_of
from corral.model.hangs.scores import RankScores
from corral.service.access.job_access import job_resource
from corral.service.actor import Actor
from corral.service.context import Context

_NAME: Final = re.compile(r"[0-9]{8}-[0-9]{6}")


class JobHangs:
    """Jobs that hung."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def of_job(self, actor: Actor, ref: str) -> HangList:
        """The times that a job hung, the latest first. Raises NotFound."""
        record, _ = await self._context.job_for(actor, ref, "job.read")
        return HangList(tuple(map(hang_of, await self._store.events_of(record.id, kinds=(HUNG,)))))

    async def ranks(self, actor: Actor, ref: str) -> RankScores:
        """How fast the tasks of a running job make steps now, beside each other, the slowest first.

        Raises NotFound, Unavailable when control does not answer.
        """
        record, _ = await self._context.job_for(actor, ref, "job.read")
        if not record.live:
            return RankScores()
        return msgspec.convert(await self._context.control.request(f"/health/ranks/{record.id}"), RankScores)

    async def bundle(self, actor: Actor, ref: str, name: str) -> bytes:
        """A bundle of stacks, logs and figures as a tar.gz, for those who may enter the job's tasks; each is noted.

        Raises NotFound `no-such-bundle`, Unavailable when control does not answer.
        """
        record, decision = await self._context.job_for(actor, ref, "job.exec")
        if not _NAME.fullmatch(name):
            raise NotFound("no-such-bundle", f"A bundle is called like 20261128-190501, not {name[:50]!r}.")
        await self._context.note(actor, "job.exec", job_resource(record), decision, bundle=name)
        _, data = await self._context.control.pull(f"/hangs/{record.id}/{name}")
        return data
