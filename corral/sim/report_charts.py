"""The charts that compare groups of simulations: their jobs, their devices, and their means by a swept option."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from corral.sim.charts import Chart
from corral.sim.curves import Points, Span, cumulative, devices_in_use, jobs_that_wait, mean_over_time
from corral.sim.groups import Group, estimates
from corral.sim.occupancy import fragments
from corral.sim.results import Result

MOST_LINES: Final = 12
"""More lines of a chart cannot be told apart."""
Results = Group[Result]
Values = Callable[[Result], Iterable[float]]
Spans = Callable[[Result], Iterable[Span]]


def comparison(groups: Sequence[Results]) -> list[Chart]:
    """Return charts of all jobs and devices, a line for each group."""
    charts = [
        _distribution(groups, "Job completion time", "seconds", _completion),
        _distribution(groups, "Queueing until the first start", "seconds", _queueing),
        _course(groups, "Devices in use", "part of all devices", devices_in_use),
        _course(groups, "Jobs that wait for their first start", "jobs", jobs_that_wait),
        _distribution(groups, "Finish-time fairness", "rho (fair: at most 1)", lambda each: each.ratios, log=False),
        _distribution(groups, "Interruptions of each job", "interruptions", _interruptions, log=False),
    ]
    if all(result.occupancy is not None for group in groups for result in group.members):
        charts.append(_course(groups, "Fragmentation", "part of all devices", _free_beside_jobs))
    return charts


def sweep(groups: Sequence[Results], knob: str) -> list[Chart]:
    """Return charts of means by the values of a knob, a line for each policy and setting of the other knobs."""
    lines: dict[str, list[tuple[float, Results]]] = {}
    for group in groups:
        if knob in group.knobs:
            others = [f"{name} {value:g}" for name, value in group.knobs.items() if name != knob]
            lines.setdefault(", ".join([group.policy, *others]), []).append((group.knobs[knob], group))
    kept = {name: sorted(points, key=lambda point: point[0]) for name, points in list(lines.items())[:MOST_LINES]}
    if not any(len(points) > 1 for points in kept.values()):
        return []
    return [
        _means("Mean completion time", knob, "mean_jct", kept),
        _means("Mean queueing", knob, "mean_queueing", kept),
    ]


def _distribution(groups: Sequence[Results], title: str, x: str, values: Values, log: bool = True) -> Chart:
    """Return a chart of values of the jobs of all members."""
    lines = {group.name: cumulative(each for one in group.members for each in values(one)) for group in groups}
    return Chart(title, x, "part of jobs", lines, logarithmic=log)


def _course(groups: Sequence[Results], title: str, y: str, spans: Spans) -> Chart:
    """Return a chart over time, as long as all members are known."""
    lines: dict[str, Points] = {}
    for group in groups:
        until = max(result.makespan for result in group.members)
        if spans is _free_beside_jobs:
            cuts = (each.occupancy.until for each in group.members if each.occupancy is not None)
            until = min([until, *(cut for cut in cuts if cut is not None)])
        lines[group.name] = mean_over_time([spans(result) for result in group.members], until)
    return Chart(title, "hours", y, lines)


def _means(title: str, knob: str, measure: str, lines: dict[str, list[tuple[float, Results]]]) -> Chart:
    """Return a chart of a measure in hours by a knob, with confidence intervals."""
    points: dict[str, Points] = {}
    spread: dict[str, Sequence[float]] = {}
    for name, groups in lines.items():
        found = [(value, estimates([result.figures() for result in group.members])[measure]) for value, group in groups]
        points[name] = [(value, each.mean / 3600) for value, each in found]
        spread[name] = [(each.half_width or 0.0) / 3600 for _, each in found]
    return Chart(title, knob, "hours", points, spread=spread)


def _completion(result: Result) -> Iterable[float]:
    return (job.completion_seconds for job in result.jobs)


def _queueing(result: Result) -> Iterable[float]:
    return (job.queueing_seconds for job in result.jobs)


def _interruptions(result: Result) -> Iterable[float]:
    return (float(job.interruptions) for job in result.jobs)


def _free_beside_jobs(result: Result) -> Iterable[Span]:
    """Yield the part of all devices that are free on partly used nodes."""
    if result.occupancy is not None:
        yield from ((begin, end, free / result.devices) for begin, end, free in fragments(result.occupancy))
