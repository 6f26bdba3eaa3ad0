"""Commands for a job's logs, task attempts and events."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.job_arrays import job_or_array, one_job
from corral.cli.output import age, output_option, paint, say, show, table
from corral.cli.paging import items, one_page
from corral.kernel.units import counted

if TYPE_CHECKING:
    from corral.client.schema import AttemptRecord, TaskRecord
    from corral.client.sync import Client

_TASKS = 64
"""Tasks of a job whose attempts are listed when no task is named."""


@click.command("logs")
@click.argument("job")
@click.argument("task", required=False, default="")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended; its result is the exit code.")
@click.option("-t", "--tail", type=click.IntRange(0, 1_000_000), default=None, help="Only this many of the last lines.")
@click.option("--stream", type=click.Choice(("all", "stdout", "stderr")), default="all", help="One stream of one task.")
@click.option(
    "--attempt", default="", help="Of one task: this attempt alone (1.0, an id or latest); corral attempts lists them."
)
@click.option("--prefix/--no-prefix", default=None, help="The task's name before each line; default: if several.")
def logs_command(
    job: str, task: str, follow: bool, tail: int | None, stream: str, attempt: str, prefix: bool | None
) -> int:
    """Print the output of all tasks of a job, or of one TASK (such as worker-0), attempt after attempt.

    Of an array, print one job after the other.

    \b
    corral logs digits --tail 20
    corral logs -f digits
    corral logs digits worker-1 --stream stderr
    corral logs digits --attempt 0.0
    """
    from corral.cli.follow import follow_job, print_log

    with connect() as client:
        if task or attempt or stream != "all":
            role, index = chosen_task(client, job, task)
            pieces = client.log(job, role, index, follow=follow, tail=tail, stream=stream, attempt=attempt)
            for piece in pieces:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            return 0
        found = job_or_array(client, job)
        succeeded = True
        for ref, name in [(each["id"], each["name"]) for each in found] if isinstance(found, list) else [(job, "")]:
            if name:
                click.echo(f"==> {name} <==")  # on standard output, so that a file contains it too
                sys.stdout.flush()
            if follow and tail is None and prefix is None:
                succeeded &= follow_job(client, ref)["state"] == "succeeded"
            else:
                print_log(client, ref, follow=follow, tail=tail, prefix=prefix)
        return 0 if succeeded else 1


@click.command("attempts")
@click.argument("job")
@click.argument("task", required=False, default="")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_TASKS,
    show_default=True,
    help="The attempts of this many tasks at most.",
)
@output_option
def attempts_command(job: str, task: str, limit: int, output: str) -> None:
    """List the attempts of a job's tasks, or of one TASK, with the numbers that --attempt takes.

    The number has the job's attempt and the task's attempt in it: 1.0 is the task's first attempt in the job's second.
    """
    with connect() as client, one_job(client, job):
        page = one_page(partial(client.tasks, job), limit) if not task else None
        tasks = [task] if page is None else [_name(each) for each in page["items"]]
        found = []
        for each in tasks:
            role, index = split_task(each)
            found += items(partial(client.attempts, job, role, index))[::-1]
    if page is not None and page["next"] is not None:
        say(f"These are the first {counted(limit, 'task')}; name a TASK, or more with --limit.")
    if show(found, output, names=[attempt["id"] for attempt in found]):
        return
    if not found:
        say("None of its tasks was given a place yet.")
        return
    headings = ("TASK", "ATTEMPT", "NODE", "STARTED", "RAN", "EXIT")
    click.echo(table(headings, (_attempt_row(attempt) for attempt in found)))


@click.command("events")
@click.argument("job", required=False, default="")
@click.option("-f", "--follow", is_flag=True, help="Go on as things happen, until Ctrl-C.")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=200, show_default=True, help="How many at most.")
@click.option(
    "--server", is_flag=True, help="What happened to the server itself: what stopped working, and for how long."
)
@output_option
def events_command(job: str, follow: bool, limit: int, server: bool, output: str) -> None:
    """Show the events of a JOB; with -f and without a job, new events of all jobs and of the server."""
    if server and (job or follow):
        raise click.UsageError("--server lists what happened to the server; -f without a job follows that, too.")
    if not job and not follow and not server:
        raise click.UsageError("Name a job, follow all jobs with -f, or ask for --server.")
    with connect() as client, one_job(client, job):
        last = 0
        if server:
            found = client.server_events(limit=limit)["items"][::-1]
            if show(found, output, names=[str(event["seq"]) for event in found]):
                return
            if not found:
                say("Nothing is known to have stopped working.")
                return
            rows = [(event["at"], event["kind"], event["actor"], event["message"]) for event in found]
            click.echo(table(("TIME", "KIND", "TOLD BY", "WHAT"), rows))
            return
        if job:
            found = client.job_events(job, limit=limit)["items"]
            last = found[-1]["seq"] if found else 0
            if not follow and show(found, output, names=[str(event["seq"]) for event in found]):
                return
            rows = [(event["at"], event["kind"], _task(event), event["message"]) for event in found]
            click.echo(table(("TIME", "KIND", "TASK", "WHAT"), rows))
        if follow:
            for event in client.events(after=last if job else None, job=job):
                if output == "json":
                    click.echo(json.dumps(event, ensure_ascii=False))
                else:
                    who = _task(event) if job else f"{event['job'] or 'server'} {_task(event)}"
                    click.echo(f"{paint(event['at'], dim=True)}  {event['kind']}  {who}  {event['message']}")


def split_task(task: str) -> tuple[str, int]:
    """Return the role and index of `worker-0`."""
    role, _, index = task.rpartition("-")
    if not role or not index.isdigit():
        raise click.UsageError(f"{task!r} is not a task; write its role and index, such as worker-0.")
    return role, int(index)


def _name(task: TaskRecord | AttemptRecord) -> str:
    return f"{task['role']}-{task['index']}"


def _attempt_row(attempt: AttemptRecord) -> tuple[object, ...]:
    end = attempt["exit"]
    told = f"{end['phrase']} ({end['code']})" if end else ("" if attempt["endedAt"] is None else "ended")
    number = f"{attempt['jobAttempt']}.{attempt['attempt']}"
    ran = age(attempt["startedAt"], attempt["endedAt"]) if attempt["startedAt"] else ""
    return (_name(attempt), number, attempt["node"], attempt["startedAt"] or "", ran, told)


def chosen_task(client: Client, job: str, task: str) -> tuple[str, int]:
    """Return the role and index of a task, or of the job's only task when none is named."""
    if task:
        return split_task(task)
    found = [(each["role"], each["index"]) for each in client.tasks(job, limit=4)["items"]]
    if not found:  # the server has not read the job yet: its document names the same tasks
        roles = client.job(job)["roles"]
        found = [(role["name"], index) for role in roles for index in range(min(role["target"], 4))][:4]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{role}-{index}" for role, index in found[:3])
    more = ", …" if len(found) > 3 else ""
    raise click.UsageError(f"Name a task of {job}: {names}{more}." if names else f"{job} has no task yet.")


def _task(event: object) -> str:
    assert isinstance(event, dict)
    return f"{event['role']}-{event['index']}" if event["role"] else ""
