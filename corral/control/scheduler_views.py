"""The scheduler's state for front: queues, waiting jobs and cells, cached so that it never slows the loop down."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from corral.control.core.world import World
from corral.control.forecast.estimates import expected_stays, given_estimate
from corral.control.forecast.forecasts import Forecasts
from corral.control.loop import Control
from corral.kernel.errors import InvalidInput, NotFound
from corral.kernel.ids import JobId
from corral.model.device_timeline import MOST_TIMELINE_NODES
from corral.model.estimate_views import estimate_view, forecast_view
from corral.model.plan import Reasons
from corral.model.views import EstimateView
from corral.scheduler.views import CellTreeView, queue_standings, waiting_line

View = TypeVar("View")
World_is_there = Callable[[], Awaitable[Control]]

_KEPT_FOR: Final = 20.0
"""Multiple of a view's cost in thread time for which it is reused.

So views take at most a twentieth of the loop's time.
"""
_MOST_KEPT: Final = 32
_MOST: Final = 5000
_DEEPEST: Final = 12


class _Kept(NamedTuple):
    """A cached view of a state of the world; used until `until` even when the state has changed."""

    state: tuple[int, ...]
    until: float
    view: Any


class Views:
    """Serves views of the queues, the waiting jobs and the cells."""

    def __init__(self, world_is_there: World_is_there, forecasts: Forecasts) -> None:
        self._world_is_there = world_is_there
        self._forecasts = forecasts
        self._views: dict[str, _Kept] = {}
        """Cached views; the last used comes last."""

    def routes(self) -> list[Route]:
        """The routes of the views."""
        return [
            Route("/overview/queues", self._queues),
            Route("/overview/line", self._line),
            Route("/overview/cells", self._cells),
            Route("/overview/hived", self._hived),
            Route("/overview/stays", self._stays),
        ]

    async def _queues(self, _: Request) -> Response:
        """The deserved and used resources of every queue, in tree order."""
        control = await self._world_is_there()
        world, now = control.world, control.clock.now()
        return self._answer(
            "queues", world, lambda: queue_standings(world.cluster, world.queue, now, world.planner.owners_of)
        )

    async def _line(self, request: Request) -> Response:
        """A page of the waiting jobs, in queue order, each with its estimated start."""
        control = await self._world_is_there()
        forecast = await self._forecasts.latest() if len(control.world.queue) else None
        world, now = control.world, control.clock.now()
        only, limit, after = (
            request.query_params.get("queue", ""),
            _number(request, "limit", 100),
            _number(request, "after"),
        )

        def estimate_of(job: JobId, reasons: Reasons | None) -> EstimateView | None:
            found = given_estimate(world, forecast, self._forecasts.trouble, job, reasons, now)
            return None if found is None else estimate_view(found, (), now)

        def make() -> object:
            line = waiting_line(
                world.cluster.queues, world.queue, control.policy, now,
                name_of=partial(_name, world), estimate_of=estimate_of, only=only, limit=min(limit, _MOST), after=after,
            )  # fmt: skip
            return msgspec.structs.replace(line, forecast=None if forecast is None else forecast_view(forecast.mark))

        return self._answer(f"line {limit} {after} {only}", world, make, made_from=id(forecast))

    async def _cells(self, request: Request) -> Response:
        """A part of the tree of cells."""
        control = await self._world_is_there()
        world, now = control.world, control.clock.now()
        under = request.query_params.get("under", "")
        depth, limit = _number(request, "depth", 2), _number(request, "limit", 1000)
        after = _number(request, "after")

        def make() -> object:
            tree = self._kept(
                "cells", world, lambda: CellTreeView(world.cluster, partial(_name, world), world.planner.owners_of)
            )
            return tree.show(now, under=under, depth=min(depth, _DEEPEST), limit=min(limit, _MOST), after=after)

        return self._answer(f"cells {depth} {limit} {after} {under}", world, make)

    async def _hived(self, request: Request) -> Response:
        """HiveD's own documents; `what` is the rest of their address."""
        from corral.scheduler.planners.hived.algorithm.inspect_api import inspected
        from corral.scheduler.planners.hived.planner import HivedPlanner

        control = await self._world_is_there()
        world, what = control.world, request.query_params.get("what", "")
        planner = world.planner
        if not isinstance(planner, HivedPlanner):
            message = "HiveD's documents are there under `preset: hived` only; see /api/v3/cells and /api/v3/queues."
            raise NotFound("hived-not-in-force", message)
        return self._answer(f"hived {what}", world, partial(inspected, planner.hived.algorithm.state, what))

    async def _stays(self, request: Request) -> Response:
        """What the forecast has on each `node`."""
        await self._world_is_there()
        nodes = request.query_params.getlist("node")[:MOST_TIMELINE_NODES]
        found = expected_stays(await self._forecasts.latest(), self._forecasts.trouble, nodes)
        return Response(msgspec.json.encode(found), media_type="application/json")

    def _answer(self, what: str, world: World, make: Callable[[], object], *, made_from: int = 0) -> Response:
        """The JSON response of a view."""
        content = self._kept(what, world, lambda: msgspec.json.encode(make()), made_from=made_from)
        return Response(content, media_type="application/json")

    def _kept(self, what: str, world: World, make: Callable[[], View], *, made_from: int = 0) -> View:
        """The cached view, if nothing has changed since or a new one would cost too much; else a new one.

        `made_from` identifies what it shows besides the world.
        """
        state = (id(world.planner), *world.planner.revision, made_from)
        kept = self._views.pop(what, None)
        if kept is None or (kept.state != state and time.perf_counter() >= kept.until):
            begun = time.thread_time()  # not wall time: a machine that stalls must not make a view look expensive
            made = make()
            cost = time.thread_time() - begun
            kept = _Kept(state, time.perf_counter() + _KEPT_FOR * cost, made)
            while len(self._views) >= _MOST_KEPT:
                del self._views[next(iter(self._views))]
        self._views[what] = kept
        view: View = kept.view
        return view


def _name(world: World, job: JobId) -> str:
    found = world.jobs.get(job)
    return found.name if found is not None else str(job)


def _number(request: Request, name: str, usual: int = 0) -> int:
    given = request.query_params.get(name, "") or str(usual)
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise InvalidInput("bad-question", f"{name} is a whole number.")
    return int(given)
