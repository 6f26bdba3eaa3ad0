"""The command `corral usage`: who used how many device-hours."""

from __future__ import annotations

import csv
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.csv_cells import csv_cell
from corral.cli.fairness_report import fairness_command
from corral.cli.focus_columns import COLUMNS, focus_cells, focus_row
from corral.cli.output import FORMATS, NOT_MEASURED, say, show, table
from corral.cli.times import time_of

if TYPE_CHECKING:
    from corral.client.schema import UsageReport, UsageRow
    from corral.client.sync import Client

_BY = ("user", "queue", "job", "tag", "node", "model")
_COLUMNS = (
    "KEY", "DEVICE-HOURS", "USED %", "LOST", "IDLE", "WASTED %", "TASK-HOURS", "CPU-HOURS", "CPU USED", "GIB-HOURS",
    "GIB USED", "KWH",
)  # fmt: skip
_HOUR = 3600.0
_KWH = 3_600_000.0
_ALL_PERCENT = 99.5
"""Percent that count as all: of a whole month, the last look at each task is missing."""
_NO_NAME = {"tag": "(no tag)", "model": "(no model)"}


@click.group("usage", cls=CommandGroup, invoke_without_command=True)
@click.option("--by", type=click.Choice(_BY), default="user", show_default=True, help="What use is summed by.")
@click.option("--from", "begin", default="", metavar="TIME", help="From this time on; default: 30 days before the end.")
@click.option("--to", "end", default="", metavar="TIME", help="Until this time; default: now.")
@click.option("--user", default="", metavar="NAME", help="Only this user's use.")
@click.option("--queue", default="", metavar="NAME", help="Only jobs of this queue.")
@click.option(
    "-o",
    "--output",
    type=click.Choice((*FORMATS, "csv", "focus")),
    default="table",
    show_default=True,
    help="How to print it.",
)
@click.pass_context
def usage_command(context: click.Context, by: str, begin: str, end: str, user: str, queue: str, output: str) -> None:
    """Show who used how many device-hours, and how many of them came to nothing.

    LOST is the part of attempts that failed, were preempted, or were lost with their node. IDLE is the part of other
    attempts in which the use of a device was below 5 %. WASTED is both. USED % is the mean use of the devices, of the time
    in which it was measured. TASK-HOURS count tasks without devices too. CPU-HOURS and GIB-HOURS (of memory) are what the
    tasks asked for, and USED is what was measured of it. KWH is the energy of devices that tell their power. Administrators
    see everybody's use, managers that of their queues, others their own. A TIME is a day (2026-11-01, in UTC), of the
    form 2026-11-27T10:00:00Z, or so long ago (12h).

    With a Prices document a report has costs. FOCUS is CSV with the columns of the FinOps FOCUS specification, a line for
    each day, user, queue, device model and meter; --by does not apply to it.

    \b
    corral usage
    corral usage --by queue --from 2026-11-01 --to 2026-12-01
    corral usage --by job --queue research -o csv > november.csv
    corral usage --from 2026-11-01 --to 2026-12-01 -o focus > november-focus.csv
    """
    if context.invoked_subcommand is not None:
        return
    begin, end = time_of("--from", begin), time_of("--to", end)
    with connect() as client:
        if output == "focus":
            _write_focus(client, begin, end, user, queue)
            return
        report = client.usage(by=by, begin=begin, end=end, user=user, queue=queue)
    if output == "csv":
        _write_csv(report)
        return
    if show(report, output, names=[each["key"] for each in report["items"]]):
        return
    period = f"from {report['begin']} to {report['end']}"
    if not report["items"]:
        say(f"Nothing was used {period}.")
        return
    click.echo(report_text(report))
    say(f"Used {period}.")
    if words := _measured_words(report["total"]):
        say(words)


usage_command.add_command(fairness_command)


def report_text(report: UsageReport) -> str:
    """Return a report as a table, with a line for all rows if there are several."""
    columns = [report["by"].upper(), *_COLUMNS[1:]]
    if report["currency"]:
        columns.append(report["currency"])
    rows = [_row(each, _named(each, report["by"])) for each in report["items"]]
    if report["leftOut"]:
        rows.append((f"({report['leftOut']} more)", *[""] * (len(columns) - 1)))
    if len(rows) > 1:
        rows.append(_row(report["total"], "all"))
    return table(tuple(columns), rows, right=frozenset(range(1, len(columns))))


