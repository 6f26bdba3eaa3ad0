"""The HTTP interface for slots: hello, sync, logs and sessions; an application that control's API mounts."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from corral.engines.yarn.engine import SlotHello, SlotState, YarnEngine
from corral.kernel.errors import CorralError, InvalidInput, TooLarge
from corral.kernel.ids import AttemptId

_Shape = TypeVar("_Shape")
_MOST_BODY = 2 * 1024 * 1024


def application(engine: YarnEngine) -> Starlette:
    """The application for the slots of one engine."""

    async def hello(request: Request) -> Response:
        identity = _decoded(await _body(request), SlotHello)
        return JSONResponse({"token": await engine.hello(_token(request), identity)})

    async def sync(request: Request) -> Response:
        state = _decoded(await _body(request), SlotState)
        orders = await engine.sync(_token(request), state)
        return Response(msgspec.json.encode(orders), media_type="application/json")

    async def log(request: Request) -> Response:
        query = request.query_params
        try:
            offset = int(query["offset"])
            attempt, stream = AttemptId(query["attempt"]), query["stream"]
        except (KeyError, ValueError):
            raise InvalidInput("bad-log-part", "A part of a log comes with attempt, stream and offset.") from None
        data = await _body(request)
        return JSONResponse({"next": await engine.append_log(_token(request), attempt, stream, offset, data)})

    async def output(request: Request) -> Response:
        session = engine.session_of(_token(request), request.path_params["session"])
        await session.take_output(request.stream())
        return JSONResponse({})

    async def lines(request: Request) -> Response:
        session = engine.session_of(_token(request), request.path_params["session"])
        return StreamingResponse(session.input_lines(), media_type="application/x-ndjson")

    routes = [
        Route("/hello", hello, methods=["POST"]),
        Route("/sync", sync, methods=["POST"]),
        Route("/log", log, methods=["POST"]),
        Route("/sessions/{session}/output", output, methods=["POST"]),
        Route("/sessions/{session}/input", lines),
    ]
    return Starlette(routes=routes, exception_handlers={CorralError: _refusal})


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    return JSONResponse({"code": error.code, "message": error.message}, status_code=error.status)


def _token(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _decoded(data: bytes, shape: type[_Shape]) -> _Shape:
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.DecodeError as error:
        raise InvalidInput("bad-slot-call", f"A slot's call cannot be read: {error}.") from None


async def _body(request: Request) -> bytes:
    """The whole body. Raises TooLarge."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > _MOST_BODY:
            raise TooLarge("slot-call-too-large", f"A slot's call has at most {_MOST_BODY} bytes.")
    return bytes(data)
