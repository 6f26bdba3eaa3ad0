"""Remove jobs in the background once they are over, because OpenPAI's clients delete running jobs without waiting."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from corral.kernel.errors import CorralError
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.jobs.job_commands import JobCommands

_LOOK_SECONDS: Final = 0.2
log = structlog.get_logger()


class BackgroundRemoval:
    """Removes jobs in the background."""

    def __init__(self, context: Context, job_commands: JobCommands) -> None:
        self._context = context
        self._store = context.store
        self._job_commands = job_commands
        self._leaving: set[asyncio.Task[None]] = set()

    async def stop_and_remove(self, actor: Actor, job: str) -> None:
        """Stop a job, and remove it in the background once it is over.

        The stop is stored when this returns. If the server ends meanwhile, a stopped job is left. Raises Forbidden,
        NotFound.
        """
        record, _ = await self._context.job_for(actor, job, "job.delete")
        if record.live and not record.run.stop_requested:
            await self._job_commands.stop(actor, job)
        task = asyncio.create_task(self._remove_when_over(actor, record.id))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Cancel the pending removals."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)

    async def _remove_when_over(self, actor: Actor, job: str) -> None:
        record = await self._store.find_job(job)
        while record is not None and record.live:
            await asyncio.sleep(_LOOK_SECONDS)
            record = await self._store.find_job(job)
        if record is None:
            return
        try:
            await self._job_commands.delete(actor, job)
        except CorralError as error:
            log.warning("a job was not removed", job=job, code=error.code, message=error.message)
