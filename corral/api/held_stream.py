"""A streaming response that ends when its caller's token or account does."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import Request
from starlette.types import Message, Receive, Scope, Send

from corral.api.authentication import service_of
from corral.api.stream_limits import EndingResponse
from corral.kernel.errors import Unauthenticated
from corral.service.actor import Actor


class HeldStream(EndingResponse):
    """Sends pieces until they end; breaks the connection when the caller's token or account ends first.

    A broken connection is not mistaken for the end of a log, and the next call is told the reason.
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
        self._streams = service_of(request).context.streams
        self._actor = actor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the pieces.

        Raises Unauthenticated if the caller's access ends before anything is sent.
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
