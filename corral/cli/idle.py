"""The command `corral idle`: jobs that leave their devices idle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from corral.cli.command_group import CommandGroup
from corral.cli.connection import connect
from corral.cli.output import FORMATS, say, show, table

if TYPE_CHECKING:
    from corral.client.schema import IdleJob

_COLUMNS = ("JOB", "USER", "QUEUE", "STATE", "IDLE", "SINCE", "WASTED", "THEN", "REASON")


@click.group("idle", cls=CommandGroup, invoke_without_command=True)
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print it.")
@click.pass_context
def idle_command(context: click.Context, output: str) -> None:
    """List jobs that leave their devices idle, or did within a week, where their owners were warned.

    What counts as idle, and what is done about it, is said by the part idle of queues and of the policy. WASTED are the
    device-hours that were left idle. THEN is what is done about the job, or was done, and when. A job marked (dry run) is
    only reported.

    \b
    corral idle
    corral idle extend trainer --reason "the data is late, it comes at noon"
    """
    if context.invoked_subcommand is not None:
        return
    with connect() as client:
        found = client.idle_jobs()
    if show(found, output, names=[each["job"] for each in found["items"]]):
        return
    if not found["items"]:
        say("No job leaves its devices idle.")
        return
    click.echo(idle_text(found["items"]))


@idle_command.command("extend")
@click.argument("job")
@click.option("--reason", required=True, metavar="TEXT", help="Why it needs its devices; it is kept in the audit log.")
def extend_command(job: str, reason: str) -> None:
    """Give a job whose owner was warned more time: as long as devices may be idle before a warning, once."""
    with connect() as client:
        made = client.extend_idle(job, reason=reason)
    say(f"Job {made['name']} has time until {made['extendedUntil']}.")


def idle_text(jobs: Sequence[IdleJob]) -> str:
    """Return jobs with idle devices as a table."""
    rows = [
        (
            each["name"],
            each["user"],
            each["queue"],
            each["state"] + (" (dry run)" if each["dryRun"] else ""),
            f"{each['idle']} of {each['held']}",
            each["since"] or "",
            f"{each['wastedDeviceSeconds'] / 3600:.1f}",
            _then(each),
            each["reason"],
        )
        for each in jobs
    ]
    return table(_COLUMNS, rows, right=frozenset({6}))


def _then(job: IdleJob) -> str:
    at = job["actedAt"] or job["actsAt"]
    return f"{job['action']} at {at}" if at else ""
