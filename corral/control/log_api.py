"""Serve growing logs to fronts on other machines; such a log is on the disk of the leading control."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.kernel.errors import InvalidInput
from corral.kernel.ids import AttemptId
from corral.storage.log_sources import Log, LogSources

MOST_BYTES: Final = 1 << 20
"""Bytes of one response at most."""
MOST_SECONDS: Final = 5.0
"""Seconds that one request may wait for more bytes."""


class LogApi:
    """One endpoint: the bytes of a log from an offset on, once there are any."""

    def __init__(self, sources: LogSources) -> None:
        self._sources = sources

    def route(self) -> Route:
        """The route `/logs/ATTEMPT/STREAM?offset=&limit=&wait=&tail=`."""
        return Route("/logs/{attempt}/{stream}", self._log)

    async def _log(self, request: Request) -> Response:
        """The bytes; headers give their offset, the log's size, whether it exists, and whether it is complete."""
        attempt, stream = AttemptId(request.path_params["attempt"]), request.path_params["stream"]
        offset, limit, tail = (_number(request, name) for name in ("offset", "limit", "tail"))
        source: Log = await self._sources.source(attempt, stream)
        try:
            if tail is not None:
                offset, limit = await source.tail(tail), 0
            at = offset or 0
            if wait := _number(request, "wait"):
                await source.wait(at, min(MOST_SECONDS, wait))
            complete = await source.complete()  # before the read: a write in between then cannot be taken for the end
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
