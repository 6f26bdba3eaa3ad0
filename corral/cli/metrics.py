"""The command `corral metrics`: what a job reported and what the server measured, over time."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from corral.cli.connection import connect
from corral.cli.csv_cells import csv_cell
from corral.cli.output import FORMATS, say, show, table
from corral.cli.sparkline import sparkline
from corral.kernel.units import parse_duration

if TYPE_CHECKING:
    from corral.client.schema import SeriesAnswer, SeriesView

_WIDTH = 48
_OF_JOB = "corral_job_"
_NAMES_OF_A_JOB: Final = frozenset({"job", "job_instance_id", "job_name", "username", "virtual_cluster"})


@click.command("metrics")
@click.argument("job", required=False, default="")
@click.option("--family", "families", multiple=True, metavar="NAME", help="Only this metric; may be repeated.")
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="Only series with this label.")
@click.option("--since", default="", metavar="DURATION", help="How far to look back, such as 30m or 7d; default: 1h.")
@click.option("--to", "end", default="", metavar="TIME", help="Until this time; default: now.")
@click.option(
    "--step", default="", metavar="DURATION", help="Length of a step, a multiple of 15s; default: by the period."
)
@click.option(
    "-o", "--output", type=click.Choice((*FORMATS, "csv")), default="table", show_default=True, help="How to print it."
)
def metrics_command(
    job: str, families: tuple[str, ...], labels: tuple[str, ...], since: str, end: str, step: str, output: str
) -> None:
    """Show the figures of a job over time: its progress, loss and throughput as it reports them.

    Without JOB show metrics of the server by their names. The last day is kept in steps of 15 s, and 90 days in steps of
    10 min. A line has a bar for each part of the period, from the least to the greatest value; a blank is a part without
    a value.

    \b
    corral metrics trainer
    corral metrics trainer --family corral_job_loss --since 7d -o csv > loss.csv
    corral metrics --family corral_queue_used --label queue=research --since 1d
    """
    with connect() as client:
        answer = client.series(
            families, job=job, labels=labels, begin=_begin(since, end) if since else "", end=end, step=step
        )
    if output == "csv":
        _write_csv(answer)
        return
    if show(answer, output, names=sorted({each["family"] for each in answer["items"]})):
        return
    period = f"from {answer['begin']} to {answer['end']}"
    if not answer["items"]:
        say(f"There are no values {period}.")
        return
    click.echo(series_text(answer))
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
        return frozenset(items[0]["labels"]) - _NAMES_OF_A_JOB
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
        return _named(series, told), "", "", "", "", ""
    line = sparkline(series["mean"], _WIDTH)
    return _named(series, told), *map(_short, (means[-1], min(lows), sum(means) / len(means), max(highs))), line


def _named(series: SeriesView, told: frozenset[str]) -> str:
    labels = {name: value for name, value in series["labels"].items() if name in told}
    said = ",".join(f"{name}={value}" for name, value in labels.items())
    return series["family"].removeprefix(_OF_JOB) + (f"{{{said}}}" if said else "")


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 or abs(value) >= 1e15 else f"{value:.0f}"


def _write_csv(answer: SeriesAnswer) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["time", "family", "labels", "mean", "least", "most"])
    writer.writerows(_csv_rows(answer))


def _csv_rows(answer: SeriesAnswer) -> Iterator[tuple[object, ...]]:
    """Yield a row for each step that has a value."""
    begin, step = datetime.fromisoformat(answer["begin"]), timedelta(seconds=answer["step"])
    for series in answer["items"]:
        labels = csv_cell(";".join(f"{name}={value}" for name, value in series["labels"].items()))
        for at, (mean, low, high) in enumerate(zip(series["mean"], series["low"], series["high"], strict=True)):
            if mean is not None:
                yield (begin + at * step).isoformat().replace("+00:00", "Z"), series["family"], labels, mean, low, high
