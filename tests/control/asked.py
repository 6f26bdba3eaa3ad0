"""Control's API as other parts of the server ask it, without the socket."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec

from corral.control.control_api import ControlApi
from corral.kernel.errors import CorralError
from corral.service.control_client import NoControl


class Asked(NoControl):
    """Answers requests of a service; raises CorralError for a refusal."""

    def __init__(self, api: ControlApi) -> None:
        transport = httpx2.ASGITransport(app=api._application())
        self._client = httpx2.AsyncClient(transport=transport, base_url="http://control")

    async def request(self, path: str, body: Any = None, *, seconds: float | None = None) -> Any:
        """GET, or POST of a body as JSON."""
        if body is None:
            answer = await self._client.get(path)
        else:
            answer = await self._client.post(path, content=msgspec.json.encode(body))
        said = answer.json()
        if answer.status_code >= 400:
            raise CorralError(said["code"], said["message"])
        return said
