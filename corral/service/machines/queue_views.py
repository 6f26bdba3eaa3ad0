"""Queues, the waiting list and cells: stored data, with the scheduler's view if control answers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from corral.kernel.errors import CorralError, InvalidInput, NotFound, Unavailable
from corral.kernel.units import devices
from corral.model.queue_views import CellTree, QueueStanding, QueueView, WaitingLine
from corral.model.records import LIVE_PHASES, Page
from corral.service.access.rules import Resource, decide
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.list_cursor import page_start
from corral.store.cluster_views import Admission

_MOST_MANAGERS: Final = 100
"""Most managers that a queue's view names."""


class Queues:
    """Queues, the waiting list, and the cell tree with owners and users."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def page(self, actor: Actor, *, limit: int = 200, after: str = "") -> Page[QueueView]:
        """One page of the queues with their jobs, parents first; with each queue's standing if control answers."""
        await self._context.check(actor, "queue.read", Resource("queue"))
        views = await self._all_queues(actor)
        begin = page_start(after, len(views))
        return Page(views[begin : begin + limit], str(begin + limit) if begin + limit < len(views) else None)

    async def get(self, actor: Actor, name: str) -> QueueView:
        """One queue.

        Raises NotFound.
        """
        await self._context.check(actor, "queue.read", Resource("queue", name))
        views = await self._all_queues(actor)
        found = next((view for view in views if view.name == name), None)
        if found is None:
            known = ", ".join(view.name for view in views[:20])
            raise NotFound("queue-not-found", f"There is no queue {name[:100]}; they are {known}.")
        return msgspec.structs.replace(found, managers=await self._managers(name))

    async def waiting_line(self, actor: Actor, *, queue: str = "", limit: int = 100, after: str = "") -> WaitingLine:
        """One page of the waiting list, in the order of the next cycle: of a queue and its descendants, or of all.

        Raises Unavailable while no control answers.
        """
        await self._context.check(actor, "queue.read", Resource("queue", queue))
        asked = urlencode({"queue": queue, "limit": limit, "after": _number(after)})
        return msgspec.convert(await self._context.control.request(f"/overview/line?{asked}"), WaitingLine)

    async def cells(
        self,
        actor: Actor,
        *,
        engine: str = "",
        under: str = "",
        depth: int = 2,
        limit: int = 1000,
        after: str = "",
    ) -> CellTree:
        """The cell `under` (or an engine, or all), with its content to a depth: at most `limit` cells and devices.

        Raises NotFound for an unknown cell, InvalidInput for both an engine and a cell, Unavailable while no control
        answers.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        if engine and under:
            raise InvalidInput("engine-and-cell", "A cell is in one engine already: ask for `engine` or `under`.")
        cell = f"{engine}|engine:{engine}" if engine else under
        asked = urlencode({"under": cell, "depth": depth, "limit": limit, "after": _number(after)})
        try:
            return msgspec.convert(await self._context.control.request(f"/overview/cells?{asked}"), CellTree)
        except CorralError as error:
            if error.code == "cell-not-found":
                raise NotFound(error.code, error.message) from None
            raise

    async def _managers(self, queue: str) -> tuple[str, ...]:
        """The accounts whose groups manage a queue or one above it, at most 100."""
        admission = await self._store.admission()
        managed = {
            group.name: admission.managed(group.manages) for group in await self._store.groups() if group.manages
        }
        groups = {name for name, queues in managed.items() if queue in queues or "*" in queues}
        if not groups:
            return ()
        users = await self._store.all_users()
        found = [user.name for user in users if not user.disabled and groups.intersection(user.memberships)]
        return tuple(found[:_MOST_MANAGERS])

    async def _all_queues(self, actor: Actor) -> list[QueueView]:
        docs: dict[str, dict[str, Any]] = {queue.name: queue.doc for queue in await self._store.queues()} or {
            "default": {}
        }
        counts = await self._store.count_jobs()
        millis: dict[str, int] = defaultdict(int)
        for holder in await self._store.holders():
            millis[holder.queue] += holder.task.placement.device_millis if holder.task.placement else 0
        standings = await self._standings()
        # Control may not have folded the deletion of a queue yet: the stored documents decide which queues there are.
        standings = {name: each for name, each in standings.items() if name in docs or _live(counts.get(name, {}))}
        admission = await self._store.admission()
        rest = sorted(docs.keys() - standings.keys())
        return [
            QueueView(
                name,
                running=sum(counts.get(name, {}).get(phase, 0) for phase in ("starting", "running", "stopping")),
                waiting=counts.get(name, {}).get("waiting", 0),
                devices=devices(millis.get(name, 0)),
                doc=docs.get(name, {}),
                standing=standings.get(name),
                members_only=name in admission.granted,
                may_submit=_may_submit(actor, name, admission),
            )
            for name in (*standings, *rest)
        ]

    async def _standings(self) -> dict[str, QueueStanding]:
        """Control's standing of each queue, in tree order; empty while it does not answer."""
        try:
            found = msgspec.convert(await self._context.control.request("/overview/queues"), list[QueueStanding])
        except Unavailable:
            return {}
        return {each.name: each for each in found}


def _may_submit(actor: Actor, queue: str, admission: Admission) -> bool:
    """Whether a submission of the actor to the queue would be let through."""
    resource = Resource("queue", queue, queue=queue, restricted=queue in admission.granted)
    return queue not in admission.closed and decide(actor, "job.submit", resource).allowed


def _live(counts: dict[str, int]) -> int:
    return sum(counts.get(phase, 0) for phase in LIVE_PHASES)


def _number(after: str) -> int:
    return page_start(after, 1_000_000_000)
