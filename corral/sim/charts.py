"""Line charts as SVG text, for pages that must work offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log10
from typing import Final

from corral.sim.curves import Points

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 32, 28, 44
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours that colour-blind people can tell apart (Okabe and Ito, 2008); beyond them lines are dashed."""
_DASHES: Final = ("", "6 3", "2 3", "8 3 2 3")
_TICKS: Final = 5
_LEAST: Final = 1e-9
"""Smaller figures are as good as 0."""


@dataclass(frozen=True)
class Chart:
    """A chart of one line for each name; all points are finite, and x rises along each line."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    logarithmic: bool = False
    """Whether the x axis is logarithmic; then values below 1 are shown at 1."""
    spread: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Half the length of the bar around each point of a line: its confidence interval."""

    def svg(self) -> str:
        """Return the chart as an SVG element."""
        low, high = self._range()
        top = ticks(self._top() or 1.0)[-1]
        parts = [*self._axes(low, high, top)]
        for number, (name, points) in enumerate(self.lines.items()):
            path = " ".join(f"{self._across(x, low, high):.1f},{_down(y, top):.1f}" for x, y in points)
            colour, dash = style_of(number)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dash}">'
                f"<title>{escape(name)}</title></polyline>"
            )
            parts += self._bars(name, low, high, top, colour)
        label = escape(self.title)
        return (
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}" xmlns="http://www.w3.org/2000/svg">'
            f"{''.join(parts)}</svg>"
        )

    def _top(self) -> float:
        """Return the highest y, with the bars around the points."""
        ends = (y + half for name in self.lines for _, y, half in self.points_with_bars(name))
        return max((*ends, *(y for points in self.lines.values() for _, y in points)), default=0.0)

    def points_with_bars(self, name: str) -> list[tuple[float, float, float]]:
        """Return x, y and half of the bar of each point of a line that has bars."""
        halves = self.spread.get(name, ())
        return [(x, y, half) for (x, y), half in zip(self.lines[name], halves, strict=False)]

    def _bars(self, name: str, low: float, high: float, top: float, colour: str) -> list[str]:
        parts = []
        for x, y, half in self.points_with_bars(name):
            across, ends = self._across(x, low, high), (_down(y + half, top), _down(max(0.0, y - half), top))
            parts.append(
                f'<path d="M{across:.1f},{ends[0]:.1f}V{ends[1]:.1f}m-4,0h8M{across - 4:.1f},{ends[0]:.1f}h8" '
                f'stroke="{colour}" fill="none"/>'
            )
        return parts

    def _range(self) -> tuple[float, float]:
        """Return the ends of the x axis: from 0, or whole powers of ten as their exponents."""
        values = [self._scaled(x) for points in self.lines.values() for x, _ in points]
        if not self.logarithmic:
            return 0.0, ticks(max(values, default=0.0) or 1.0)[-1]
        low, high = floor(min(values, default=0.0)), ceil(max(values, default=0.0))
        return float(low), float(max(high, low + 1))

    def _scaled(self, x: float) -> float:
        return log10(max(1.0, x)) if self.logarithmic else x

    def _across(self, x: float, low: float, high: float) -> float:
        return _LEFT + (self._scaled(x) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def _axes(self, low: float, high: float, top: float) -> list[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        parts = [
            f'<text x="{_LEFT}" y="18" font-weight="600">{escape(self.title)}</text>',
            f'<text x="{(_LEFT + right) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(self.x)}</text>',
            f'<text x="14" y="{(_TOP + bottom) / 2}" text-anchor="middle" '
            f'transform="rotate(-90 14 {(_TOP + bottom) / 2})">{escape(self.y)}</text>',
        ]
        for at in ticks(top):
            down = _down(at, top)
            parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{down:.1f}" y2="{down:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{at:,.10g}</text>')
        marks = [float(each) for each in range(int(low), int(high) + 1)] if self.logarithmic else ticks(high)
        for at in marks:
            across = _LEFT + (at - low) / (high - low) * (right - _LEFT)
            shown = 10**at if self.logarithmic else at
            parts.append(f'<text x="{across:.1f}" y="{bottom + 16}" text-anchor="middle">{shown:,.10g}</text>')
        return parts


def ticks(most: float) -> list[float]:
    """Return round numbers from 0 to the first that is not below `most`, which is above 0; about five of them."""
    most = max(most, _LEAST)
    unit = 10.0 ** floor(log10(most / _TICKS))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times * _TICKS >= most * 0.999999)
    return [number * step for number in range(ceil(most / step - 1e-9) + 1)]


def legend(names: Sequence[str]) -> str:
    """Return the key of the lines as HTML, in the order of the charts' lines."""
    items = []
    for number, name in enumerate(names):
        colour, dash = style_of(number)
        line = f'<line x1="0" x2="28" y1="6" y2="6" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"/>'
        items.append(
            f'<li><svg viewBox="0 0 28 12" width="28" height="12" aria-hidden="true">{line}</svg> {escape(name)}</li>'
        )
    return f'<ul class="legend">{"".join(items)}</ul>'


def style_of(number: int) -> tuple[str, str]:
    """Return the colour and the dashes (SVG's `stroke-dasharray`) of a chart's line, counted from 0."""
    return COLOURS[number % len(COLOURS)], _DASHES[number // len(COLOURS) % len(_DASHES)]


def _down(y: float, top: float) -> float:
    return _HEIGHT - _BOTTOM - y / top * (_HEIGHT - _BOTTOM - _TOP)
