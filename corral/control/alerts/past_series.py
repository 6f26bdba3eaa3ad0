"""What the store of series kept of the series that rules read, so that their past outlives a restart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from corral.control.alerts.sample_series import AGENTS
from corral.model.metrics.families import Kind
from corral.model.metrics.job_figures import JOB, family_of
from corral.model.series import SeriesQuestion, SeriesView
from corral.monitor.rules.series import NAME, Labels, Point, only

NODE: Final = "node"
"""The label with the machine that measured a kept series."""
MOST_FILLED: Final = 2_000
"""Series whose past is read; those that appear later begin with their first value."""
_STEPS: Final = ((3_600.0, 30), (21_600.0, 60))
"""For rules that look back at most so many seconds, the seconds between two points of the past."""
_LONGEST_STEP: Final = 300
"""Not longer than an evaluation looks back for a value."""

Read = Callable[[SeriesQuestion, int], tuple[list[SeriesView], int]]
"""Reads series of the store: at most so many, and how many further ones there are."""


class PastSeries:
    """Reads the past of series from the store."""

    def __init__(self, read: Read, past: float) -> None:
        """`past` is how many seconds rules look back."""
        self._read = read
        self._past = past
        self._step = next((step for most, step in _STEPS if past <= most), _LONGEST_STEP)
        self._left = MOST_FILLED

    def of(self, series: Collection[Labels], at: float) -> dict[Labels, list[Point]]:
        """Their points before a time, as far as they were kept; where a value is missing a series ends."""
        by_family: dict[str, list[Labels]] = {}
        for labels in series:
            by_family.setdefault(dict(labels).get(NAME, ""), []).append(labels)
        found = {}
        for name, wanted in by_family.items():
            family = family_of(name)
            if family is None or family.kind is Kind.HISTOGRAM or not self._left:
                continue
            question = SeriesQuestion(max(0.0, at - self._past), at, self._step, (name,))
            views, _ = self._read(question, self._left)
            self._left -= min(self._left, len(views))
            kept = {_key(view.labels, family.labels): view for view in views}
            for labels in wanted:
                if (view := _of(labels, family.labels, kept)) is not None:
                    column = view.high if family.kind is Kind.COUNTER else view.mean
                    found[labels] = self._points(column, question, at)
        return found

    def _points(self, column: Sequence[float | None], question: SeriesQuestion, at: float) -> list[Point]:
        """The values at the ends of their steps. Of a counter they are the greatest, so that a restart is one reset."""
        begin = int(question.begin) // self._step * self._step
        points: list[Point] = []
        for place, value in enumerate(column, 1):
            time = float(begin + place * self._step)
            if time >= at:
                break
            if value is not None or (points and points[-1][1] is not None):
                points.append((time, value))
        return points


def _key(labels: dict[str, str], names: Sequence[str]) -> tuple[Labels, str]:
    """What tells kept series apart: the labels of its family, and the machine."""
    named = tuple(sorted((name, value) for name, value in labels.items() if value and name in names))
    return named, labels.get(NODE, "") if NODE not in names else ""


def _of(labels: Labels, names: Sequence[str], kept: dict[tuple[Labels, str], SeriesView]) -> SeriesView | None:
    """The kept series of one that rules read. Tasks of other machines are kept without the machine."""
    shared = dict(labels)
    # What a job reports is kept by the job's id alone; the label `job` of a rule's series is the server's.
    of_job = {**shared, JOB: shared.get("job_instance_id", "")}
    named = (
        tuple((each, of_job[each]) for each in sorted(names) if of_job.get(each))
        if JOB in names
        else only(labels, names)
    )
    node = shared.get("instance", "") if shared.get("job") == AGENTS else ""
    return kept.get((named, node)) or kept.get((named, ""))
