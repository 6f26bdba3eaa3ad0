"""What a report of simulations shows: groups over seeds, charts that compare them, and what a reader must know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from corral.sim.charts import Chart
from corral.sim.gantt import By, Gantt
from corral.sim.groups import grouped, record_of
from corral.sim.report_charts import MOST_LINES, Results, comparison, sweep
from corral.sim.results import Result

_MOST_GANTTS: Final = 8


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
    gantts = [gantt for group in groups if (gantt := _gantt(group, by)) is not None]
    return Report(groups, (*swept, compared), gantts[:_MOST_GANTTS], _notes(results, groups, len(gantts)))


def figures(group: Results) -> list[Mapping[str, Any]]:
    """Return the figures of each member of a group."""
    return [result.figures() for result in group.members]


def _gantt(group: Results, by: By) -> Gantt | None:
    result = group.members[0]
    if result.occupancy is None:
        return None
    seed = f", seed {group.seeds[0]}" if len(group.members) > 1 else ""
    return Gantt(f"Devices under {group.name}{seed}", result.occupancy, result.makespan, by)


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
