"""The states of a question that is answered later, as server-sent events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Protocol

import msgspec
from fastapi import Path, Request

from corral.api.held_stream import HeldStream
from corral.api.http_protocol import TOO_SLOW
from corral.api.json_responses import answers
from corral.service.actor import Actor

_ENCODER: Final = msgspec.json.Encoder()
_CUT: Final = b": %b\n\n" % TOO_SLOW.encode()

Number = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$", description="The `id` of a question that is answered later.")]
EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "Its states, as events `running`, then one `done`, `failed` or `cancelled`",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
} | {status: shown for status, shown in answers(None).items() if status != 200}
"""The responses of a route that streams states."""


class State(Protocol):
    """What is told of a question."""

    @property
    def state(self) -> str:
        """`running`, `done`, `failed` or `cancelled`."""
        ...


def question_events(request: Request, actor: Actor, states: AsyncIterator[State | None]) -> HeldStream:
    """Stream the states of a question; None is a heartbeat."""
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return HeldStream(request, actor, _frames(states), cut=_CUT, media_type="text/event-stream", headers=headers)


async def _frames(states: AsyncIterator[State | None]) -> AsyncIterator[bytes]:
    """The states as server-sent events; a comment is a heartbeat."""
    async for each in states:
        if each is None:
            yield b": still here\n\n"
        else:
            yield b"event: %b\ndata: %b\n\n" % (each.state.encode(), _ENCODER.encode(each))
