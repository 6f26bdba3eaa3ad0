"""What front asks of the health of nodes, and what administrators have done about it."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.control.health.keeper import HealthKeeper
from corral.kernel.errors import Conflict, InvalidInput
from corral.kernel.ids import JobId
from corral.model.hangs.scores import RankScores
from corral.model.health.records import HealthAct, HealthSigns


class HealthDoor:
    """The routes of control's API about the health of nodes."""

    def __init__(self, keeper: HealthKeeper | None) -> None:
        """Without a keeper nothing is known of any node."""
        self._keeper = keeper

    def routes(self) -> list[Route]:
        """The routes, for control's API."""
        return [
            Route("/health", self._list),
            Route("/health/ranks/{job}", self._ranks),
            Route("/health/act", self._act, methods=["POST"]),
            Route("/health/signs", self._signs, methods=["POST"]),
        ]

    async def _list(self, _: Request) -> Response:
        """Every node of which anything is known."""
        return _json([] if self._keeper is None else self._keeper.views())

    async def _ranks(self, request: Request) -> Response:
        """How fast the tasks of a running job are, beside each other."""
        job = JobId(request.path_params["job"])
        return _json(RankScores() if self._keeper is None else self._keeper.scores(job))

    async def _act(self, request: Request) -> Response:
        """Move a node to another state for an administrator."""
        asked = _read(await request.body(), HealthAct)
        keeper = self._there()
        return _json(await keeper.act(asked.node, asked.cause, asked.by, asked.why, asked.audit))

    async def _signs(self, request: Request) -> Response:
        """Take the signs of a health monitor; answers how many."""
        asked = _read(await request.body(), HealthSigns)
        self._there().add(asked.signs)
        return _json(len(asked.signs))

    def _there(self) -> HealthKeeper:
        if self._keeper is None:
            raise Conflict("health-off", "The health of nodes is not watched; the setting health says so.")
        return self._keeper


def _read(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidInput("bad-question", f"Control does not understand the request: {error}.") from None


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
