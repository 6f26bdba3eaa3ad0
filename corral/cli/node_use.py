"""How much of their devices nodes use, for `corral top`; the server tells it to administrators."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.cli.job_use import ASK_AGAIN, LINE_WIDTH, PAST, STEP
from corral.cli.paging import items
from corral.cli.sparkline import sparkline
from corral.kernel.errors import CorralError

if TYPE_CHECKING:
    from corral.client import Client
    from corral.client.schema import SeriesView

MOST_SHOWN: Final = 20
"""Nodes that are shown."""
HERE: Final = "(server)"
"""The machine that the server runs on: its series name no node."""
_FAMILY: Final = "corral_device_use_ratio"


class NodeRow(NamedTuple):
    """The devices of one node over the last minutes."""

    node: str
    devices: int
    """Devices that told their use."""
    percent: float
    """The last mean of these devices."""
    line: str

    def cells(self) -> tuple[object, ...]:
        """The cells of its row in a table."""
        return self.node, self.devices, f"{self.percent:.0f}% {self.line}"


class NodeUse:
    """Asks the server for the figures of devices now and then."""

    def __init__(self, client: Client, steady: Callable[[], float] = time.monotonic) -> None:
        """`steady` is a clock in seconds that is never set."""
        self._client, self._steady = client, steady
        self._rows: list[NodeRow] = []
        self._until = 0.0

    def rows(self) -> list[NodeRow]:
        """The nodes that use least of their devices, first; none where the server does not tell."""
        now = self._steady()
        if not self._until or now >= self._until:
            self._until = now + ASK_AGAIN
            try:
                self._rows = _rows(self._asked())
            except CorralError:  # it keeps no series, or does not tell them to this user
                self._rows = []
        return self._rows

    def _asked(self) -> list[SeriesView]:
        """The series of devices: of all nodes, or where an answer cannot hold them, of the first nodes with devices."""
        begin = (datetime.now(UTC) - PAST).isoformat()
        answer = self._client.series([_FAMILY], begin=begin, step=STEP)
        if not answer["leftOut"]:
            return answer["items"]
        nodes = [each["name"] for each in items(self._client.nodes, limit=200) if each["total"]["devices"]]
        found: list[SeriesView] = []
        for node in nodes[:MOST_SHOWN]:
            found += self._client.series([_FAMILY], labels=[f"node={node}"], begin=begin, step=STEP)["items"]
        return found


def _rows(series: Sequence[SeriesView]) -> list[NodeRow]:
    nodes = defaultdict[str, list["SeriesView"]](list)
    for each in series:
        nodes[each["labels"].get("node", HERE)].append(each)
    rows = []
    for node, found in nodes.items():
        values = _percents(found)
        known = [each for each in values if each is not None]
        if known:
            rows.append(NodeRow(node, len(found), known[-1], sparkline(values, LINE_WIDTH, (0.0, 100.0))))
    return sorted(rows, key=lambda each: (round(each.percent), each.node))[:MOST_SHOWN]


def _percents(series: Sequence[SeriesView]) -> list[float | None]:
    """The mean use of devices by step, of those that told it; None is a step of which none did."""
    columns = zip(*(each["mean"] for each in series), strict=True)
    told = ([value for value in column if value is not None] for column in columns)
    return [100 * sum(each) / len(each) if each else None for each in told]
