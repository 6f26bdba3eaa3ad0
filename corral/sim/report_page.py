"""A report of simulations as an HTML page that needs no other file."""

from __future__ import annotations

from html import escape
from typing import Final

from corral.sim.charts import legend
from corral.sim.gantt import Gantt, key
from corral.sim.groups import estimates
from corral.sim.report import Report, Section, figures
from corral.sim.report_charts import Results

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } .charts { display: grid; gap: 1rem; } figure { margin: 0; }
.charts { grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); } svg text { font-size: 12px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; }
"""
_HOUR: Final = 1 / 3600
_COLUMNS: Final[tuple[tuple[str, str, float, str, str], ...]] = (
    ("mean_jct", "Mean JCT", _HOUR, ",.2f", " h"),
    ("median_jct", "Median JCT", _HOUR, ",.2f", " h"),
    ("p99_jct", "P99 JCT", _HOUR, ",.2f", " h"),
    ("mean_queueing", "Mean queueing", _HOUR, ",.2f", " h"),
    ("makespan", "Makespan", _HOUR, ",.2f", " h"),
    ("utilisation", "Utilisation", 100.0, ".1f", " %"),
    ("interruptions", "Interruptions", 1.0, ",.1f", ""),
    ("worst_rho", "Worst rho", 1.0, ",.2f", ""),
    ("unfair", "Unfair jobs", 100.0, ".1f", " %"),
    ("fragmentation", "Fragmentation", 100.0, ".1f", " %"),
)
"""Measure, title, factor from the measure's unit, format and unit shown."""


def report_page(report: Report) -> str:
    """Return the page."""
    heads = "".join(f"<th>{title}</th>" for _, title, *_ in _COLUMNS)
    rows = "".join(_row(group) for group in report.groups)
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    sections = "".join(_section(section) for section in report.sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulation report</title>'
        f"<style>{_STYLE}</style></head><body><h1>Simulation report</h1>{notes}"
        f'<div class="wide"><table><thead><tr><th>Policy</th><th>n</th><th>Ended</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"{sections}{''.join(map(_gantt, report.gantts))}</body></html>"
    )


def _gantt(gantt: Gantt) -> str:
    note = f"<p>{escape(gantt.note)}</p>" if gantt.note else ""
    return f"<h2>{escape(gantt.title)}</h2>{note}{key(gantt)}<figure>{gantt.svg()}</figure>"


def _section(section: Section) -> str:
    drawn = "".join(f"<figure>{chart.svg()}</figure>" for chart in section.charts)
    return f'<h2>{escape(section.title)}</h2>{legend(section.names)}<div class="charts">{drawn}</div>'


def _row(group: Results) -> str:
    found = estimates(figures(group))
    cells = [str(len(group.members)), f"{sum(len(result.jobs) for result in group.members):,}"]
    for measure, _, times, shown, unit in _COLUMNS:
        if measure not in found:
            cells.append("–")
            continue
        mean, half = found[measure].mean * times, found[measure].half_width
        cells.append(format(mean, shown) + ("" if half is None else f" ± {half * times:{shown}}") + unit)
    return f"<tr><td>{escape(group.name)}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
