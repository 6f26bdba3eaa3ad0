"""Why: OpenPAI's clients delete what still runs and go on; here a job is removed once it is over, nobody waiting."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import structlog

from corral.kernel.errors import CorralError
from corral.service.actor import Actor
from corral.service.jobs import Jobs

_LOOK_SECONDS: Final = 0.2
log = structlog.get_logger()


class Removing(Jobs):
    """Removes jobs behind the answers."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._leaving: set[asyncio.Task[None]] = set()

    async def stop_and_remove(self, actor: Actor, job: str) -> None:
        """Have a job end, which is stored when this returns, and remove it once it has.

        A server that ends meanwhile leaves it as a stopped job. Raises Forbidden, NotFound.
        """
        record, _ = await self.job_for(actor, job, "job.delete")
        if record.live and not record.run.stop_requested:
            await self.stop(actor, job)
        task = asyncio.create_task(self._remove_when_over(actor, record.id))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Leave what has not ended yet as it is."""
        for task in self._leaving:
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await super().close()

    async def _remove_when_over(self, actor: Actor, job: str) -> None:
        record = await self.store.find_job(job)
        while record is not None and record.live:
            await asyncio.sleep(_LOOK_SECONDS)
            record = await self.store.find_job(job)
        if record is None:
            return
        try:
            await self.delete(actor, job)
        except CorralError as error:
            log.warning("a job was not removed", job=job, code=error.code, message=error.message)
