"""The command `corral efficiency`: what jobs asked for, beside what they used."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.csv_cells import csv_cell
from corral.cli.output import FORMATS, NOT_MEASURED, say, show, table
from corral.cli.times import time_of
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.schema import EfficiencyReport, EfficiencySum, JobEfficiency, RoleEfficiency

_HOUR = 3600.0
_GIB = 1024**3
_FORMATS = (*FORMATS, "csv")
_CSV = (
    "job", "name", "user", "queue", "state", "role", "tasks", "measured_tasks", "device_seconds", "lost_device_seconds",
    "used_device_seconds", "device_percent", "device_memory_percent",
    *(f"{kind}_{name}" for kind in ("asked", "mean", "most", "would_do") for name in ("devices", "cpus", "memory_bytes")),
    "longest_seconds", "max_duration_seconds", "would_do_seconds",
)  # fmt: skip


@click.command("efficiency")
@click.argument("job", required=False, default="")
@click.option("--user", default="", metavar="NAME", help="All jobs of this user.")
@click.option("--queue", default="", metavar="NAME", help="All jobs of this queue.")
@click.option("--from", "begin", default="", metavar="TIME", help="From this time on; default: a week before the end.")
@click.option("--to", "end", default="", metavar="TIME", help="Until this time; default: now.")
@click.option(
    "-o", "--output", type=click.Choice(_FORMATS), default="table", show_default=True, help="How to print it."
)
def efficiency_command(job: str, user: str, queue: str, begin: str, end: str, output: str) -> None:
    """Show what jobs asked for and what they used: devices, their memory, processors, memory and time.

    Of one job it says so in sentences, with the smaller request that would have done. Without JOB it lists the jobs with
    the most device-hours of a user, a queue, or all that you may see. What was not measured is "-". A TIME is a
    day (2026-11-01, in UTC), of the form 2026-11-27T10:00:00Z, or so long ago (12h).

    \b
    corral efficiency trainer
    corral efficiency --user ann --from 2026-11-01
    corral efficiency --queue research -o csv > research.csv
    """
    if job and (user or queue or begin or end):
        raise click.UsageError("JOB goes without --user, --queue, --from and --to: a job is judged as a whole.")
    with connect() as client:
        if job:
            _show_job(client.efficiency(job), output)
            return
        begin, end = time_of("--from", begin), time_of("--to", end)
        report = client.efficiency_report(user=user, queue=queue, begin=begin, end=end)
    if output == "csv":
        _write_csv(report["items"])
        return
    if show(report, output, names=[each["job"] for each in report["items"]]):
        return
    period = f"from {report['begin']} to {report['end']}"
    if not report["items"]:
        say(f"No job ran {period}.")
        return
    click.echo(report_text(report))
    say(f"Jobs that ran {period}.{left_out_words(report['leftOut'])}")


def left_out_words(left_out: int) -> str:
    """Say how many jobs are in the sums without a line of their own."""
    if not left_out:
        return ""
    return f" {counted(left_out, 'further job')} {'counts' if left_out == 1 else 'count'} in the sums alone."


def _show_job(job: JobEfficiency, output: str) -> None:
    if output == "csv":
        _write_csv([job])
    elif not show(job, output, names=[job["job"]]):
        click.echo(job_text(job))


def job_text(job: JobEfficiency) -> str:
    """Return what is said of one job: a table of its roles where anything was measured, and the sentences."""
    said = "\n".join(job["words"])
    if not any(each["measuredTasks"] for each in job["roles"]):
        return said
    columns = ("ROLE", "", "DEVICES", "CPUS", "GIB")
    rows = [row for role in job["roles"] for row in _role_rows(role)]
    return f"{table(columns, rows, right=frozenset({2, 3, 4}))}\n\n{said}"


def _role_rows(role: RoleEfficiency) -> Iterator[tuple[str, ...]]:
    for name, label in (("asked", "asked"), ("mean", "used"), ("most", "most"), ("wouldDo", "would do")):
        amounts = role[name]  # type: ignore[literal-required]
        size = amounts["memoryBytes"]
        memory = None if size is None else size / _GIB
        yield (
            role["role"] if name == "asked" else "",
            label,
            _short(amounts["devices"]),
            _short(amounts["cpus"]),
            _short(memory),
        )


def _short(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.3g}"


def report_text(report: EfficiencyReport) -> str:
    """Return a report as a table of its jobs, with a line for each of several users and one for all."""
    columns = ("JOB", "USER", "QUEUE", "DEVICE-HOURS", "USED %", "LOST", "WOULD DO")
    rows: list[tuple[str, ...]] = [
        (
            each["name"], each["user"], each["queue"], _hours(each["deviceSeconds"]),
            _percent(each["usedDeviceSeconds"], each["measuredDeviceSeconds"]), _hours(each["lostDeviceSeconds"]),
            _would_do(each),
        )
        for each in report["items"]
    ]  # fmt: skip
    if len(report["users"]) > 1:
        rows += [_sum_row("all of the user", each) for each in report["users"]]
    if len(rows) > 1:
        rows.append(_sum_row("all", report["total"]))
    return table(columns, rows, right=frozenset({3, 4, 5}))


def _sum_row(name: str, of: EfficiencySum) -> tuple[str, ...]:
    used = _percent(of["usedDeviceSeconds"], of["measuredDeviceSeconds"])
    return name, of["key"], "", _hours(of["deviceSeconds"]), used, _hours(of["lostDeviceSeconds"]), ""


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR:.2f}"


def _percent(used: float | None, of: float) -> str:
    return NOT_MEASURED if used is None or not of else f"{100 * used / of:.0f}"


def _would_do(job: JobEfficiency) -> str:
    """Return the smaller requests of its roles, for the table."""
    said = []
    for role in job["roles"]:
        amounts, name = role["wouldDo"], f"{role['role']}: " if len(job["roles"]) > 1 else ""
        parts = [
            f"{value:g} {unit}"
            for value, unit in (
                (amounts["devices"], "devices"),
                (amounts["cpus"], "cpus"),
                (None if amounts["memoryBytes"] is None else round(amounts["memoryBytes"] / _GIB, 2), "GiB"),
            )
            if value is not None
        ]
        said += [name + ", ".join(parts)] if parts else []
    return "; ".join(said)


def _write_csv(jobs: Sequence[JobEfficiency]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_CSV)
    for job in jobs:
        about = [csv_cell(each) for each in (job["job"], job["name"], job["user"], job["queue"], job["state"])]
        for role in job["roles"]:
            kinds = (role["asked"], role["mean"], role["most"], role["wouldDo"])
            amounts = [each for kind in kinds for each in (kind["devices"], kind["cpus"], kind["memoryBytes"])]
            writer.writerow(
                [
                    *about, csv_cell(role["role"]), role["tasks"], role["measuredTasks"], role["deviceSeconds"],
                    role["lostDeviceSeconds"], role["usedDeviceSeconds"], role["devicePercent"],
                    role["deviceMemoryPercent"], *amounts,
                    job["longestSeconds"], job["maxDurationSeconds"], job["wouldDoSeconds"],
                ]
            )  # fmt: skip
