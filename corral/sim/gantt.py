"""A Gantt chart of devices: a row for each device, grouped by node, and a bar for each stay of a job."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Final, Literal, NamedTuple

from corral.sim.charts import COLOURS, ticks
from corral.sim.occupancy import Occupancy, Stay

By = Literal["user", "job"]
OTHER: Final = "#999999"
"""The colour of users beyond those that have one of their own."""
LOST: Final = "#000000"
"""The colour of devices whose node has failed."""
_PALETTE: Final = (*COLOURS[:6], "#f0e442", "#332288", "#117733", "#882255")
_MOST_NODES: Final = 128
_MOST_BARS: Final = 20_000
_WIDTH: Final = 1320
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 24, 8, 44
_HIGHEST: Final = 960
"""The most height of all rows, in pixels."""
_HIGHEST_DEVICE: Final = 10
_LINE: Final = 13
"""The least distance of two labels, in pixels."""


class Bar(NamedTuple):
    """Neighbouring devices of one node that a job holds."""

    begin: float
    end: float
    """Both in hours."""
    row: int
    """Counts the devices of all drawn nodes from the top."""
    rows: int
    colour: str
    label: str


@dataclass(frozen=True)
class Gantt:
    """The stays of one simulation; large ones are drawn in part, and `note` says which."""

    title: str
    occupancy: Occupancy
    makespan: float
    """In seconds."""
    colours: Mapping[str, str]
    """The colour of each user or job, from `colours_of`."""
    by: By = "user"

    @cached_property
    def nodes(self) -> list[tuple[str, int]]:
        """Return the name and the first row of each drawn node."""
        found, row = [], 0
        for name, devices in self.occupancy.nodes[:_MOST_NODES]:
            found.append((name, row))
            row += devices
        return found

    @cached_property
    def rows(self) -> int:
        """Return the devices of all drawn nodes."""
        return max(1, sum(devices for _, devices in self.occupancy.nodes[:_MOST_NODES]))

    @cached_property
    def until(self) -> float:
        """Return the end of the chart in hours."""
        known = self.makespan if self.occupancy.until is None else min(self.makespan, self.occupancy.until)
        return (min(known, self._drawn[-1].begin) if self._is_cut else known) / 3600

    @cached_property
    def note(self) -> str:
        """Return what is not drawn, as a sentence; "" if all is."""
        parts = []
        if len(self.occupancy.nodes) > _MOST_NODES:
            parts.append(f"the first {_MOST_NODES} of {len(self.occupancy.nodes)} nodes")
        if self.until * 3600 < self.makespan:
            parts.append(f"the first {self.until:,.4g} of {self.makespan / 3600:,.4g} hours")
        return f"The chart shows {' and '.join(parts)}." if parts else ""

    @property
    def key(self) -> dict[str, str]:
        """Return the colours that a legend explains: those of users, of other users together, and of failed nodes."""
        own = {} if self.by == "job" else {user: each for user, each in self.colours.items() if each != OTHER}
        others = {"other users": OTHER} if self.by == "user" and OTHER in self.colours.values() else {}
        lost = {"failed node": LOST} if any(not stay.job for stay in self.occupancy.stays) else {}
        return own | others | lost

    def bars(self) -> Iterator[Bar]:
        """Yield the bars by their begin."""
        first = [row for _, row in self.nodes]
        for stay in self._drawn:
            if stay.begin / 3600 < self.until:
                colour = (self.colours[stay.user if self.by == "user" else stay.job]) if stay.job else LOST
                for device, count in _neighbours(stay.devices):
                    end = min(stay.end / 3600, self.until)
                    yield Bar(stay.begin / 3600, end, first[stay.node] + device, count, colour, self._label(stay))

    def labelled(self, pixels: float) -> list[tuple[str, int]]:
        """Return the nodes whose names have room beside their rows, where a row has so many pixels."""
        found: list[tuple[str, int]] = []
        for name, row in self.nodes:
            if not found or (row - found[-1][1]) * pixels >= _LINE:
                found.append((name, row))
        return found

    def svg(self) -> str:
        """Return the chart as an SVG element."""
        bottom, right = _TOP + self.rows * self._device, _WIDTH - _RIGHT
        last = ticks(self.until)[-1]

        def across(hours: float) -> float:
            return _LEFT + hours / last * (right - _LEFT)

        parts = [f'<text x="{(_LEFT + right) / 2}" y="{bottom + 36:.1f}" text-anchor="middle">hours</text>']
        for at in ticks(self.until):
            x = f"{across(at):.1f}"
            parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{x}" y="{bottom + 16:.1f}" text-anchor="middle">{at:,.10g}</text>')
        parts += self._bar_parts(across)
        for _, row in (*self.nodes, ("", self.rows)):
            y = f"{_TOP + row * self._device:.1f}"
            parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}" stroke="#888" stroke-width=".5"/>')
        for name, row in self.labelled(self._device):
            base = _TOP + row * self._device + _LINE - 2
            parts.append(f'<text x="{_LEFT - 6}" y="{base:.1f}" text-anchor="end">{escape(name[-12:])}</text>')
        return (
            f'<svg viewBox="0 0 {_WIDTH} {bottom + _BOTTOM:.0f}" role="img" aria-label="{escape(self.title)}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
        )

    def _bar_parts(self, across: Callable[[float], float]) -> Iterator[str]:
        for bar in self.bars():
            x, y = across(bar.begin), _TOP + bar.row * self._device
            yield (
                f'<rect x="{x:.2f}" y="{y:.1f}" width="{max(0.2, across(bar.end) - x):.2f}" '
                f'height="{bar.rows * self._device:.1f}" fill="{bar.colour}" stroke="#fff" stroke-width=".3">'
                f"<title>{escape(bar.label)}</title></rect>"
            )

    @property
    def _device(self) -> float:
        """Return the height of a device's row in pixels."""
        return min(_HIGHEST_DEVICE, _HIGHEST / self.rows)

    @cached_property
    def _drawn(self) -> list[Stay]:
        """Return the stays on drawn nodes, and one more where there are too many."""
        found: list[Stay] = []
        bars = 0
        for stay in self.occupancy.stays:
            if stay.node < _MOST_NODES:
                found.append(stay)
                bars += sum(1 for _ in _neighbours(stay.devices))
                if bars > _MOST_BARS:
                    break
        return found

    @cached_property
    def _is_cut(self) -> bool:
        return sum(sum(1 for _ in _neighbours(stay.devices)) for stay in self._drawn) > _MOST_BARS

    def _label(self, stay: Stay) -> str:
        held = ", ".join(
            str(device) if count == 1 else f"{device}-{device + count - 1}"
            for device, count in _neighbours(stay.devices)
        )
        who = f"{stay.job} of {stay.user}" if stay.job else "failed"
        times = f"{stay.begin / 3600:,.2f} to {stay.end / 3600:,.2f} h"
        return f"{who}: {self.occupancy.nodes[stay.node][0]}, devices {held}, {times}"


