"""`corral benchmark network` and `platform`: what tasks found before they began, of a job or of chosen nodes."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import JOB_FAILED, OK
from corral.cli.output import output_option, paint, say, show, table
from corral.kernel.errors import Conflict, NotFound, Unavailable
from corral.kernel.units import format_memory

if TYPE_CHECKING:
    from corral.client.schema import JobDetail, NetworkReport, NetworkWay, PlatformReport, PreflightReport
    from corral.client.sync import Client

_LOOK_SECONDS: Final = 0.5
_SHOWN: Final = 20
_NODES = click.option(
    "--nodes", default="", metavar="NAMES", help="These nodes, with commas between; default: all that are ready."
)
_JOB = click.option("--job", default="", metavar="JOB", help="Show what the tasks of this job checked at their start.")
_IMAGE = click.option("--image", default="", help="The container image of the tasks.")
_QUEUE = click.option("--queue", default="", help="The queue of the job; default: default.")
_WAIT = click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(1, 7 * 86_400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long the job may wait for its nodes, beside its own time.",
)
_LIMIT = click.option(
    "--limit",
    "seconds",
    type=click.IntRange(1, 600),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long the check itself may take.",
)


def _asked(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of both checks."""
    for option in (output_option, _LIMIT, _WAIT, _QUEUE, _IMAGE, _JOB, _NODES):
        command = option(command)
    return command


@click.command("network")
@_asked
def network_command(**asked: Any) -> int:
    """Measure latency and bandwidth between nodes, each pair by itself and all in a ring.

    The nodes are measured by an ordinary job of lowest priority with a task on each of them, which takes whole nodes; its
    report is kept with it. Pairs are compared with others that are as close, and with pairs farther apart: no rack
    should be slower than the way between racks. With --job nothing is measured: the report of a job with
    `preflight: network` is shown. The exit code is 1 when something is slow or could not be measured.

    \b
    corral benchmark network --nodes node1,node2,node3
    corral benchmark network --job trainer
    """
    found = _found("network", asked)
    report = found["network"]
    if report is None:
        raise NotFound("not-measured", _nothing(found, "network"))
    if not show(found, asked["output"], names=[f"{way['source']} {way['target']}" for way in report["ways"]]):
        _show_network(report)
    return JOB_FAILED if report["findings"] else OK


@click.command("platform")
@_asked
def platform_command(**asked: Any) -> int:
    """Read what nodes are like, and name what slows their tasks: governors, throttling, PCIe links, memory, disks, kernels.

    The nodes are read by an ordinary job of lowest priority with a task on each of them; its report is kept with it.
    With --job the report of a job with `preflight: platform` is shown. The exit code is 1 when there is a finding.

    \b
    corral benchmark platform --nodes node1,node2
    corral benchmark platform --job trainer -o json
    """
    found = _found("platform", asked)
    report = found["platform"]
    if report is None:
        raise NotFound("not-measured", _nothing(found, "platform"))
    findings = [*report["differences"], *(each for machine in report["machines"] for each in machine["findings"])]
    if not show(found, asked["output"], names=[each["node"] for each in report["machines"]]):
        _show_platform(report)
    return JOB_FAILED if findings else OK


def _found(check: str, asked: dict[str, Any]) -> PreflightReport:
    """The report of the job that was named, or of one that checks the nodes now."""
    from corral.cli.connection import connect

    with connect() as client:
        return client.job_preflight(asked["job"] or _measured(client, check, asked))


def _nothing(found: PreflightReport, check: str) -> str:
    if check not in found["checks"]:
        return f"The job asks for no check of its {check}: its file needs `preflight: {check}`."
    return f"No task of the job has told of its {check} yet."


