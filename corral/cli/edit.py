"""`corral edit`: change the priority, duration or queue of a waiting job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from corral.cli.connection import connect
from corral.cli.job_arrays import job_or_array
from corral.cli.output import output_option, say, show
from corral.kernel.errors import Conflict

if TYPE_CHECKING:
    from corral.client.schema import EditView, JobSummary
    from corral.client.sync import Client


@click.command("edit")
@click.argument("job")
@click.option(
    "--priority", default=None, metavar="N|CLASS", help="Another priority: crit, prod, test, oppo or a number."
)
@click.option("--duration", default=None, metavar="TIME", help="How long it may run, such as 90m or 2h; 0 is no limit.")
@click.option("--queue", default=None, help="Another queue.")
@click.option("--wait-for-capacity", is_flag=True, help="Also move it where it could not run as things are.")
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@output_option
def edit_command(
    job: str,
    priority: str | None,
    duration: str | None,
    queue: str | None,
    wait_for_capacity: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Change a waiting job's priority, maximum duration or queue; it keeps its submission time.

    JOB is a job, or an array, of which all waiting jobs are changed. For the job's owner, managers of its queue and
    administrators. A job that has started is not changed.

    \b
    corral edit digits --priority prod --duration 2h
    """
    if priority is None and duration is None and queue is None:
        raise click.UsageError("Name at least one change: --priority, --duration or --queue.")
    terms: dict[str, Any] = {"priority": priority, "max_duration": duration, "queue": queue}
    terms |= {"wait_for_capacity": wait_for_capacity, "dry_run": dry_run}
    with connect() as client:
        named = job_or_array(client, job)
        if isinstance(named, list):
            found = _members(client, job, named, terms)
            data: Any = found
        else:
            data = client.edit(job, **terms)
            found = [data]
    if show(data, output, names=[each["id"] for each in found]):
        return
    for each in found:
        said = ", ".join(
            f"{change['field']} from {change['before']} to {change['after']}" for change in each["changes"]
        )
        say(f"{each['name']} ({each['id']}): {said or 'it is so already'}.")
    if dry_run:
        say("Nothing was changed.")


def _members(client: Client, array: str, jobs: list[JobSummary], terms: dict[str, Any]) -> list[EditView]:
    """Edit the waiting jobs of an array; skip a job that starts meanwhile."""
    found = []
    for each in jobs:
        if each["state"] != "waiting":
            continue
        try:
            found.append(client.edit(each["id"], **terms))
        except Conflict as error:
            if error.code != "job-not-waiting":
                raise
    if not found:
        raise Conflict("job-not-waiting", f"No job of {array} waits, and only waiting jobs can be edited.")
    return found
