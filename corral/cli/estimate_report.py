"""The command `corral estimates`: how good the estimates of starts were, by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, span, table

if TYPE_CHECKING:
    from corral.client.schema import EstimateReport, QueueEstimates

_HEADINGS = ("QUEUE", "GIVEN", "STARTED", "WAIT", "HELD", "EARLY", "LATE", "COVERAGE", "WIDTH", "PAST", "BIAS", "ERROR")


@click.command("estimates")
@click.option("--queue", default="", metavar="NAME", help="Only this queue.")
@click.option("--days", type=click.Choice(["7", "30"]), default="7", show_default=True, help="How far to look back.")
@output_option
def estimates_command(queue: str, days: str, output: str) -> None:
    """Show how good the estimates of starts were that were given: coverage, width, bias and error, by queue.

    COVERAGE is how many of the intervals from P10 to P90 held; 80 % is aimed at. WIDTH is the median of the intervals,
    PAST the P10 to P90 of the waits themselves. BIAS is how much later jobs started than P50 (median), ERROR how far
    from it.

    \b
    corral estimates
    corral estimates --queue research --days 30
    """
    with connect() as client:
        report = client.estimates(queue=queue, days=int(days))
    if show(report, output, names=[each["queue"] for each in report["queues"]]):
        return
    if not report["queues"]:
        say(f"No estimate was given in the last {days} days.")
        return
    click.echo(report_text(report))


def report_text(report: EstimateReport) -> str:
    """Return a report as a table, with a line for all queues if there are several."""
    found = list(report["queues"])
    rows = [_row(each, each["queue"]) for each in found]
    if len(found) > 1:
        rows.append(_row(report["total"], "all"))
    return table(_HEADINGS, rows, right=frozenset(range(1, len(_HEADINGS))))


def _row(found: QueueEstimates, name: str) -> tuple[str, ...]:
    counts = (found[each] for each in ("given", "started", "waiting", "held", "early", "late"))
    coverage = "" if found["coverage"] is None else f"{100 * found['coverage']:.0f} %"
    bias = found["bias"]
    signed = "" if bias is None else f"{'-' if bias < 0 else '+'}{span(abs(bias))}"
    return (
        name,
        *map(str, counts),
        coverage,
        _span(found["width"]),
        _span(found["pastWidth"]),
        signed,
        _span(found["error"]),
    )


def _span(seconds: float | None) -> str:
    return "" if seconds is None else span(seconds)
