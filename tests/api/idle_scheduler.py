"""A stand-in for control's API over an idle scheduler, for answers that the store does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from corral.control.core.world import World
from corral.control.scheduler_views import Views
from corral.kernel.clock import Clock
from corral.kernel.errors import CorralError, Unavailable
from corral.scheduler import BuiltinPlanner, find_policy


class IdleScheduler:
    """Control's API with no job running or waiting."""

    def __init__(self, clock: Clock) -> None:
        control = SimpleNamespace(world=World(BuiltinPlanner()), clock=clock, policy=find_policy())

        async def world_is_there() -> Any:
            return control

        self._app = Starlette(
            routes=Views(cast(Any, world_is_there)).routes(), exception_handlers={CorralError: _refusal}
        )

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """Control's answer; every path but the overview is unavailable."""
        if not path.startswith("/overview/"):
            raise Unavailable("no-control", "Nobody answers.")
        transport = httpx2.ASGITransport(app=self._app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
            answer = await client.get(path)
        if answer.status_code >= 400:
            raise CorralError(**answer.json())
        return answer.json()


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, CorralError)
    return JSONResponse({"code": error.code, "message": error.message}, status_code=error.status)
