"""A report of simulations as an HTML page that needs no other file."""

from __future__ import annotations

from html import escape
from typing import Final

from corral.sim.charts import legend
from corral.sim.gantt import Gantt, key
from corral.sim.report import Report, Section

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } .charts { display: grid; gap: 1rem; } figure { margin: 0; }
.charts { grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); } svg text { font-size: 12px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; }
"""


def report_page(report: Report) -> str:
    """Return the page."""
    titles, *lines = report.table()
    heads = "".join(f"<th>{title}</th>" for title in titles)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    notes = "".join(f"<p>{escape(note)}</p>" for note in report.notes)
    sections = "".join(_section(section) for section in report.sections)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulation report</title>'
        f"<style>{_STYLE}</style></head><body><h1>Simulation report</h1>{notes}"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"{sections}{''.join(map(_gantt, report.gantts))}</body></html>"
    )


def _gantt(gantt: Gantt) -> str:
    note = f"<p>{escape(gantt.note)}</p>" if gantt.note else ""
    return f"<h2>{escape(gantt.title)}</h2>{note}{key(gantt)}<figure>{gantt.svg()}</figure>"


def _section(section: Section) -> str:
    drawn = "".join(f"<figure>{chart.svg()}</figure>" for chart in section.charts)
    return f'<h2>{escape(section.title)}</h2>{legend(section.names)}<div class="charts">{drawn}</div>'
