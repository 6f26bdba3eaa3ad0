"""A policy test's report as JSON, as JUnit XML, and as Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from corral.kernel.units import counted
from corral.sim.policy_test.measurement import Figures
from corral.sim.policy_test.picture import mermaid
from corral.sim.policy_test.played import QueueRow, Report
from corral.spec.assertions.evaluation import Outcome, shown
from corral.spec.assertions.syntax import Unit

_COLUMNS: Final = (
    ("Wait p50", "wait_p50", Unit.DURATION),
    ("Wait p95", "wait_p95", Unit.DURATION),
    ("Run", "run_mean", Unit.DURATION),
    ("Utilisation", "utilisation", Unit.NUMBER),
    ("Preemptions", "preemptions", Unit.NUMBER),
)
"""Title, name and unit of the figures of queues."""
_NO_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have."""
ALL: Final = "all"
"""How the row of all queues is called."""


def queue_headings() -> list[str]:
    """Return the titles of the columns of queues."""
    return ["Queue", "Jobs", *(title for title, *_ in _COLUMNS)]


def queue_cells(row: QueueRow) -> list[str]:
    """Return a queue's figures as text, before and after where they differ."""
    cells = [row.name or ALL, str(row.after.jobs)]
    for _, name, unit in _COLUMNS:
        after = shown(getattr(row.after, name), unit)
        before = after if row.before is None else shown(getattr(row.before, name), unit)
        cells.append(after if before == after else f"{before} → {after}")
    return cells


def record(report: Report) -> dict[str, Any]:
    """Return the report for JSON: times in seconds; null: never, or undefined."""
    return {
        "held": report.held,
        "trace": report.trace,
        "documents": report.documents,
        "base": report.base or None,
        "assertions": [
            {
                "assertion": each.assertion.text,
                "held": each.held,
                "unit": "seconds" if each.assertion.unit is Unit.DURATION else "number",
                "value": _finite(each.left),
                "wanted": _finite(each.right),
                "base": _finite(each.base),
            }
            for each in report.outcomes
        ],
        "queues": [
            {
                "queue": row.name or None,
                "after": _figures(row.after),
                "before": None if row.before is None else _figures(row.before),
            }
            for row in report.queues
        ],
        "notes": list(report.notes),
    }


def junit(report: Report) -> str:
    """Return the report as JUnit XML, which hosted CIs read: a test case for each assertion."""
    failed = sum(not each.held for each in report.outcomes)
    counts = f'tests="{len(report.outcomes)}" failures="{failed}" errors="0" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="corral policy test" {counts}>',
        f'  <testsuite name={_attribute(report.documents)} {counts} time="0">',
    ]
    for each in report.outcomes:
        case = f'    <testcase classname={_attribute(report.trace)} name={_attribute(each.assertion.text)} time="0"'
        if each.held:
            lines.append(f"{case}/>")
            continue
        message = _attribute(f"{each.shown(each.left)}, wanted {wanted(each)}")
        text = escape(_NO_XML.sub("?", _failure(each, report)))
        lines.append(f'{case}><failure type="assertion" message={message}>{text}</failure></testcase>')
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def markdown(report: Report, picture: str = "") -> str:
    """Return the report for a pull request; `picture` is the path of the picture, else it is drawn by Mermaid."""
    has_base = bool(report.base)
    headings = ["", "Assertion", "Value", "Wanted", *(["Base"] if has_base else [])]
    rows = [
        ["✅" if each.held else "❌", _code(each.assertion.text), each.shown(each.left), wanted(each),
         *([each.shown(each.base)] if has_base else [])]
        for each in report.outcomes
    ]  # fmt: skip
    against = f", against {_code(report.base)}" if has_base else ""
    jobs = counted(report.queues[0].after.jobs, "job")
    parts = [
        f"### Policy test: {report.headline}",
        f"{_code(report.trace)} ({jobs}) played under {_code(report.documents)}{against}.",
        _grid(headings, rows),
        _grid(queue_headings(), [[_cell(each) for each in queue_cells(row)] for row in report.queues]),
        f"![Waits by queue]({picture.replace(' ', '%20')})" if picture else f"```mermaid\n{mermaid(report)}\n```",
    ]
    if report.notes:
        parts.append("\n".join(f"- {_cell(note)}" for note in report.notes))
    return "\n\n".join(parts) + "\n"


def wanted(outcome: Outcome) -> str:
    """Return the comparison and its right side as text."""
    return f"{outcome.assertion.comparison} {outcome.shown(outcome.right)}"


def _failure(outcome: Outcome, report: Report) -> str:
    base = f" Under {report.base} it was {outcome.shown(outcome.base)}." if report.base else ""
    return f"{outcome.assertion.left} is {outcome.shown(outcome.left)}, wanted {wanted(outcome)}.{base}"


def _figures(figures: Figures) -> dict[str, Any]:
    named = {name: _finite(getattr(figures, name)) for _, name, _ in _COLUMNS}
    return {"jobs": figures.jobs, **named}


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _attribute(text: str) -> str:
    return quoteattr(_NO_XML.sub("?", text))


def _grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(text: str) -> str:
    return "`" + text.replace("`", "'").replace("|", "\\|").replace("\n", " ") + "`"


def _cell(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text.replace("\n", " "))
