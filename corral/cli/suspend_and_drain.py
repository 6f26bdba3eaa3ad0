"""Commands that suspend jobs, cordon and drain nodes, and show receipts of jobs that yielded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from corral.cli.connection import connect
from corral.cli.job_arrays import each_job, one_job
from corral.cli.node_names import nodes_named
from corral.cli.output import age, output_option, paint, say, show, span, table
from corral.cli.paging import items
from corral.cli.times import time_of
from corral.kernel.errors import Conflict

if TYPE_CHECKING:
    from corral.client import Client
    from corral.client.schema import LedgerView, ReceiptView

jobs_argument = click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
nodes_argument = click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
why_option = click.option("--why", default="", help="The reason, shown wherever the node is.")
_LOOK_SECONDS = 0.5


@click.command("suspend")
@jobs_argument
def suspend_command(jobs: Sequence[str]) -> None:
    """Suspend jobs: end them with their checkpoint signal and hold them; they keep their places in the queue."""
    with connect() as client:
        for job in each_job(client, jobs, live=True):
            found = client.suspend(job)
            say(f"{found['name']} ({found['id']}) is being suspended; corral resume lets it go on.")


@click.command("resume")
@jobs_argument
@click.option("--queue", default="", help="Another queue, in which they go on.")
def resume_command(jobs: Sequence[str], queue: str) -> None:
    """Resume suspended jobs, in their old places or in another queue."""
    with connect() as client:
        for job in each_job(client, jobs, live=True):
            found = client.resume(job, queue=queue)
            say(f"{found['name']} ({found['id']}) goes on{f' in {queue}' if queue else ''}.")


@click.command("receipts")
@click.argument("job", required=False, default="")
@click.option("--queue", default="", help="Only where this queue yielded or was yielded to.")
@click.option("--since", default="", metavar="TIME", help="From this time or day on, or so far back (12h).")
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most.")
@output_option
def receipts_command(job: str, queue: str, since: str, limit: int, output: str) -> None:
    """Show the receipts of jobs that yielded: to which job, by which rule, at which cost, and their return.

    Without a JOB, show the receipts of all jobs.
    """
    if job and (queue or since):
        raise click.UsageError("--queue and --since go without a JOB.")
    begin = time_of("--since", since)
    with connect() as client, one_job(client, job):
        found = items(client.receipts, limit, ref=job, queue=queue, since=begin)
    if show(found, output, names=[receipt["id"] for receipt in found]):
        return
    if not found:
        say("Nothing had to yield.")
        return
    click.echo(receipts_table(found))


def receipts_table(found: Sequence[ReceiptView]) -> str:
    """Return receipts as a table."""
    headings = ("RECEIPT", "JOB", "QUEUE", "RULE", "AGO", "DEVICES", "COST", "BACK", "")
    return table(headings, (_receipt_row(receipt) for receipt in found), right=frozenset({4, 5, 6}))


def _receipt_row(receipt: ReceiptView) -> tuple[object, ...]:
    return (
        receipt["id"],
        receipt["name"],
        receipt["queue"],
        receipt["rule"],
        age(receipt["at"]),
        receipt["devices"] or "",
        device_time(receipt["costDeviceSeconds"]),
        _back(receipt),
        paint(receipt["message"], dim=True),
    )


def _back(receipt: ReceiptView) -> str:
    match receipt["state"]:
        case "returned":
            return f"after {span(receipt['awaySeconds'] or 0)}"
        case "ended":
            return "never: the job ended"
        case _ if receipt["backAt"]:
            return f"likely at {receipt['backAt']}"
        case _ if receipt["rule"] == "suspended":
            return "when it is resumed"
        case _ if receipt["rule"] == "budget":
            return "when its budget allows more"
        case _:
            return "not yet: unknown when"


def ledger_text(ledger: LedgerView) -> str:
    """Return a queue's lent and borrowed device time as a table."""
    rows = [
        (way, line["queue"] or "(nobody's)", device_time(line["deviceSeconds"]), line["devices"] or "", line["since"])
        for way, lines in (("lent to", ledger["lent"]), ("borrowed from", ledger["borrowed"]))
        for line in lines
    ]
    return table(("LEDGER", "QUEUE", "IN ALL", "DEVICES NOW", "SINCE"), rows, right=frozenset({2, 3}))


def device_time(seconds: float) -> str:
    """Return device-seconds in the largest unit that fits: `40 device-seconds`, `2.5 device-hours`; "" for none."""
    if not seconds:
        return ""
    unit, size = ("hours", 3600) if seconds >= 3600 else ("minutes", 60) if seconds >= 60 else ("seconds", 1)
    return f"{seconds / size:.3g} device-{unit}"


@click.command("cordon")
@nodes_argument
@why_option
def cordon_command(nodes: Sequence[str], why: str) -> None:
    """Close nodes (NODE or ENGINE/NODE) to new tasks; running tasks continue."""
    with connect() as client:
        for node in nodes_named(client, nodes):
            client.cordon(node, why=why)
            say(f"{node} takes no new tasks; corral uncordon {node} opens it again.")


@click.command("uncordon")
@nodes_argument
def uncordon_command(nodes: Sequence[str]) -> None:
    """Open nodes to new tasks again."""
    with connect() as client:
        for node in nodes_named(client, nodes):
            client.uncordon(node)
            say(f"{node} takes tasks again.")


@click.command("drain")
@nodes_argument
@why_option
@click.option(
    "--grace", type=click.FloatRange(0, 86_400), help="Seconds until tasks are killed; else as their jobs say."
)
@click.option("--after-jobs", is_flag=True, help="Let the jobs there end by themselves.")
@click.option("--wait", is_flag=True, help="Wait until nothing runs there.")
def drain_command(nodes: Sequence[str], why: str, grace: float | None, after_jobs: bool, wait: bool) -> None:
    """Close nodes to new tasks and move their running tasks elsewhere; each of their jobs gets a receipt."""
    with connect() as client:
        named = nodes_named(client, nodes)
        for node in named:
            client.drain(node, why=why, grace_seconds=grace, after_jobs=after_jobs)
            ends = "its jobs may end by themselves" if after_jobs else "its tasks move elsewhere"
            say(f"{node} takes no new tasks, and {ends}.")
        for node in named if wait else ():
            _await_empty(client, node)
            say(f"{node} is empty.")


def _await_empty(client: Client, node: str) -> None:
    while (found := client.node(node))["tasks"]:
        if found["cordon"] is None:
            raise Conflict("node-not-cordoned", f"{node} was opened again before it was empty.")
        time.sleep(_LOOK_SECONDS)
