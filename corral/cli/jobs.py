"""Commands that list, show and control jobs."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from corral.cli.connection import connect
from corral.cli.estimates import estimate_text, forecast_text
from corral.cli.job_arrays import counted_states, each_job, job_or_array, one_job
from corral.cli.output import age, devices_of, output_option, paint, say, show, state, table
from corral.cli.paging import items, one_page
from corral.cli.times import time_of
from corral.kernel.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from corral.client.schema import JobDetail, JobSummary, TaskRecord
    from corral.client.sync import Client

STATES = ("waiting", "starting", "running", "stopping", "succeeded", "failed", "stopped")
_SHOWN = 50
_MOST = 100_000
"""Jobs listed at most for outputs other than the table, unless -n is given."""
_TASKS = 1000
"""Tasks of a job that are asked how they ended; the table shows fewer."""
_NAME = re.compile(r"[A-Za-z0-9._-][A-Za-z0-9._@-]{0,125}")
"""What queues and accounts can be called."""
_REASON = 80
"""Characters of the reason in a job's line."""
jobs_argument = click.argument("jobs", nargs=-1, required=True, metavar="JOB...")


@click.command("ls")
@click.option("-s", "--state", "states", multiple=True, type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("-u", "--user", "users", multiple=True, help="Only this user's jobs.")
@click.option("--queue", "queues", multiple=True, help="Only jobs of this queue.")
@click.option("-q", "--search", default="", help="A part of the name, or the beginning of the id.")
@click.option("--tag", default="", help="Only jobs with this tag.")
@click.option("-l", "--label", "labels", multiple=True, metavar="NAME=VALUE", help="Only jobs with this label.")
@click.option("--type", "job_type", default="", help="Only jobs of this type (pytorch, shell, …).")
@click.option("--min-priority", type=int, default=None, help="Only jobs of this priority and above.")
@click.option("--max-priority", type=int, default=None, help="Only jobs of this priority and below.")
@click.option("--since", default="", metavar="TIME", help="Only jobs submitted after this time or day, or 12h ago.")
@click.option("--until", default="", metavar="TIME", help="Only jobs submitted before this time or day, or 12h ago.")
@click.option("--live", is_flag=True, help="Only jobs that are not over.")
@click.option("--removed", is_flag=True, help="The lines that removed and long-ended jobs have left (with -u, -n).")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 100_000),
    default=None,
    help="How many at most; default: 50, with -o all.",
)
@click.option(
    "--order",
    type=click.Choice(("newest", "oldest", "name", "priority", "ended")),
    default="newest",
    show_default=True,
    help="Which come first.",
)
@output_option
def ls_command(
    states: Sequence[str],
    users: Sequence[str],
    queues: Sequence[str],
    search: str,
    tag: str,
    labels: Sequence[str],
    job_type: str,
    min_priority: int | None,
    max_priority: int | None,
    since: str,
    until: str,
    live: bool,
    removed: bool,
    limit: int | None,
    order: str,
    output: str,
) -> None:
    """List jobs, newest first.

    \b
    corral ls                      the last 50
    corral ls --live               those that wait or run
    corral ls -s failed -u alice   by state and user
    corral ls --since 2026-11-27   submitted on that day or later
    corral ls --removed            jobs removed by hand or by retention
    corral ls -s failed -o name | xargs corral rm
    """
    wanted = [*states, *(STATES[:4] if live else ())]
    bounded = min_priority is not None or max_priority is not None
    times = {"created_after": time_of("--since", since), "created_before": time_of("--until", until)}
    narrowed = bool(wanted or queues or search or tag or labels or job_type or bounded or since or until)
    if removed and (narrowed or order != "newest" or len(users) > 1):
        raise click.UsageError("--removed goes with -n and one -u only.")
    limit = limit or (_SHOWN if output == "table" else _MOST)
    with connect() as client:
        if removed:
            page = one_page(client.history, limit, user="".join(users))
        else:
            asked: dict[str, Any] = {
                "state": wanted,
                "user": users,
                "queue": queues,
                "q": search,
                "tag": tag,
                "job_type": job_type,
            }
            asked |= {"label": labels} if labels else {}
            asked |= {"min_priority": min_priority, "max_priority": max_priority} if bounded else {}
            asked |= {name: at for name, at in times.items() if at}
            page = one_page(client.jobs, limit, **asked, order=order)
            if not page["items"]:
                _tell_of_missing(client, queues, users)
    found = page["items"]
    if show(found, output, names=[job["id"] for job in found]):
        return
    if not found:
        none = "No job matches." if narrowed or users else "No jobs. Run one: corral run -- echo hello"
        say("No job was removed." if removed else none)
        return
    click.echo(_jobs_table(found))
    if page["next"]:
        say(f"There are more; corral ls -n {limit * 4} shows them.")