def colours_of(occupancies: Sequence[Occupancy], by: By = "user") -> dict[str, str]:
    """Return the colour of each user or job of simulations that are shown beside each other.

    Users with the most device-seconds have colours of their own; those of jobs come again in the order of their begins.
    """
    stays = [stay for occupancy in occupancies for stay in occupancy.stays if stay.job]
    if by == "job":
        return {
            name: _PALETTE[number % len(_PALETTE)]
            for number, name in enumerate(dict.fromkeys(stay.job for stay in stays))
        }
    used: dict[str, float] = defaultdict(float)
    for stay in stays:
        used[stay.user] += (stay.end - stay.begin) * len(stay.devices)
    ranked = sorted(used, key=lambda user: (-used[user], user))
    return {user: _PALETTE[rank] if rank < len(_PALETTE) else OTHER for rank, user in enumerate(ranked)}


def key(gantt: Gantt) -> str:
    """Return the colours of a chart as HTML."""
    items = "".join(
        f'<li><svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><rect width="12" height="12" '
        f'fill="{colour}"/></svg> {escape(name)}</li>'
        for name, colour in gantt.key.items()
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def _neighbours(devices: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first of each unbroken row of devices, and how many they are."""
    begin = 0
    for place in range(1, len(devices) + 1):
        if place == len(devices) or devices[place] != devices[place - 1] + 1:
            yield devices[begin], place - begin
            begin = place
