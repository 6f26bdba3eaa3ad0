"""The command `corral usage fairness`: what queues were owed and got in a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.output import output_option, say, show, table

if TYPE_CHECKING:
    from corral.client.schema import FairnessReport

_HOUR = 3600.0
_COLUMNS = ("QUEUE", "OWED", "GOT", "RATIO", "STARTED", "WAIT P50", "WAIT P95", "WORST FINISH")


@click.command("fairness")
@click.option("--week", default="", metavar="WEEK", help="A week such as 2026-W48; default: the last whole one.")
@output_option
def fairness_command(week: str, output: str) -> None:
    """Show what queues were owed and got in a week, in device-hours, and how long their jobs waited.

    OWED is the queue's weighted share of the devices that jobs held, hour by hour, given what its jobs wanted. WAIT is from
    submission to start. WORST FINISH is the largest time from submission to end of a job, divided by the time for which it
    needed its devices.
    """
    with connect() as client:
        report = client.fairness(week=week)
    if show(report, output, names=[each["queue"] for each in report["items"]]):
        return
    if report["items"]:
        click.echo(fairness_text(report))
    index = "" if report["jain"] is None else f" Jain's index is {report['jain']:.3f}."
    say(f"The week from {report['begin']} to {report['end']}.{index}")
    for each in report["unknown"]:
        say(each)


def fairness_text(report: FairnessReport) -> str:
    """Return the queues of a report as a table."""
    rows = [
        (
            each["queue"],
            f"{each['owed'] / _HOUR:.2f}",
            f"{each['got'] / _HOUR:.2f}",
            _number(each["ratio"]),
            str(each["started"]),
            _wait(each["waitP50"]),
            _wait(each["waitP95"]),
            _number(each["worstFinishTimeRatio"]),
        )
        for each in report["items"]
    ]
    return table(_COLUMNS, rows, right=frozenset(range(1, len(_COLUMNS))))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
