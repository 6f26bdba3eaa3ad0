"""Devices over time: who was on them, from what is stored, and who is expected to be, from control's forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec

from corral.kernel.errors import InvalidInput, NotFound, Unavailable
from corral.model.device_timeline import (
    LONGEST_WINDOW,
    MOST_BARS,
    MOST_TIMELINE_NODES,
    DeviceStay,
    DeviceTimeline,
    ExpectedStays,
)
from corral.model.inventory import Node
from corral.model.records import rfc3339, rfc3339_or_none
from corral.model.what_if import DAY, TimelineNode
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context
from corral.service.times import read_time
from corral.store.device_stays import PastStay

_NO_CONTROL: Final = "The scheduler does not answer, so nothing is expected."


class DeviceTimelines:
    """Timelines of the devices of nodes."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def show(
        self, actor: Actor, *, node: str = "", begin: str = "", end: str = "", limit: int = 20, after: str = ""
    ) -> DeviceTimeline:
        """The timeline of one node, or of a page of the nodes with devices; by default a day back and a day ahead.

        Raises InvalidInput for what is no time, and for more than two days; NotFound for an unknown node.
        """
        await self._context.check(actor, "cluster.read", Resource("cluster"))
        now = self._context.clock.now()
        first, last = _window(begin, end, now)
        page, following = await self._nodes(node, min(limit, MOST_TIMELINE_NODES), after)
        names = [each.name for each in page]
        past, past_left_out = await self._context.store.device_stays(names, first, last, now=now, most=MOST_BARS)
        expected = await self._expected(names) if last > now and names else ExpectedStays()
        bars = list(_bars(expected, max(first, now), last))
        return DeviceTimeline(
            at=rfc3339(now),
            begin=rfc3339(first),
            end=rfc3339(last),
            nodes=tuple(TimelineNode(each.name, len(each.devices)) for each in page),
            past=tuple(map(_past, past)),
            past_left_out=past_left_out,
            expected=tuple(bars[:MOST_BARS]),
            expected_left_out=expected.left_out + max(0, len(bars) - MOST_BARS),
            forecast_until=rfc3339(expected.at + expected.seconds) if expected.at else None,
            trouble=expected.trouble,
            next=following,
        )

    async def _nodes(self, name: str, limit: int, after: str) -> tuple[Sequence[Node], str | None]:
        """One node, or a page of those with devices and what the next page begins after."""
        if name:
            row = await self._context.store.node(name)
            if row is None:
                raise NotFound("node-not-found", f"There is no node {name[:100]}; `corral nodes` lists them.")
            return [row.node], None
        rest = [row.node for row in await self._context.store.nodes() if row.node.devices and row.node.name > after]
        page = rest[:limit]
        return page, page[-1].name if len(rest) > len(page) else None

    async def _expected(self, nodes: Sequence[str]) -> ExpectedStays:
        """What the forecast has on these nodes; without an answer of control the reason alone."""
        asked = urlencode([("node", name) for name in nodes])
        try:
            found = await self._context.control.request(f"/overview/stays?{asked}")
        except Unavailable:
            return ExpectedStays(trouble=_NO_CONTROL)
        return msgspec.convert(found, ExpectedStays)


def _window(begin: str, end: str, now: float) -> tuple[float, float]:
    """Begin and end in seconds since 1970."""
    first = read_time("from", begin) if begin else now - DAY
    last = read_time("to", end) if end else first + LONGEST_WINDOW
    if not first < last <= first + LONGEST_WINDOW or first > now + DAY:
        said = "A timeline begins at most a day after now and before it ends, and is at most 48 hours long."
        raise InvalidInput("bad-window", said)
    return first, last


def _past(stay: PastStay) -> DeviceStay:
    return DeviceStay(
        stay.job, stay.name, stay.user, stay.queue, stay.node, stay.devices, rfc3339(stay.begin),
        rfc3339_or_none(stay.end),
    )  # fmt: skip


def _bars(expected: ExpectedStays, first: float, last: float) -> Iterator[DeviceStay]:
    """The expected stays between two times; what runs already begins with the forecast."""
    for stay in expected.stays:
        begin, end = expected.at + stay.begin, None if stay.end is None else expected.at + stay.end
        if begin < last and (end is None or end > first):
            yield DeviceStay(
                stay.job, stay.name, stay.user, stay.queue, stay.node, stay.devices, rfc3339(begin),
                rfc3339_or_none(end),
            )  # fmt: skip
