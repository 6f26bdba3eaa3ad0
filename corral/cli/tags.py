"""`corral tag`: add and remove tags of jobs, by which `corral ls --tag` finds them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from corral.cli.connection import connect
from corral.cli.job_arrays import each_job
from corral.cli.output import say


@click.command("tag")
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--add", "-a", multiple=True, metavar="TAG", help="Add this tag; repeat it for several.")
@click.option("--remove", "-r", multiple=True, metavar="TAG", help="Remove this tag; repeat it for several.")
def tag_command(jobs: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> None:
    """Add and remove tags of jobs, or of all jobs of an array, live and ended.

    \b
    corral tag digits digits-2 --add paper --remove draft
    corral ls --tag paper
    """
    if not add and not remove:
        raise click.UsageError("Name at least one tag: --add TAG or --remove TAG.")
    with connect() as client:
        for job in each_job(client, jobs):
            found = client.tag(job, add=add, remove=remove)
            say(f"{found['name']} ({found['id']}) has {_tags(found['tags'])}.")


def _tags(tags: Sequence[str]) -> str:
    return f"the tags {', '.join(tags)}" if tags else "no tags"