def _measured(client: Client, check: str, asked: dict[str, Any]) -> str:
    """Run a job that checks the nodes; its id. Raises Conflict when it does not end well."""
    from corral.benchmarks.suite.jobs import check_document
    from corral.cli.benchmark import machines

    nodes = machines(client, [name for name in asked["nodes"].split(",") if name])
    name = f"check-{check}-{secrets.token_hex(3)}"
    document = check_document(nodes, check, name, seconds=asked["seconds"], image=asked["image"])
    if asked["queue"]:
        document["queue"] = asked["queue"]
    job = client.submit(json.dumps(document), idempotency_key=name)
    until = time.monotonic() + asked["wait_seconds"] + asked["seconds"] + 60
    try:
        job = _ended(client, job, until)
    finally:
        if job["state"] not in ("succeeded", "failed", "stopped"):
            _stop(client, job["id"])
    if job["state"] != "succeeded":
        ended = job["exit"]
        why = ended["message"] if ended is not None and ended["message"] else f"it is {job['state']}"
        raise Conflict("not-measured", f"The job {name} did not measure its nodes: {why.rstrip('.')}.")
    say(f"The report is kept with the job {name} ({job['id']}).")
    return job["id"]


def _ended(client: Client, job: JobDetail, until: float) -> JobDetail:
    from corral.cli.progress import StatusLine

    line = StatusLine()
    try:
        while job["state"] not in ("succeeded", "failed", "stopped") and time.monotonic() < until:
            waiting = job["waiting"]
            line.tell(waiting["message"] if waiting is not None else f"{job['name']} is {job['state']}")
            time.sleep(_LOOK_SECONDS)
            try:
                job = client.job(job["id"])
            except Unavailable:
                continue  # the server is away; its job goes on
    finally:
        line.clear()
    return job


def _stop(client: Client, job: str) -> None:
    try:
        client.stop(job)
    except (Conflict, NotFound, Unavailable) as error:
        say(paint(f"The job {job} could not be stopped: {error.message}", "red"))


def _show_network(report: NetworkReport) -> None:
    say(f"{report['tasks']} tasks measured {len(report['ways'])} ways in {report['seconds']:.1f} s.")
    rows = [
        (each["level"], each["ways"], _rate(each["bytesPerSecond"]), _late(each["latencySeconds"]))
        for each in report["levels"]
    ]
    if rows:
        click.echo(table(("WITHIN", "WAYS", "MEDIAN GB/S", "MEDIAN LATENCY US"), rows, right=frozenset({1, 2, 3})))
    shown = sorted(report["ways"], key=lambda way: way["bytesPerSecond"])[:_SHOWN]
    if shown:
        click.echo()
        click.echo(table(("FROM", "TO", "WITHIN", "GB/S", "LATENCY US", ""), map(_row, shown), right=frozenset({3, 4})))
    if len(report["ways"]) > len(shown):
        click.echo(f"These are the slowest {len(shown)} of {len(report['ways'])}; -o json has all.")
    if report["ring"]:
        slowest = min(report["ring"], key=lambda way: way["bytesPerSecond"])
        rate = _rate(slowest["bytesPerSecond"])
        click.echo(f"\nIn a ring of all at once, {slowest['source']} sends the least: {rate} GB/s.")
    for finding in report["findings"]:
        click.echo(paint(finding, "yellow"))


def _show_platform(report: PlatformReport) -> None:
    rows = []
    for each in report["machines"]:
        facts = each["facts"]
        memory = format_memory(facts["memory"]["total"])
        cells = (each["node"], facts["kernel"], facts["processors"], facts["processor"], memory, len(facts["numa"]))
        rows.append((*cells, ", ".join(f"{name} {version}" for name, version in facts["drivers"].items())))
    head = ("NODE", "KERNEL", "CPUS", "PROCESSOR", "MEMORY", "NUMA NODES", "DRIVERS")
    click.echo(table(head, rows, right=frozenset({2, 4, 5})))
    for finding in report["differences"]:
        click.echo(paint(finding, "yellow"))
    for each in report["machines"]:
        for finding in each["findings"]:
            click.echo(f"{each['node']}: {paint(finding, 'yellow')}")
    if not report["differences"] and not any(each["findings"] for each in report["machines"]):
        click.echo("Nothing that slows tasks was found.")


def _row(way: NetworkWay) -> tuple[str, ...]:
    marked = paint("slow", "yellow") if way["slow"] else ""
    late = _late(way["latencySeconds"])
    return way["source"], way["target"], way["level"], _rate(way["bytesPerSecond"]), late, marked


def _rate(value: float) -> str:
    return f"{value / 1e9:.3g}"


def _late(value: float | None) -> str:
    return "" if value is None else f"{value * 1e6:.3g}"
