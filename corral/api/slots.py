"""Pass the calls of engines' agents on other machines (the slots of YARN) to control, where the engines are.

Nothing passes without a token that the engine's kind knows. So a stranger, and a user with an API token, is refused here.
Which of its own attempts an agent may speak about is the engine's to say.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar

import httpx2
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from corral.api.connection_limits import known
from corral.api.rate_limits import MINUTE, CallLimit
from corral.kernel.errors import NotFound, Unavailable

PREFIX: Final = "/api/v3/slots/"
CALLS_A_MINUTE: Final = 3000
"""Calls of one agent, a session's aside: an agent sends its logs ten times a second. All containers of a job share the
token of their first call."""
_CALL: Final = re.compile(r"([a-z0-9-]{1,63})/(hello|sync|log|probe|sessions/[0-9a-f]{32}/(?:output|input))")
_METHODS: Final = {"input": "GET"}

_T = TypeVar("_T")
Agent = Callable[[str], str]
"""Returns the name of the agent that has a token; raises Unauthenticated."""


class Relay(Protocol):
    """Sends a call to control."""

    async def relay(self, method: str, path: str, body: bytes, token: str) -> httpx2.Response:
        """Return control's answer, whose content is still to be read; the caller closes it. Raises Unavailable."""
        ...


class SlotCalls:
    """The ASGI application below `PREFIX`."""

    def __init__(self, agents: Mapping[str, Agent], control: Relay) -> None:
        """`agents` has the engines with agents, by name."""
        self._agents, self._control = agents, control
        self._limit = CallLimit(CALLS_A_MINUTE, MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one call on.

        Raises NotFound, Unauthenticated, TooManyRequests, Unavailable.
        """
        found = _CALL.fullmatch(scope["path"].removeprefix(PREFIX)) if scope["type"] == "http" else None
        agent_of = self._agents.get(found[1]) if found else None
        method = _METHODS.get(found[2].rpartition("/")[2], "POST") if found else ""
        if found is None or agent_of is None or scope["method"] != method:
            raise NotFound("no-such-call", "There is no such call for the agents of an engine.")
        token = _token(scope)
        agent = f"{found[1]} {agent_of(token)}"
        known(scope, agent)
        if not found[2].startswith("sessions/"):
            self._limit.take(agent, "calls of a slot")
        body = await _body(receive)
        query = scope["query_string"].decode("latin-1")
        path = f"/slots/{found[1]}/{found[2]}{'?' if query else ''}{query}"
        answer = await _unless_gone(self._control.relay(method, path, body, token), receive)
        if answer is not None:
            await _pass_on(answer, receive, send)


async def _pass_on(answer: httpx2.Response, receive: Receive, send: Send) -> None:
    """Send control's answer as it comes, until either side ends."""

    async def pieces() -> None:
        headers = [(b"content-type", answer.headers.get("content-type", "application/json").encode())]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
        async for piece in answer.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    try:
        await _unless_gone(pieces(), receive)
    except httpx2.HTTPError:
        raise Unavailable("no-control", "The scheduler went away; try again in a moment.", retry_after=2) from None
    finally:
        await answer.aclose()


async def _unless_gone(work: Coroutine[Any, Any, _T], receive: Receive) -> _T | None:
    """Do the work, and give it up when the caller leaves; then None."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for each in (working, leaving):
            each.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive) -> bytes:
    """The whole body; the guard around the application bounds it."""
    data = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        data += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(data)


def _token(scope: Scope) -> str:
    found = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    return bytes(found[:1000]).decode("latin-1").removeprefix("Bearer ")
