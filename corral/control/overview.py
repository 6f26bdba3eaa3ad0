"""Why: only control knows what the scheduler knows; it shows it to front, and looking at it never slows the loop down."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.control.loop import Control
from corral.control.world import World
from corral.kernel.errors import InvalidInput
from corral.kernel.ids import JobId
from corral.scheduler.overview import CellTreeView, queue_standings, waiting_line

View = TypeVar("View")
World_is_there = Callable[[], Awaitable[Control]]

_KEPT_FOR: Final = 20.0
"""A view is shown again for so many times as long as it took to make: looking costs the loop at most a twentieth."""
_MOST: Final = 5000
_DEEPEST: Final = 12


class Views:
    """Shows queues, the waiting line and the cells as they are now."""

    def __init__(self, world_is_there: World_is_there) -> None:
        self._world_is_there = world_is_there
        self._kept: dict[str, tuple[object, float, Any]] = {}

    def routes(self) -> list[Route]:
        """The questions."""
        return [
            Route("/overview/queues", self._queues),
            Route("/overview/line", self._line),
            Route("/overview/cells", self._cells),
        ]

    async def _queues(self, _: Request) -> Response:
        """What every queue is owed and holds, in tree order."""
        control = await self._world_is_there()
        world, now = control.world, control.clock.now()
        return _json(self._view("queues", world, partial(queue_standings, world.cluster, world.queue, now)))

    async def _line(self, request: Request) -> Response:
        """A page of what waits, in order."""
        control = await self._world_is_there()
        world, now, asked = control.world, control.clock.now(), request.query_params
        only, limit, after = asked.get("queue", ""), _number(request, "limit", 100), _number(request, "after", 0)

        def make() -> object:
            return waiting_line(
                world.cluster.queues, world.queue, control.policy, now,
                name_of=partial(_name, world), only=only, limit=min(limit, _MOST), after=after,
            )  # fmt: skip

        return _json(self._view(f"line {only} {limit} {after}", world, make))

    async def _cells(self, request: Request) -> Response:
        """A part of the tree of cells."""
        control = await self._world_is_there()
        world, now = control.world, control.clock.now()
        depth, limit = _number(request, "depth", 2), _number(request, "limit", 1000)
        cells = self._view("cells", world, lambda: CellTreeView(world.cluster, partial(_name, world)))
        found = cells.show(
            now,
            under=request.query_params.get("under", ""),
            depth=min(depth, _DEEPEST),
            limit=min(limit, _MOST),
            after=_number(request, "after", 0),
        )
        return _json(found)

    def _view(self, what: str, world: World, make: Callable[[], View]) -> View:
        """What was made before while nothing has changed since, or while making it anew would cost too much."""
        state = (id(world.cluster), world.cluster.revision, world.queue.revision)
        begun = time.perf_counter()
        kept = self._kept.get(what)
        if kept is not None and (kept[0] == state or begun < kept[1]):
            view: View = kept[2]
            return view
        view = make()
        ended = time.perf_counter()
        self._kept = {name: each for name, each in self._kept.items() if each[1] > ended or each[0] == state}
        self._kept[what] = (state, ended + _KEPT_FOR * (ended - begun), view)
        return view


def _name(world: World, job: JobId) -> str:
    found = world.jobs.get(job)
    return found.document.name if found is not None else str(job)


def _number(request: Request, name: str, usual: int) -> int:
    given = request.query_params.get(name, "") or str(usual)
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise InvalidInput("bad-question", f"{name} is a whole number.")
    return int(given)


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
