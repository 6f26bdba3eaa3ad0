"""Lay the curves of several jobs over each other: one scale for each metric, and a line for each job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from corral.cli.output import table
from corral.cli.series_figures import NAMES_OF_A_JOB, WIDTH, short_name, short_number
from corral.cli.sparkline import sparkline, squeezed

if TYPE_CHECKING:
    from corral.client.schema import SeriesAnswer, SeriesView

MOST_JOBS: Final = 8
"""Jobs that are laid over each other: of more, nobody tells the lines apart."""
Values = Sequence[float | None]


class _Curve(NamedTuple):
    metric: str
    job: str
    mean: Values
    least: float
    most: float


def overlay_text(answers: Mapping[str, SeriesAnswer], *, aligned: bool) -> str:
    """Return the series of jobs as a table, by metric and then in the order of the jobs.

    The answers are of the same period. With `aligned`, each job begins with its own first value.
    """
    curves = [curve for job, answer in answers.items() for curve in _curves(job, answer, aligned=aligned)]
    order = {job: at for at, job in enumerate(answers)}
    length = max((len(each.mean) for each in curves), default=0)
    rows = []
    for metric in sorted({each.metric for each in curves}):
        of_metric = sorted((each for each in curves if each.metric == metric), key=lambda each: order[each.job])
        drawn = [squeezed([*each.mean, *[None] * (length - len(each.mean))], WIDTH) for each in of_metric]
        known = [value for values in drawn for value in values if value is not None]
        scale = min(known), max(known)
        for at, (curve, values) in enumerate(zip(of_metric, drawn, strict=True)):
            means = [value for value in curve.mean if value is not None]
            figures = map(short_number, (means[-1], curve.least, sum(means) / len(means), curve.most))
            rows.append((metric if at == 0 else "", curve.job, *figures, sparkline(values, WIDTH, scale)))
    headings = ("METRIC", "JOB", "LAST", "LEAST", "MEAN", "MOST", "OVER TIME")
    return table(headings, rows, right=frozenset(range(2, 6)))


def _curves(job: str, answer: SeriesAnswer, *, aligned: bool) -> Iterator[_Curve]:
    begin = min((_first(each["mean"]) for each in answer["items"]), default=0) if aligned else 0
    for each in answer["items"]:
        lows = [value for value in each["low"] if value is not None]
        highs = [value for value in each["high"] if value is not None]
        if lows and highs:
            yield _Curve(_metric(each), job, each["mean"][begin:], min(lows), max(highs))


def _first(values: Values) -> int:
    """The place of the first value; the length if there is none."""
    return next((at for at, value in enumerate(values) if value is not None), len(values))


def _metric(series: SeriesView) -> str:
    """The name under which series of several jobs are the same."""
    return short_name(series, frozenset(series["labels"]) - NAMES_OF_A_JOB)
