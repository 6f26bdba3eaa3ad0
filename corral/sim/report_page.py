"""A page that compares simulations: their figures, and charts of completion, queueing, devices in use and waiting jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import accumulate
from typing import Final

from corral.sim.charts import Chart, Points, legend
from corral.sim.results import Result

_MOST_POINTS: Final = 400
_BINS: Final = 200
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; } th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } .charts { display: grid; gap: 1rem; }
.charts { grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); } svg text { font-size: 12px; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.5rem; padding: 0; }
"""
_COLUMNS: Final[tuple[tuple[str, str, Callable[[float], str]], ...]] = (
    ("mean_jct", "Mean JCT", lambda value: f"{value / 3600:,.2f} h"),
    ("median_jct", "Median JCT", lambda value: f"{value / 3600:,.2f} h"),
    ("p99_jct", "P99 JCT", lambda value: f"{value / 3600:,.2f} h"),
    ("mean_queueing", "Mean queueing", lambda value: f"{value / 3600:,.2f} h"),
    ("makespan", "Makespan", lambda value: f"{value / 3600:,.2f} h"),
    ("utilisation", "Utilisation", lambda value: f"{value:.1%}"),
    ("interruptions", "Interruptions", lambda value: f"{value:,.0f}"),
    ("ended", "Ended", lambda value: f"{value:,.0f}"),
)


def report_page(results: Sequence[Result]) -> str:
    """Return an HTML page that needs no other file; results of one name are numbered."""
    named = _named(results)
    charts = (
        Chart("Job completion time", x="seconds", y="part of jobs", lines=_each(named, _completion), logarithmic=True),
        Chart(
            "Queueing until the first start",
            x="seconds",
            y="part of jobs",
            lines=_each(named, _queueing),
            logarithmic=True,
        ),
        Chart("Devices in use", x="hours", y="part of all devices", lines=_each(named, utilisation_over_time)),
        Chart("Jobs that wait", x="hours", y="jobs", lines=_each(named, waiting_over_time)),
    )
    rows = "".join(_row(name, result) for name, result in named.items())
    heads = "".join(f"<th>{title}</th>" for _, title, _ in _COLUMNS)
    drawn = "".join(f"<figure>{chart.svg()}</figure>" for chart in charts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulation report</title>'
        f"<style>{_STYLE}</style></head><body><h1>Simulation report</h1>"
        f"<table><thead><tr><th>Policy</th>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f'{legend(list(named))}<div class="charts">{drawn}</div></body></html>'
    )


def cumulative(values: Iterable[float]) -> Points:
    """Return the part of values (0 to 1) that do not exceed each of at most `_MOST_POINTS` of them."""
    ordered = sorted(values)
    last = len(ordered) - 1
    if last < 0:
        return ()
    places = sorted({round(number * last / (_MOST_POINTS - 1)) for number in range(_MOST_POINTS)})
    return [(ordered[place], (place + 1) / len(ordered)) for place in places]


def utilisation_over_time(result: Result) -> Points:
    """Return the part of all devices that jobs held, by the hours since the beginning."""
    width = result.makespan / _BINS
    if not width:
        return ()
    used = [0.0] * _BINS
    for begin, end, devices in result.held:
        for number in range(int(begin / width), min(_BINS, int(end / width) + 1)):
            inside = min(end, (number + 1) * width) - max(begin, number * width)
            used[number] += max(0.0, inside) * devices
    return [((number + 0.5) * width / 3600, each / (width * result.devices)) for number, each in enumerate(used)]


def waiting_over_time(result: Result) -> Points:
    """Return how many jobs waited for their first start, by the hours since the beginning."""
    changes = sorted([*((job.submitted, 0) for job in result.jobs), *((job.started, 1) for job in result.jobs)])
    counts = list(accumulate(-1 if starts else 1 for _, starts in changes))
    step = max(1, len(changes) // _MOST_POINTS)
    return [(changes[place][0] / 3600, counts[place]) for place in range(0, len(changes), step)]


def _completion(result: Result) -> Points:
    return cumulative(job.completion_seconds for job in result.jobs)


def _queueing(result: Result) -> Points:
    return cumulative(job.queueing_seconds for job in result.jobs)


def _each(named: dict[str, Result], points: Callable[[Result], Points]) -> dict[str, Points]:
    return {name: points(result) for name, result in named.items()}


def _named(results: Sequence[Result]) -> dict[str, Result]:
    named: dict[str, Result] = {}
    for result in results:
        name = result.policy if result.policy not in named else f"{result.policy} ({len(named) + 1})"
        named[name] = result
    return named


def _row(name: str, result: Result) -> str:
    figures = result.figures()
    cells = "".join(f"<td>{shown(figures[key])}</td>" for key, _, shown in _COLUMNS)
    return f"<tr><td>{escape(name)}</td>{cells}</tr>"
