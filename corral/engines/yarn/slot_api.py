"""The HTTP interface for slots: hello, sync, logs and sessions; a plain ASGI application that a server mounts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qs

import msgspec

from corral.engines.yarn.engine import YarnEngine
from corral.engines.yarn.slot_messages import AgentTold, Probed, SlotHello, SlotState
from corral.kernel.errors import CorralError, InvalidInput, NotFound, TooLarge
from corral.kernel.ids import AttemptId

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_Shape = TypeVar("_Shape")
_MOST_BODY: Final = 1024 * 1024
"""Bytes of a call's body."""


class SlotApi:
    """The application for the slots of one engine."""

    def __init__(self, engine: YarnEngine) -> None:
        self._engine = engine

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve one call."""
        if scope["type"] != "http":
            return
        try:
            await self._serve(scope, receive, send)
        except CorralError as error:
            await _answer(send, {"code": error.code, "message": error.message}, error.status)

    async def _serve(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        token = _token(scope)
        match scope["method"], scope["path"].strip("/").split("/"):
            case "POST", ["hello"]:
                identity = _decoded(await _body(receive), SlotHello)
                await _answer(send, {"token": await self._engine.hello(token, identity)})
            case "POST", ["probe"]:
                self._engine.probed(token, _decoded(await _body(receive), Probed))
                await _answer(send, {})
            case "POST", ["agent"]:
                self._engine.agent_told(token, _decoded(await _body(receive), AgentTold))
                await _answer(send, {})
            case "POST", ["sync"]:
                state = _decoded(await _body(receive), SlotState)
                await _answer(send, await self._engine.sync(token, state))
            case "POST", ["log"]:
                attempt, stream, offset = _log_part(scope)
                data = await _body(receive)
                await _answer(send, {"next": await self._engine.append_log(token, attempt, stream, offset, data)})
            case "POST", ["sessions", session, "output"]:
                held = self._engine.session_of(token, session)
                await held.take_output(await _body(receive))
                await _answer(send, {})
            case "GET", ["sessions", session, "input"]:
                await _stream(send, self._engine.session_of(token, session).input_lines())
            case _:
                raise NotFound("no-such-call", "Slots have no such call.")


def _token(scope: _Scope) -> str:
    found = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    return bytes(found).decode("latin-1").removeprefix("Bearer ")


def _log_part(scope: _Scope) -> tuple[AttemptId, str, int]:
    query = parse_qs(scope["query_string"].decode("latin-1"))
    try:
        return AttemptId(query["attempt"][0]), query["stream"][0], int(query["offset"][0])
    except (KeyError, ValueError):
        raise InvalidInput("bad-log-part", "A part of a log comes with attempt, stream and offset.") from None


def _decoded(data: bytes, shape: type[_Shape]) -> _Shape:
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.DecodeError as error:
        raise InvalidInput("bad-slot-call", f"A slot's call cannot be read: {error}.") from None


async def _pieces(receive: _Receive) -> AsyncIterator[bytes]:
    """The body as it comes, to its end or the caller's."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


async def _body(receive: _Receive) -> bytes:
    """The whole body. Raises TooLarge."""
    data = bytearray()
    async for piece in _pieces(receive):
        data += piece
        if len(data) > _MOST_BODY:
            raise TooLarge("slot-call-too-large", f"A slot's call has at most {_MOST_BODY} bytes.")
    return bytes(data)


async def _answer(send: _Send, content: Any, status: int = 200) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(content)})


async def _stream(send: _Send, lines: AsyncIterator[bytes]) -> None:
    headers = [(b"content-type", b"application/x-ndjson")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async for line in lines:
        await send({"type": "http.response.body", "body": line, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
