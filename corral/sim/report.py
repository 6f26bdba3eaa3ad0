"""What a report of simulations shows: groups over seeds, charts that compare them, and what a reader must know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corral.sim.charts import Chart
from corral.sim.curves import Points, Span, cumulative, devices_in_use, jobs_that_wait, mean_over_time
from corral.sim.groups import Group, estimates, grouped, record_of
from corral.sim.results import Result

_MOST_LINES: Final = 12
"""More lines of a chart cannot be told apart."""
Results = Group[Result]


@dataclass(frozen=True)
class Section:
    """Charts whose lines have the same names."""

    title: str
    charts: Sequence[Chart]

    @property
    def names(self) -> list[str]:
        """Return the names of the lines."""
        return list(self.charts[0].lines)


@dataclass(frozen=True)
class Report:
    """All that a report shows, however it is drawn."""

    groups: Sequence[Results]
    sections: Sequence[Section]
    notes: Sequence[str]
    """What a reader must know to compare the figures."""

    def record(self) -> dict[str, Any]:
        """Return the report as JSON: figures in seconds, and the points of each chart."""
        return {
            "notes": list(self.notes),
            "groups": [{"name": group.name, **record_of(group, figures(group))} for group in self.groups],
            "charts": [
                {"title": chart.title, "x": chart.x, "y": chart.y, "lines": chart.lines, "half_widths": chart.spread}
                for section in self.sections
                for chart in section.charts
            ],
        }


def report_of(results: Sequence[Result]) -> Report:
    """Return the report of at least one result; those that differ by their seed only are one group."""
    groups = grouped(results)
    compared = Section("Jobs and devices", _comparison(groups[:_MOST_LINES]))
    swept = (Section(f"By {knob}", charts) for knob in _varied(groups) if (charts := _sweep(groups, knob)))
    return Report(groups, (*swept, compared), _notes(results, groups))


def _notes(results: Sequence[Result], groups: Sequence[Results]) -> list[str]:
    notes = []
    complete = [result for result in results if len(result.jobs) == result.submitted]
    if len({tuple((job.name, job.submitted, job.devices, job.seconds) for job in each.jobs) for each in complete}) > 1:
        notes.append("These results are not of the same jobs; their figures cannot be compared.")
    if len({result.devices for result in results}) > 1:
        notes.append("These results are not of the same number of devices.")
    if len(complete) < len(results):
        notes.append("A simulation was ended early; its figures are of the jobs that had ended.")
    if any(len(group.members) > 1 for group in groups):
        notes.append(
            "Figures are means over n seeds, with 95 % confidence intervals by Student's t. Distributions are of the jobs "
            "of all seeds, and curves over time are means over the seeds."
        )
    if len(groups) > _MOST_LINES:
        notes.append(
            f"The charts of jobs and devices show the first {_MOST_LINES} of {len(groups)} lines of the table."
        )
    return notes


def _comparison(groups: Sequence[Results]) -> list[Chart]:
    def distribution(title: str, x: str, values: Callable[[Result], Iterable[float]], log: bool = True) -> Chart:
        lines = {group.name: cumulative(each for one in group.members for each in values(one)) for group in groups}
        return Chart(title, x, "part of jobs", lines, logarithmic=log)

    def course(title: str, y: str, spans: Callable[[Result], Iterable[Span]]) -> Chart:
        lines: dict[str, Points] = {}
        for group in groups:
            until = max(result.makespan for result in group.members)
            lines[group.name] = mean_over_time([spans(result) for result in group.members], until)
        return Chart(title, "hours", y, lines)

    return [
        distribution("Job completion time", "seconds", lambda result: (job.completion_seconds for job in result.jobs)),
        distribution(
            "Queueing until the first start", "seconds", lambda result: (job.queueing_seconds for job in result.jobs)
        ),
        course("Devices in use", "part of all devices", devices_in_use),
        course("Jobs that wait for their first start", "jobs", jobs_that_wait),
        distribution("Finish-time fairness", "rho (fair: at most 1)", lambda result: result.ratios, log=False),
        distribution(
            "Interruptions of each job",
            "interruptions",
            lambda result: (job.interruptions for job in result.jobs),
            False,
        ),
    ]


def _varied(groups: Sequence[Results]) -> list[str]:
    return list(dict.fromkeys(knob for group in groups for knob in group.knobs))


def _sweep(groups: Sequence[Results], knob: str) -> list[Chart]:
    """Return charts of means by the values of a knob, a line for each policy and setting of the other knobs."""
    lines: dict[str, list[tuple[float, Results]]] = {}
    for group in groups:
        if knob in group.knobs:
            others = [f"{name} {value:g}" for name, value in group.knobs.items() if name != knob]
            lines.setdefault(", ".join([group.policy, *others]), []).append((group.knobs[knob], group))
    kept = {name: sorted(points, key=lambda point: point[0]) for name, points in list(lines.items())[:_MOST_LINES]}
    if not any(len(points) > 1 for points in kept.values()):
        return []
    return [
        _means(title, knob, unit, kept, measure, times)
        for title, unit, measure, times in (
            ("Mean completion time", "hours", "mean_jct", 1 / 3600),
            ("Mean queueing", "hours", "mean_queueing", 1 / 3600),
        )
    ]


def _means(
    title: str, knob: str, unit: str, lines: dict[str, list[tuple[float, Results]]], measure: str, times: float
) -> Chart:
    points: dict[str, Points] = {}
    spread: dict[str, Sequence[float]] = {}
    for name, groups in lines.items():
        found = [(value, estimates(figures(group))[measure]) for value, group in groups]
        points[name] = [(value, each.mean * times) for value, each in found]
        spread[name] = [(each.half_width or 0.0) * times for _, each in found]
    return Chart(title, knob, unit, points, spread=spread)


def figures(group: Results) -> list[Mapping[str, Any]]:
    """Return the figures of each member of a group."""
    return [result.figures() for result in group.members]
