"""The picture of a policy test: the 95th percentile of waits by queue, under the base and under the documents."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import Final, NamedTuple

from corral.sim.charts import COLOURS, ticks
from corral.sim.policy_test.played import Report
from corral.spec.assertions.evaluation import shown
from corral.spec.assertions.syntax import Unit

MOST_QUEUES: Final = 20
"""Queues that are drawn, those with the most jobs."""
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 170, 90, 56, 34
_BAR, _GAP = 14, 12
_TITLE: Final = "Wait by queue, 95th percentile"
_FONT: Final = 'font-family="sans-serif" font-size="12"'


class Bar(NamedTuple):
    """One bar: a queue under one set of documents."""

    queue: str
    side: int
    """0: under the documents, or under the base where there is one; 1: under the documents beside a base."""
    hours: float
    """0 where no job starts ever."""
    label: str


def bars(report: Report) -> list[Bar]:
    """Return the bars from top to bottom."""
    queues = sorted(report.queues[1:], key=lambda row: (-row.after.jobs, row.name))[:MOST_QUEUES]
    found = []
    for row in sorted(queues, key=lambda row: row.name):
        sides = [row.after] if row.before is None else [row.before, row.after]
        for side, figures in enumerate(sides):
            wait = figures.wait_p95
            hours = wait / 3600 if isfinite(wait) else 0.0
            found.append(Bar(row.name, side, hours, shown(wait, Unit.DURATION)))
    return found


def mermaid(report: Report) -> str:
    """Return the picture in the language of Mermaid, which hosted forges draw in Markdown."""
    found = bars(report)
    names = [f'"{bar.queue}{_side(report, bar)}"' for bar in found]
    heights = [f"{bar.hours:.4g}" for bar in found]
    return "\n".join(
        (
            "xychart-beta horizontal",
            f'    title "{_TITLE} (hours)"',
            f"    x-axis [{', '.join(names)}]",
            f'    y-axis "hours" 0 --> {_most(found):.10g}',
            f"    bar [{', '.join(heights)}]",
        )
    )


def svg(report: Report) -> str:
    """Return the picture as an SVG file."""
    found = bars(report)
    most = _most(found)
    names = [report.base, report.documents] if report.base else [report.documents]
    body = [f'<text x="16" y="20" font-weight="600">{_TITLE}</text>']
    for number, name in enumerate(names):
        begin = 16 + 300 * number
        body.append(f'<rect x="{begin}" y="30" width="12" height="12" fill="{COLOURS[number]}"/>')
        body.append(f'<text x="{begin + 18}" y="41">{escape(name[-40:])}</text>')
    down = _TOP
    for place, bar in enumerate(found):
        if place and found[place - 1].queue != bar.queue:
            down += _GAP
        if not place or found[place - 1].queue != bar.queue:
            body.append(f'<text x="{_LEFT - 8}" y="{down + 12}" text-anchor="end">{escape(bar.queue[:24])}</text>')
        length = bar.hours / most * (_WIDTH - _LEFT - _RIGHT)
        body.append(
            f'<rect x="{_LEFT}" y="{down}" width="{max(1.0, length):.1f}" height="{_BAR}" fill="{COLOURS[bar.side]}"/>'
        )
        body.append(f'<text x="{_LEFT + length + 6:.1f}" y="{down + 12}">{escape(bar.label)}</text>')
        down += _BAR + 2
    for at in ticks(most):
        across = _LEFT + at / most * (_WIDTH - _LEFT - _RIGHT)
        body.append(f'<text x="{across:.1f}" y="{down + 18}" text-anchor="middle">{at:,.10g} h</text>')
    height = down + _BOTTOM
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" aria-label="{_TITLE}" {_FONT} '
        f'xmlns="http://www.w3.org/2000/svg"><rect width="100%" height="100%" fill="#fff"/>{"".join(body)}</svg>\n'
    )


def _side(report: Report, bar: Bar) -> str:
    words = ["base" if report.base and not bar.side else ""]
    words += [bar.label] if not bar.hours and bar.label == "never" else []
    said = ", ".join(word for word in words if word)
    return f" ({said})" if said else ""


def _most(found: list[Bar]) -> float:
    return ticks(max((bar.hours for bar in found), default=0.0) or 1.0)[-1]
