"""What a report of simulations shows: groups over seeds, charts that compare them, and what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corral.sim.charts import Chart
from corral.sim.gantt import By, Gantt, colours_of
from corral.sim.groups import estimates, grouped, record_of
from corral.sim.report_charts import MOST_LINES, Results, comparison, sweep
from corral.sim.results import Result

_MOST_GANTTS: Final = 8
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
    gantts: Sequence[Gantt]
    """Of the first seed of each group whose placements are known."""
    notes: Sequence[str]
    """What a reader must know to compare the figures."""

    def table(self) -> list[list[str]]:
        """Return the figures as text: the titles of the columns, then a line for each group."""
        titles = ["Policy", "n", "Ended", *(title for _, title, *_ in _COLUMNS)]
        return [titles, *(_line(group) for group in self.groups)]

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


def report_of(results: Sequence[Result], by: By = "user") -> Report:
    """Return the report of at least one result; those that differ by their seed only are one group.

    `by` says what has a colour of its own in Gantt charts.
    """
    groups = grouped(results)
    knobs = dict.fromkeys(knob for group in groups for knob in group.knobs)
    swept = (Section(f"By {knob}", charts) for knob in knobs if (charts := sweep(groups, knob)))
    compared = Section("Jobs and devices", comparison(groups[:MOST_LINES]))
    gantts = _gantts(groups, by)
    return Report(groups, (*swept, compared), gantts[:_MOST_GANTTS], _notes(results, groups, len(gantts)))


def figures(group: Results) -> list[Mapping[str, Any]]:
    """Return the figures of each member of a group."""
    return [result.figures() for result in group.members]


def _line(group: Results) -> list[str]:
    found = estimates(figures(group))
    cells = [group.name, str(len(group.members)), f"{sum(len(result.jobs) for result in group.members):,}"]
    for measure, _, times, shown, unit in _COLUMNS:
        if measure not in found:
            cells.append("–")
            continue
        mean, half = found[measure].mean * times, found[measure].half_width
        cells.append(format(mean, shown) + ("" if half is None else f" ± {half * times:{shown}}") + unit)
    return cells


def _gantts(groups: Sequence[Results], by: By) -> list[Gantt]:
    known = [(group, group.members[0], occupancy) for group in groups if (occupancy := group.members[0].occupancy)]
    colours = colours_of([occupancy for _, _, occupancy in known], by)
    charts = []
    for group, result, occupancy in known:
        seed = f", seed {group.seeds[0]}" if len(group.members) > 1 else ""
        charts.append(Gantt(f"Devices under {group.name}{seed}", occupancy, result.makespan, colours, by))
    return charts


def _notes(results: Sequence[Result], groups: Sequence[Results], gantts: int) -> list[str]:
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
    if len(groups) > MOST_LINES:
        notes.append(f"The charts of jobs and devices show the first {MOST_LINES} of {len(groups)} lines of the table.")
    if gantts > _MOST_GANTTS:
        notes.append(f"Gantt charts are of the first {_MOST_GANTTS} of {gantts} lines whose placements are known.")
    return notes
