"""Read and await the events of jobs and of the server."""

from __future__ import annotations

from corral.model.page_bounds import MAX_PAGE, unknown_cursor
from corral.model.records import (
    EventRecord,
    Page,
)
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context


class Events:
    """Events of jobs and of the server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def of_job(self, actor: Actor, ref: str, *, limit: int = 200, after: str = "") -> Page[EventRecord]:
        """One page of the job's events in order; `after` is the seq of the last event read.

        Raises InvalidInput `bad-cursor`.
        """
        record, _ = await self._context.job_for(actor, ref, "job.read")
        if after and not (after.isascii() and after.isdigit() and len(after) < 19):
            raise unknown_cursor()
        found = await self._store.events(int(after or 0), limit + 1 if limit < MAX_PAGE else limit, record.id)
        full = len(found) > limit or (limit >= MAX_PAGE and len(found) == limit)
        more = str(found[limit - 1].seq) if full else None
        return Page(found[:limit], more)

    async def of_server(self, actor: Actor, *, limit: int = 100, after: str = "") -> Page[EventRecord]:
        """One page of the server's own events, the latest first."""
        await self._context.check(actor, "event.read", Resource("event"))
        return await self._store.events_of_server(limit=limit, after_cursor=after)

    async def after(self, seq: int, limit: int = 500) -> list[EventRecord]:
        """The events of all jobs after a seq; the caller must filter them with `may_see`."""
        return await self._store.events(seq, limit)

    async def last(self) -> int:
        """The seq of the last event."""
        return await self._store.last_seq()

    async def wait(self, timeout: float) -> None:
        """Wait until something is stored, at most `timeout` seconds."""
        await self._store.wakeup.wait(timeout)

    async def may_listen(self, actor: Actor) -> None:
        """Check that the actor may hold an event stream open.

        Raises Forbidden, for example for the token of a running job.
        """
        await self._context.check(actor, "event.read", Resource("event"))

    async def may_see(self, actor: Actor, event: EventRecord) -> bool:
        """Whether the actor may see an event."""
        return decide(actor, "event.read", Resource("job", event.job)).allowed
