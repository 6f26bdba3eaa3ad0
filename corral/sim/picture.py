"""A report of simulations as a PNG picture, drawn by matplotlib (the extra `sim`)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from corral.kernel.errors import InvalidInput
from corral.sim.charts import Chart, style_of
from corral.sim.gantt import Gantt
from corral.sim.report import Report, Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_WIDTH: Final = 14.0
"""Inches, as all lengths here."""
_DOTS: Final = 100
_CHART, _GANTT, _LEGEND, _LINE = 2.7, 4.2, 0.45, 0.13
_AXIS: Final = 0.8
"""What title and axis take of the height of a Gantt chart."""
_ACROSS: Final = 2
"""The charts beside each other."""
_MOST_ROWS: Final = 40
"""The most lines of the table: a picture has no room for more."""
_MOST_CHARACTERS: Final = 150


def report_picture(report: Report) -> bytes:
    """Return the picture as PNG; raises InvalidInput if matplotlib is not installed."""
    try:
        from matplotlib import rc_context
    except ImportError:
        raise InvalidInput("no-matplotlib", "A PNG needs matplotlib: pip install 'corral[sim]'.") from None
    file = BytesIO()
    with rc_context({"text.parse_math": False, "font.size": 8.5}):  # a name may hold a dollar sign
        _figure(report).savefig(file, format="png")
    return file.getvalue()


def _figure(report: Report) -> Figure:
    """Draw the report from top to bottom: table, charts, Gantt charts."""
    from matplotlib.figure import Figure

    words = _words(report)
    heights = [_LINE * (len(words) + 3)]
    heights += [_CHART * ceil(len(section.charts) / _ACROSS) + _LEGEND for section in report.sections]
    heights += [_GANTT] * len(report.gantts)
    figure = Figure(figsize=(_WIDTH, sum(heights)), dpi=_DOTS, layout="constrained")
    parts = list(figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0])
    parts[0].text(0.01, 0.98, "\n".join(words), va="top", family="monospace", fontsize=7.5)
    charts = len(report.sections) + 1
    for part, section in zip(parts[1:charts], report.sections, strict=True):
        _draw_section(part, section)
    for part, gantt in zip(parts[charts:], report.gantts, strict=True):
        _draw_gantt(part.subplots(), gantt)
    return figure


def _words(report: Report) -> list[str]:
    """Return the notes and the table as lines of text."""
    table = report.table()
    cells = table[: _MOST_ROWS + 1]
    widths = [max(len(line[column]) for line in cells) for column in range(len(table[0]))]
    lines = ["Simulation report", ""]
    lines += [line for note in report.notes for line in wrap(note, _MOST_CHARACTERS)]
    lines += ["", *("  ".join(_padded(line, widths)) for line in cells)]
    if len(table) > len(cells):
        lines.append(f"{len(table) - len(cells)} more lines are in the page and in the JSON.")
    return lines


def _padded(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return the cells at equal widths, all but the first flush right."""
    return [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]


def _draw_section(part: SubFigure, section: Section) -> None:
    rows = ceil(len(section.charts) / _ACROSS)
    axes = part.subplots(rows, _ACROSS, squeeze=False).flatten()
    for each, chart in zip(axes, section.charts, strict=False):
        _draw_chart(each, chart)
    for each in axes[len(section.charts) :]:
        each.set_axis_off()
    handles, names = axes[0].get_legend_handles_labels()
    part.legend(handles, names, loc="outside upper left", ncols=4, frameon=False, title=section.title, alignment="left")


def _draw_chart(axes: Axes, chart: Chart) -> None:
    from matplotlib.ticker import NullFormatter

    for number, (name, points) in enumerate(chart.lines.items()):
        colour, dashes = style_of(number)
        style = (0, tuple(float(each) for each in dashes.split())) if dashes else "solid"
        across = [max(1.0, x) if chart.logarithmic else x for x, _ in points]
        axes.plot(across, [y for _, y in points], color=colour, linestyle=style, linewidth=1.3, label=name)
        bars = chart.points_with_bars(name)
        x, y, half = ([bar[place] for bar in bars] for place in range(3))
        axes.errorbar(x, y, half, fmt="none", ecolor=colour, capsize=3, linewidth=1, clip_on=False)
    if chart.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:,.10g}")  # the default one of powers of ten is mathematical text
    axes.set(title=chart.title, xlabel=chart.x, ylabel=chart.y)
    axes.grid(axis="y", color="#dddddd")


def _draw_gantt(axes: Axes, gantt: Gantt) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    bars = list(gantt.bars())
    corners = [
        [(bar.begin, bar.row), (bar.end, bar.row), (bar.end, bar.row + bar.rows), (bar.begin, bar.row + bar.rows)]
        for bar in bars
    ]
    colours = [bar.colour for bar in bars]
    axes.add_collection(PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=0.2))
    words = f"hours. {gantt.note}" if gantt.note else "hours"
    axes.set(xlim=(0, gantt.until or 1.0), ylim=(gantt.rows, 0), title=gantt.title, xlabel=words)
    axes.hlines([row for _, row in gantt.nodes], 0, gantt.until or 1.0, color="#888888", linewidth=0.4)
    labelled = gantt.labelled((_GANTT - _AXIS) * _DOTS / gantt.rows)
    axes.set_yticks([row for _, row in labelled], [name for name, _ in labelled], va="top")
    if gantt.key:
        patches = [Patch(color=colour, label=name) for name, colour in gantt.key.items()]
        axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