def _jobs_table(found: Sequence[JobSummary]) -> str:
    rows = [
        (
            job["name"],
            state(job["state"]),
            f"{job['tasks']['succeeded' if job['state'] in STATES[4:] else 'running']}/{job['tasks']['total']}",
            devices_of(job),
            job["user"],
            job["queue"],
            age(job["createdAt"]),
            age(job["startedAt"], job["endedAt"]),
            job["id"],
            short_reason(job),
        )
        for job in found
    ]
    headings = ("NAME", "STATE", "TASKS", "DEVICES", "USER", "QUEUE", "AGE", "RAN", "ID", "REASON")
    return table(headings, rows, right=frozenset({2, 3, 6, 7}))


@click.command("get")
@click.argument("thing", metavar="JOB|KIND|KIND/NAME")
@click.option("--revision", type=click.IntRange(1), default=None, help="An earlier revision of KIND/NAME.")
@click.option(
    "--deleted", is_flag=True, help="The documents of KIND that were deleted; corral rollback brings one back."
)
@click.option("--file", "as_file", is_flag=True, help="Print the file that JOB was submitted as, with its comments.")
@output_option
def get_command(thing: str, revision: int | None, deleted: bool, as_file: bool, output: str) -> None:
    """Show one job: placement, reason for waiting, result; or an array's jobs, or a configuration document.

    JOB is an id, a name (the latest job of that name), or USER~NAME. With -o yaml the output includes the document, and
    can be submitted again.

    KIND is cluster, queue, policy, storage or price, or clusters, queues, policies, storages, prices; virtualcluster,
    virtualclusters and vc are synonyms of queue. Alone, it lists the documents of that kind. Name a job that is called
    like a kind by its id.

    \b
    corral get digits                          a job
    corral get digits --file > digits.yaml     its own file; secrets are ******, submit --from fills them in
    corral get queues                          the Queue documents
    corral get queues --deleted                those that were deleted
    corral get queue/research -o yaml          one of them, to edit and apply
    """
    from corral.cli.configuration import list_documents, names_configuration, show_document
    from corral.cli.job_detail import detail_text

    if deleted and ("/" in thing or not names_configuration(thing)):
        raise click.UsageError("--deleted goes with a kind alone, such as queues.")
    if as_file:
        _print_file(thing, revision, output)
        return
    if names_configuration(thing):
        show_document(thing, revision, output) if "/" in thing else list_documents(thing, output, deleted=deleted)
        if "/" not in thing:
            _tell_of_namesake(thing)
        return
    if revision is not None:
        raise click.UsageError("Only configuration documents (KIND/NAME) have revisions.")
    job = thing

    with connect() as client:
        found = job_or_array(client, job)
        tasks: list[TaskRecord] = []
        if output == "table" and not isinstance(found, list) and _some_ended(found):
            tasks = items(client.tasks, _TASKS, ref=found["id"])
    if isinstance(found, list):
        if not show(found, output, names=[each["id"] for each in found]):
            click.echo(f"An array of {len(found)} jobs: {counted_states(found)}.")
            click.echo(_jobs_table(found))
        return
    if not show(found, output, names=[found["id"]]):
        click.echo(detail_text(found, tasks))


def _tell_of_missing(client: Client, queues: Sequence[str], users: Sequence[str]) -> None:
    """Say which of the queues and users do not exist; others' accounts are known to administrators only."""
    for thing, ask, names in (("queue", client.queue, queues), ("account", client.user, users)):
        for name in names:
            if not _NAME.fullmatch(name):
                say(f"There is no {thing} {name[:_REASON]!r}.")
                continue
            with contextlib.suppress(Forbidden):
                try:
                    ask(name)
                except NotFound as error:
                    say(error.message)


def _some_ended(job: JobDetail) -> bool:
    counts = job["tasks"]
    return bool(counts["succeeded"] or counts["failed"] or counts.get("stopped"))


def _tell_of_namesake(kind: str) -> None:
    """Mention a job that has the name of a document kind."""
    with connect() as client, contextlib.suppress(NotFound, Forbidden):
        job = client.job(kind)
        say(f"There is a job called {kind}, too: corral get {job['id']}")


