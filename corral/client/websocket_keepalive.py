"""Connections of a WebSocket client that end when their server is silent, and not when it or the client is slow to read.

`websockets` ends a connection whose ping is not answered in time. But a server that leaves input unread does not see the
ping, and a client that leaves output unread does not see the answer. So here every frame from the server counts as an
answer, and a client that does not read waits for none; its pings tell the server that it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable
from typing import Any, Final

from websockets.asyncio.client import ClientConnection as AsyncConnection
from websockets.sync.client import ClientConnection

PING_SECONDS: Final = 10.0
"""Seconds between two pings: half of those for which a server waits for a sign of its client."""


class PatientConnection(ClientConnection):
    """A connection of a thread."""

    def process_event(self, event: Any) -> None:
        """Process a frame, which shows that the server is there."""
        super().process_event(event)
        _count_as_answered(self)

    def ping(self, *args: Any, **options: Any) -> threading.Event:
        """Send a ping; the event is set at the next frame, or at once while frames are left unread."""
        answered = super().ping(*args, **options)
        if self.recv_messages.paused:
            _count_as_answered(self)
        return answered


class AsyncPatientConnection(AsyncConnection):
    """A connection of an event loop."""

    def process_event(self, event: Any) -> None:
        """Process a frame, which shows that the server is there."""
        super().process_event(event)
        _count_as_answered(self)

    async def ping(self, *args: Any, **options: Any) -> Awaitable[float]:
        """Send a ping; the future is done at the next frame, or at once while frames are left unread."""
        answered = await super().ping(*args, **options)
        if self.recv_messages.paused:
            _count_as_answered(self)
        return answered


def _count_as_answered(connection: PatientConnection | AsyncPatientConnection) -> None:
    if pending := list(connection.pending_pings):
        connection.acknowledge_pings(pending[-1])
