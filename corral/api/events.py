"""The event stream: one task reads new events from the store and shares them among all listeners.

The tailer reads new events while there are listeners, and encodes each event once. A listener that falls behind loses
its queue, not its position: it reads on from the store, by sequence number, until it has caught up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from fastapi import Header, Query, Request

from corral.api.authentication import Caller, service_of
from corral.api.held_stream import HeldStream
from corral.api.http_protocol import TOO_SLOW
from corral.api.json_responses import answers
from corral.api.routers import router_of
from corral.api.stream_limits import HoldsEvents
from corral.kernel.errors import CorralError, Unavailable
from corral.model.records import EventRecord

if TYPE_CHECKING:
    from corral.service.actor import Actor
    from corral.service.service import Service

router = router_of("events")

HEARTBEAT_SECONDS: Final = 15.0
_QUEUE: Final = 1000
_BATCH: Final = 500
_MAX_LISTENERS: Final = 5000
_ENCODER: Final = msgspec.json.Encoder()
_CUT: Final = b": %b\n\n" % TOO_SLOW.encode()
"""A comment of the event stream format, which clients do not treat as an event."""

Framed = tuple[EventRecord, bytes]


class Listener:
    """One open stream, with a bounded queue of events."""

    def __init__(self) -> None:
        self.waiting: deque[Framed] = deque()
        self.news = asyncio.Event()
        self.behind = True
        """Whether it must read from the store first: at the start, and after an overflow of its queue."""

    def offer(self, framed: list[Framed]) -> None:
        """Queue some events; on overflow, drop the queue and mark the listener as behind."""
        if not self.behind:
            if len(self.waiting) + len(framed) > _QUEUE:
                self.waiting.clear()
                self.behind = True
            else:
                self.waiting.extend(framed)
        self.news.set()


class Tailer:
    """Reads new events once for all listeners, and only while there are any."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self.position = 0
        """The sequence number of the last event that was offered to the listeners."""

    @contextlib.asynccontextmanager
    async def listen(self) -> AsyncIterator[Listener]:
        """Register a listener for the duration of the block.

        Raises Unavailable when there are too many.
        """
        if len(self._listeners) >= _MAX_LISTENERS:
            raise Unavailable("too-many-streams", "Too many event streams are open; close some pages.", retry_after=10)
        if self._task is None or self._task.done():
            self.position = await self._service.events.last()
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._tail(), name="event-tailer")
        listener = Listener()
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    async def close(self) -> None:
        """Stop the reader; the streams end with their connections."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _tail(self) -> None:
        while True:
            try:
                events = await self._service.events.after(self.position, _BATCH)
            except CorralError:  # the store is unreachable: streams stay open and continue when it is back
                await asyncio.sleep(1.0)
                continue
            if events:
                framed = [(event, frame(event)) for event in events]
                self.position = events[-1].seq
                for listener in self._listeners:
                    listener.offer(framed)
            if len(events) < _BATCH:
                await self._service.events.wait(HEARTBEAT_SECONDS)

    async def stream(self, actor: Actor, after: int, job: str) -> AsyncIterator[bytes]:
        """Stream events to one caller after sequence number `after`; `job` ("" is any) limits them to one job."""
        async with self.listen() as listener:
            yield b": corral events\n\n"
            cursor = after
            while True:
                listener.news.clear()
                for event, data in await self._share(listener, cursor):
                    if event.seq <= cursor:
                        continue
                    cursor = event.seq
                    if (not job or event.job == job) and await self._service.events.may_see(actor, event):
                        yield data
                if listener.waiting or listener.behind:
                    continue
                try:
                    await asyncio.wait_for(listener.news.wait(), HEARTBEAT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"

    async def changes(self, job: str) -> AsyncIterator[None]:
        """Yield once at the start, then whenever something may have happened to one job."""
        async with self.listen() as listener:
            listener.behind = False
            yield
            while True:
                await listener.news.wait()
                listener.news.clear()
                concerned = listener.behind or any(event.job == job for event, _ in listener.waiting)
                listener.waiting.clear()
                listener.behind = False
                if concerned:
                    yield

    async def _share(self, listener: Listener, cursor: int) -> list[Framed]:
        """Return the next events to send: from the store while behind, else from the queue."""
        if not listener.behind:
            share = list(listener.waiting)
            listener.waiting.clear()
            return share
        listener.waiting.clear()
        listener.behind = False  # events from here on are queued, so none is lost between the store and the queue
        events = await self._service.events.after(cursor, _BATCH)
        if len(events) == _BATCH:
            listener.behind = True
        return [(event, frame(event)) for event in events]


def frame(event: EventRecord) -> bytes:
    """Encode an event in the format of server-sent events (WHATWG HTML, section 9.2)."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.seq, event.kind.encode(), _ENCODER.encode(event))


@router.get(
    "/events",
    dependencies=[HoldsEvents],
    responses={
        200: {
            "description": "The events as they are committed; each `id` is its sequence number",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    }
    | {status: shown for status, shown in answers(None).items() if status != 200},
)
async def events(
    request: Request,
    actor: Caller,
    after: Annotated[int | None, Query(ge=0, le=2**63 - 1, description="Begin after this event; default: now.")] = None,
    job: Annotated[str, Query(max_length=200, description="Only events of this job.")] = "",
    last_event_id: Annotated[
        str, Header(pattern=r"^[0-9]{0,18}$", description="The last event that was received.")
    ] = "",
) -> HeldStream:
    """Stream events as they happen; a stream resumed with `Last-Event-ID` skips nothing."""
    service = service_of(request)
    await service.events.may_listen(actor)
    wanted = (await service.jobs.get(actor, job)).id if job else ""
    begin = int(last_event_id) if last_event_id else after
    if begin is None:
        begin = await service.events.last()
    stream = request.app.state.tailer.stream(actor, begin, wanted)
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return HeldStream(request, actor, stream, cut=_CUT, media_type="text/event-stream", headers=headers)
