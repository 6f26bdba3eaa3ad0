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
_USER_COLUMNS = ("USER", "JOBS", "RHO P50", "WORST RHO", "WORST JOB")
_JOB_COLUMNS = ("JOB", "NAME", "DEVICES", "TOOK", "NEEDED", "RHO")


@click.command("fairness")
@click.option("--week", default="", metavar="WEEK", help="A week such as 2026-W48; default: the last whole one.")
@click.option(
    "--user", default="", metavar="USER", help="The jobs of this user, with the finish-time fairness of each."
)
@output_option
def fairness_command(week: str, user: str, output: str) -> None:
    """Show what queues were owed and got in a week, in device-hours, and how long their jobs waited.

    OWED is the queue's weighted share of the devices that jobs held, hour by hour, given what its jobs wanted. WAIT is from
    submission to start. WORST FINISH is the largest time from submission to end of a job, divided by the time for which it
    needed its devices.

    RHO is the finish-time fairness of jobs that succeeded: their time from submission to end, divided by the one on an
    equal share of all devices that is theirs alone. 1 is as on such a share, above it is worse. Administrators see that of
    all users, and others their own.
    """
    with connect() as client:
        report = client.fairness(week=week, user=user)
    if show(report, output, names=[each["queue"] for each in report["items"]]):
        return
    if user:
        click.echo(_jobs_text(report))
    elif report["items"]:
        click.echo(fairness_text(report))
    if report["users"]:
        click.echo("\n" + _users_text(report))
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


def _users_text(report: FairnessReport) -> str:
    rows = [
        (each["user"], str(each["jobs"]), _number(each["rhoP50"]), _number(each["worstRho"]), each["worstJob"])
        for each in report["users"]
    ]
    return table(_USER_COLUMNS, rows, right=frozenset((1, 2, 3)))


def _jobs_text(report: FairnessReport) -> str:
    rows = [
        (
            each["job"],
            each["name"],
            f"{each['devices']:g}",
            _wait(each["seconds"]),
            _wait(each["neededSeconds"]),
            _number(each["rho"]),
        )
        for each in report["jobs"]
    ]
    return table(_JOB_COLUMNS, rows, right=frozenset((2, 3, 4, 5)))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _wait(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
