"""The command `corral metrics`: what a job reported and what the server measured, over time."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.csv_cells import csv_cell
from corral.cli.metrics_overlay import MOST_JOBS, overlay_text
from corral.cli.output import FORMATS, say, show, table
from corral.cli.series_figures import NAMES_OF_A_JOB, WIDTH, short_name, short_number
from corral.cli.sparkline import sparkline
from corral.kernel.units import parse_duration

if TYPE_CHECKING:
    from corral.client.schema import SeriesAnswer, SeriesView


@click.command("metrics")
@click.argument("jobs", nargs=-1, metavar="[JOB] [OTHER]...")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this metric; may be repeated.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Only series with this label.")
@click.option("--since", default="", metavar="DURATION", help="How far to look back, such as 30m or 7d; default: 1h.")
@click.option("--to", "end", default="", metavar="TIME", help="Until this time; default: now.")
@click.option(
    "--step", default="", metavar="DURATION", help="Length of a step, a multiple of 15s; default: by the period."
)
@click.option("--aligned", is_flag=True, help="Begin each of several jobs with its own first value.")
@click.option(
    "-o", "--output", type=click.Choice((*FORMATS, "csv")), default="table", show_default=True, help="How to print it."
)
def metrics_command(
    jobs: tuple[str, ...],
    families: tuple[str, ...],
    labels: tuple[str, ...],
    since: str,
    end: str,
    step: str,
    aligned: bool,
    output: str,
) -> None:
    """Show the figures of a job over time: its progress, loss and throughput as it reports them.

    Without JOB show metrics of the server by their names. The last day is kept in steps of 15 s, and 90 days in steps of
    10 min. A line has a bar for each part of the period, from the least to the greatest value; a blank is a part without
    a value. With several jobs the lines of a metric have one scale, so that they can be compared.

    \b
    corral metrics trainer
    corral metrics trainer trainer-2 --family corral_job_loss --since 1d --aligned
    corral metrics trainer --family corral_job_loss --since 7d -o csv > loss.csv
    corral metrics --family corral_queue_used --label queue=research --since 1d
    """
    if len(jobs) > MOST_JOBS:
        raise click.UsageError(f"At most {MOST_JOBS} jobs are shown together, not {len(jobs)}.")
    end = end or (datetime.now(UTC).isoformat() if len(jobs) > 1 else "")  # several answers are of one period
    begin = _begin(since, end) if since else ""
    with connect() as client:
        answers = {
            job: client.series(families, job=job, labels=labels, begin=begin, end=end, step=step)
            for job in dict.fromkeys(jobs or ("",))
        }
    first = next(iter(answers.values()))
    if output == "csv":
        _write_csv(answers)
    elif len(answers) > 1:
        _show_several(answers, output, aligned=aligned)
    elif not show(first, output, names=sorted({each["family"] for each in first["items"]})):
        _say_what(first, series_text(first))


def _show_several(answers: Mapping[str, SeriesAnswer], output: str, *, aligned: bool) -> None:
    names = sorted({each["family"] for answer in answers.values() for each in answer["items"]})
    if show({"jobs": answers}, output, names=names):
        return
    first = next(iter(answers.values()))
    found: list[SeriesView] = [each for answer in answers.values() for each in answer["items"]]
    left_out = sum(answer["leftOut"] for answer in answers.values())
    _say_what({**first, "items": found, "leftOut": left_out}, overlay_text(answers, aligned=aligned))


def _say_what(answer: SeriesAnswer, text: str) -> None:
    """Print a table of series, and what they are of."""
    period = f"from {answer['begin']} to {answer['end']}"
    if not answer["items"]:
        say(f"There are no values {period}.")
        return
    click.echo(text)
    left_out = f" {answer['leftOut']} more series are not shown." if answer["leftOut"] else ""
    say(f"Values {period}.{left_out}")


def _begin(since: str, end: str) -> str:
    """Return the time that lies a duration before `end`."""
    try:
        seconds = parse_duration(since)
        until = datetime.fromisoformat(end) if end else datetime.now(UTC)
        return (until - timedelta(seconds=seconds)).isoformat()
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--since {since[:50]!r} is not a duration such as 30m or 7d: {error}.") from None


def series_text(answer: SeriesAnswer) -> str:
    """Return series as a table with a line of bars each; labels that tell none of them apart are left out."""
    told = _telling_labels(answer["items"])
    rows = [_row(each, told) for each in answer["items"]]
    return table(("METRIC", "LAST", "LEAST", "MEAN", "MOST", "OVER TIME"), rows, right=frozenset(range(1, 5)))


def _telling_labels(items: Sequence[SeriesView]) -> frozenset[str]:
    """The labels with several values; of a single series all but those that name its job."""
    if len(items) == 1:
        return frozenset(items[0]["labels"]) - NAMES_OF_A_JOB
    values: dict[str, set[str]] = {}
    for each in items:
        for name, value in each["labels"].items():
            values.setdefault(name, set()).add(value)
    return frozenset(name for name, found in values.items() if len(found) > 1)


def _row(series: SeriesView, told: frozenset[str]) -> tuple[str, ...]:
    means = [each for each in series["mean"] if each is not None]
    lows = [each for each in series["low"] if each is not None]
    highs = [each for each in series["high"] if each is not None]
    if not (means and lows and highs):
        return short_name(series, told), "", "", "", "", ""
    line = sparkline(series["mean"], WIDTH)
    return (
        short_name(series, told),
        *map(short_number, (means[-1], min(lows), sum(means) / len(means), max(highs))),
        line,
    )


def _write_csv(answers: Mapping[str, SeriesAnswer]) -> None:
    """Write a line for each step with a value; of several jobs the first column is the job."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    several = len(answers) > 1
    writer.writerow([*(["job"] if several else ()), "time", "family", "labels", "mean", "least", "most"])
    for job, answer in answers.items():
        writer.writerows((csv_cell(job), *row) if several else row for row in _csv_rows(answer))


def _csv_rows(answer: SeriesAnswer) -> Iterator[tuple[object, ...]]:
    """Yield a row for each step that has a value."""
    begin, step = datetime.fromisoformat(answer["begin"]), timedelta(seconds=answer["step"])
    for series in answer["items"]:
        labels = csv_cell(";".join(f"{name}={value}" for name, value in series["labels"].items()))
        for at, (mean, low, high) in enumerate(zip(series["mean"], series["low"], series["high"], strict=True)):
            if mean is not None:
                yield (begin + at * step).isoformat().replace("+00:00", "Z"), series["family"], labels, mean, low, high
