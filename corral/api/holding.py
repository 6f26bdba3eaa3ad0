"""A response that goes on for as long as its caller is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import Request
from starlette.types import Message, Receive, Scope, Send

from corral.api.callers import service_of
from corral.api.streams import EndingResponse
from corral.kernel.errors import Unauthenticated
from corral.service.actor import Actor


class HeldStream(EndingResponse):
    """Pieces that are sent until they end, or the caller's token or account does: then the connection breaks.

    A connection that breaks is not taken for the end of a log; who asks again is told why.
    """

    def __init__(
        self,
        request: Request,
        actor: Actor,
        pieces: AsyncIterator[bytes],
        status_code: int = 200,
        *,
        media_type: str,
        headers: dict[str, str],
        cut: bytes = b"",
    ) -> None:
        super().__init__(pieces, cut=cut, status_code=status_code, headers=headers, media_type=media_type)
        self._streams = service_of(request).streams
        self._actor = actor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces.

        Raises Unauthenticated when nothing was sent yet.
        """
        begun = False

        async def noticed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with self._streams.held(self._actor):
                await super().__call__(scope, receive, noticed)
        except Unauthenticated:
            if not begun:
                raise
