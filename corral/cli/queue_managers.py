"""Commands for queue managers: `corral order` and `corral limit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from corral.cli.connection import connect
from corral.cli.job_arrays import one_job
from corral.cli.output import output_option, say, show, table


@click.command("order")
@click.argument("job")
@click.option("--first", "place", flag_value="first", help="Before all other waiting jobs of its queue.")
@click.option("--last", "place", flag_value="last", help="Behind all of them.")
@click.option("--own", "place", flag_value="own", help="Back where the queue's order has it.")
@click.option("--before", default="", metavar="JOB", help="Before this waiting job, and those that are equal to it.")
def order_command(job: str, place: str | None, before: str) -> None:
    """Move a waiting job within its queue.

    For managers of the queue (corral groups grant GROUP --manage QUEUE). A job that was moved ahead comes before all
    jobs that were not moved, whatever their priority. Preemption still follows priorities. Under the policy fair, jobs
    with a priority below 0 still come last; among them, the moved job is first.
    """
    if bool(place) == bool(before):
        raise click.UsageError("Say one of --first, --last, --before JOB and --own.")
    with connect() as client, one_job(client, job):
        found = client.order_job(job, place or "before", before=before)
    say(f"{found['name']} is put {'before ' + before if before else place} in queue {found['queue']}.")


@click.command("limit")
@click.argument("queue")
@click.option("--all", "limit", multiple=True, metavar="RESOURCE=AMOUNT", help="The most that all its jobs may hold.")
@click.option(
    "--user", "user_limit", multiple=True, metavar="RESOURCE=AMOUNT", help="The most that a user's jobs may hold."
)
@click.option(
    "--group", "group_limit", multiple=True, metavar="RESOURCE=AMOUNT", help="The most that a group's jobs may hold."
)
@click.option("--clear", is_flag=True, help="Take all these limits away.")
@click.option("--dry-run", is_flag=True, help="Only check whether it would be accepted.")
@output_option
def limit_command(
    queue: str,
    limit: Sequence[str],
    user_limit: Sequence[str],
    group_limit: Sequence[str],
    clear: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Show or set the limits of a queue's members, below the queue's own limits.

    For managers of the queue. The given limits replace all limits that managers have set before.

    \b
    corral limit vision --user devices=4
    """
    named = any((limit, user_limit, group_limit))
    if clear and named:
        raise click.UsageError("Either --clear, or limits.")
    with connect() as client:
        if named or clear:
            found = client.limit_queue(
                queue,
                limit=_amounts(limit),
                user_limit=_amounts(user_limit),
                group_limit=_amounts(group_limit),
                dry_run=dry_run,
            )
        else:
            found = client.queue_limits(queue)
    if show(found, output, names=[queue]):
        return
    limits: Mapping[str, Any] = found
    kinds = (("all its jobs", "limit"), ("one user", "userLimit"), ("one group", "groupLimit"))
    rows = [(who, f"{name}={amount}") for who, kind in kinds for name, amount in sorted(limits[kind].items())]
    if rows:
        click.echo(table(("WHO", "HOLDS AT MOST"), rows))
    else:
        say(f"Managers have set no limits in {queue}.")
    if dry_run:
        say("Nothing was changed.")


def _amounts(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        name, sign, amount = word.partition("=")
        if not (name and sign and amount):
            raise click.UsageError(f"A limit reads RESOURCE=AMOUNT, such as devices=4, not {word!r}.")
        found[name] = amount
    return found
