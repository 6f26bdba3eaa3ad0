"""The client through which the service asks control, and the stand-in for a server without control."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from corral.kernel.errors import Unavailable
from corral.workers.shared_file import SharedFile


class ControlClient(Protocol):
    """Client of control, for questions that only control can answer."""

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Return control's JSON answer to a GET of `path`, or to a POST if there is a body.

        `seconds`: how long the answer may take; None is as long as usual.

        Raises Unavailable when no control answers.
        """
        ...

    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        """Return the headers and the body of control's answer to a GET of `path`, unread.

        Raises Unavailable when no control answers.
        """
        ...

    async def collect(self, path: str) -> SharedFile:
        """Return a file with the body of control's answer to a GET of `path`, which may be long.

        Raises Unavailable when no control answers, OSError.
        """
        ...


class NoControl:
    """Client for a server without control; every question fails."""

    async def pull(self, path: str) -> tuple[Mapping[str, str], bytes]:
        """Return what `request` answers, as JSON. Raises its errors."""
        return {}, msgspec.json.encode(await self.request(path))

    async def collect(self, path: str) -> SharedFile:
        """Return a file with what `pull` answers. Raises its errors."""
        _, told = await self.pull(path)
        file = SharedFile()
        file.write(told)
        return file

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Refuse the question.

        Raises Unavailable `no-control`.
        """
        raise Unavailable("no-control", "The scheduler does not answer; try again in a moment.", retry_after=2)
