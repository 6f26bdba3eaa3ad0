"""Why: a log that grows is on the disk of whoever leads; fronts of other machines read and follow it through control."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.storage.shelf import Log, LogShelf

MOST_BYTES: Final = 1 << 20
"""Bytes of one answer."""
MOST_SECONDS: Final = 5.0
"""How long one question may wait for more."""


class LogDoor:
    """One question: the bytes of a log from an offset on, once there are any."""

    def __init__(self, shelf: LogShelf) -> None:
        self._shelf = shelf

    def route(self) -> Route:
        """Where it is asked: `/logs/ATTEMPT/STREAM?offset=&limit=&wait=&tail=`."""
        return Route("/logs/{attempt}/{stream}", self._log)

    async def _log(self, request: Request) -> Response:
        """The bytes; the headers say where they begin, how many there are in all, and whether that is all."""
        attempt, stream = AttemptId(request.path_params["attempt"]), request.path_params["stream"]
        offset, limit, tail = (_number(request, name) for name in ("offset", "limit", "tail"))
        source: Log = await self._shelf.source(attempt, stream)
        try:
            if tail is not None:
                offset, limit = await source.tail(tail), 0
            at = offset or 0
            if wait := _number(request, "wait"):
                await source.wait(at, min(MOST_SECONDS, wait))
            complete = await source.complete()  # asked first: what is written in between is no end that was missed
            begin, data = await source.read(at, min(MOST_BYTES, limit)) if limit else (at, b"")
            headers = {
                "X-Corral-Offset": str(begin),
                "X-Corral-Size": str(await source.size()),
                "X-Corral-There": str(int(source.exists())),
                "X-Corral-Complete": str(int(complete)),
            }
        finally:
            await source.close()
        return Response(data, media_type="application/octet-stream", headers=headers)


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput("bad-question", f"{name} must be a number.")
    return int(text) if text else None