def _print_file(job: str, revision: int | None, output: str) -> None:
    """Print the file of a job to standard output, and its parameters and hints to standard error."""
    if revision is not None:
        raise click.UsageError("--file is for jobs, which have no revisions.")
    with connect() as client:
        found = client.job_file(job)
    if show(found, output, names=[found["job"]]):
        return
    click.echo(found["text"].encode(), nl=False)
    if found["parameters"]:
        given = (f"--set {shlex.quote(f'{name}={value}')}" for name, value in found["parameters"].items())
        say(f"It was submitted with {' '.join(given)}")
    if found.get("edits"):  # an older server does not tell
        say(f"The job was edited since, and its file was not. {' '.join(found['edits'])}")
    if found["secrets"]:
        say(f"****** stands for a secret; submit it again with --from {found['job']} to have it filled in.")


@click.command("explain")
@click.argument("job")
@output_option
def explain_command(job: str, output: str) -> None:
    """Explain why a job waits: binding constraint, jobs ahead, likely start, and changes that would start it now."""
    with connect() as client, one_job(client, job):
        found = client.explain(job)
    if show(found, output, names=[found["job"]]):
        return
    click.echo(f"{state(found['state'])}: {found['message']}")
    reasons = found.get("reasons")
    if reasons:
        for other in reasons["others"]:
            click.echo(f"  also: {other['message']}")
        if reasons["ahead"]:
            click.echo(f"  {reasons['ahead']} ahead of it" + _names(found.get("ahead", ())))
    for receipt in found.get("receipts", ()):
        click.echo(f"  it had to yield {age(receipt['at'])} ago ({receipt['rule']}): {receipt['message']}")
    if estimate := found.get("estimate"):
        click.echo(f"  {paint('Start:', bold=True)} {estimate_text(estimate)}")
        if forecast := estimate.get("forecast"):
            click.echo(paint(f"  From {forecast_text(forecast)}.", dim=True))
    for change in found.get("changes", ()):
        click.echo(f"  {paint(change['path'], bold=True)}: {change['message']}")


@click.command("stop")
@jobs_argument
@click.option("--wait", is_flag=True, help="Wait until they have ended.")
def stop_command(jobs: Sequence[str], wait: bool) -> None:
    """Stop jobs, or all jobs of an array: tasks get the stop signal, and are killed after their grace period."""
    with connect() as client:
        stopped = []
        for ref in each_job(client, jobs, live=True):
            stopped.append(job := client.stop(ref))
            say(f"{job['name']} ({job['id']}) is being stopped.")
        if wait:
            for job in stopped:
                ended = client.wait(job["id"])
                say(f"{ended['name']} ({ended['id']}): {ended['state']}.")


@click.command("restart")
@jobs_argument
def restart_command(jobs: Sequence[str]) -> None:
    """Restart jobs, whether they run or have ended."""
    with connect() as client:
        for job in each_job(client, jobs):
            begun = client.restart(job)
            say(f"{begun['name']} ({begun['id']}) restarts.")


@click.command("scale")
@click.argument("job")
@click.argument("replicas", type=click.IntRange(0, 100_000))
@click.option("--role", default="", help="The role to scale; default: the one that replicaSpec names.")
def scale_command(job: str, replicas: int, role: str) -> None:
    """Set the number of replicas that an elastic job requests, within its bounds."""
    with connect() as client, one_job(client, job):
        scaled = client.scale(job, replicas, role=role)
    say(f"{scaled['name']} ({scaled['id']}) asks for {replicas} replicas.")


@click.command("rm")
@jobs_argument
@click.option("--stop", is_flag=True, help="Stop those that still run first.")
def rm_command(jobs: Sequence[str], stop: bool) -> None:
    """Remove ended jobs with their logs; a summary stays in the history."""
    with connect() as client:
        for job in each_job(client, jobs, live=None if stop else False):
            client.delete(job, stop=stop)
            say(f"{job} is removed.")


def short_reason(job: JobSummary) -> str:
    """Return the last column of a job's line: its reason for waiting, or for failure."""
    if (waiting := job["waiting"]) is not None:
        return paint(_cut(waiting["message"]), dim=True)
    if job["state"] == "failed" and (end := job["exit"]) is not None:
        return paint(_cut(f"{end['phrase']} ({end['code']})"), dim=True)
    return ""


def _cut(reason: str) -> str:
    """Cut a reason after a whole word, with an ellipsis."""
    if len(reason) <= _REASON:
        return reason
    begin = reason[:_REASON]
    return (begin.rpartition(" ")[0] or begin[:-1]).rstrip(".,;: ") + "…"


def _names(ahead: Sequence[Any]) -> str:
    from corral.model.messages import told_apart

    called = told_apart({job["id"]: (job["user"], job["name"]) for job in ahead[:5]})
    shown = ", ".join(called.values())
    return f": {shown}" + (", …" if len(ahead) > 5 else "") if shown else ""