def _named(row: UsageRow, by: str) -> str:
    if by == "job" and row["key"]:
        return f"{row['name']} ({row['key']})"
    return row["key"] or _NO_NAME.get(by, "(removed)")


def _row(row: UsageRow, name: str) -> tuple[str, ...]:
    lost, idle, held = row["lostDeviceSeconds"], row["idleDeviceSeconds"], row["deviceSeconds"]
    known = row["measuredDeviceSeconds"]
    cost = () if row["cost"] is None else (f"{row['cost']:.2f}",)
    measured = bool(row["measuredTaskSeconds"])
    return (
        name,
        _hours(held),
        f"{100 * row['usedDeviceSeconds'] / known:.0f}" if known else NOT_MEASURED,
        _hours(lost),
        _hours(idle) if known else NOT_MEASURED,
        f"{100 * (lost + idle) / held:.0f}" if held else NOT_MEASURED,
        _hours(row["taskSeconds"]),
        _hours(row["cpuSeconds"]),
        _hours(row["usedCpuSeconds"]) if measured else NOT_MEASURED,
        _hours(row["memoryGibSeconds"]),
        _hours(row["usedMemoryGibSeconds"]) if measured else NOT_MEASURED,
        f"{row['energyJoules'] / _KWH:.3f}" if row["energyJoules"] else NOT_MEASURED,
        *cost,
    )


def _measured_words(total: UsageRow) -> str:
    """Say of how much of the time USED is, where it is not of all."""
    percent = 100 * total["measuredTaskSeconds"] / total["taskSeconds"] if total["taskSeconds"] else 100.0
    said = []
    if percent < _ALL_PERCENT:
        said.append(f"Tasks were measured for {percent:.0f} % of their time: USED and KWH are of that part.")
    held, known = total["deviceSeconds"], total["measuredDeviceSeconds"]
    if known and (percent := 100 * known / held) < _ALL_PERCENT:
        said.append(f"The use of devices was measured for {percent:.0f} % of theirs: USED % and IDLE are of that part.")
    return " ".join(said)


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:.2f}"


_AMOUNTS = {
    "device_seconds": "deviceSeconds",
    "lost_device_seconds": "lostDeviceSeconds",
    "task_seconds": "taskSeconds",
    "cpu_seconds": "cpuSeconds",
    "memory_gib_seconds": "memoryGibSeconds",
    "measured_task_seconds": "measuredTaskSeconds",
    "used_cpu_seconds": "usedCpuSeconds",
    "used_memory_gib_seconds": "usedMemoryGibSeconds",
    "energy_joules": "energyJoules",
    "measured_device_seconds": "measuredDeviceSeconds",
    "used_device_seconds": "usedDeviceSeconds",
    "idle_device_seconds": "idleDeviceSeconds",
    "cost": "cost",
}
"""Columns of CSV, and the fields that they show."""


def _write_csv(report: UsageReport) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([report["by"], "name", "from", "to", *_AMOUNTS, "currency"])
    for each in report["items"]:
        amounts = [each[field] for field in _AMOUNTS.values()]  # type: ignore[literal-required]
        writer.writerow(
            [
                csv_cell(each["key"]),
                csv_cell(each["name"]),
                report["begin"],
                report["end"],
                *amounts,
                report["currency"],
            ]
        )


def _write_focus(client: Client, begin: str, end: str, user: str, queue: str) -> None:
    """Write all charges of a period as FOCUS, some days at a time."""
    writer, after = csv.writer(sys.stdout, lineterminator="\n"), begin
    end = end or f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    writer.writerow(COLUMNS)
    while True:
        page = client.charges(begin=after, end=end, user=user, queue=queue)
        for each in page["items"]:
            writer.writerow(map(csv_cell, focus_cells(focus_row(each, page["currency"], client.url))))
        if not page["next"]:
            return
        after = page["next"]
