"""The command `corral benchmark scheduler`: play a workload against the cluster that is there."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.exit_codes import JOB_FAILED, OK
from corral.cli.output import output_option, paint, say, show, table
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.benchmarks.pace import Played
    from corral.benchmarks.workloads.document import Arrival, Workload
    from corral.benchmarks.workloads.outcome import Outcome
    from corral.cli.progress import StatusLine

_RESOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9./_-]{0,200}")


@click.command("scheduler")
@click.option(
    "--engine",
    type=click.Choice(("corral", "kubernetes")),
    default="corral",
    show_default=True,
    help="Submit jobs to Corral, or create Jobs in a Kubernetes cluster for any scheduler there.",
)
@click.option("--workload", default="kueue", show_default=True, help="kueue, gangs, or a workload FILE.")
@click.option(
    "--scale",
    type=click.FloatRange(0.0001, 1),
    default=1.0,
    show_default=True,
    help="Play this part of each class; at least one gang of each queue.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0.01, 100),
    default=1.0,
    show_default=True,
    help="Submit so many times as fast; gangs run as long as ever.",
)
@click.option(
    "--unit", default="cpu=1", show_default=True, metavar="NAME=AMOUNT", help="What a unit of the workload asks for."
)
@click.option("--queues", default="", metavar="NAMES", help="Queues for those of the workload in turn, with commas.")
@click.option("--image", default="", help="The container image of the tasks; it needs a sleep command.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(1, 7 * 86_400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="End the rest when nothing has happened for so long.",
)
@click.option("--name", default="", help="The name in the results; default: the scheduler's or the engine's.")
@click.option(
    "--results", "file", default="", metavar="FILE", help="Write the figures here; default: scheduler-TIME.jsonl."
)
@click.option("--keep", is_flag=True, help="Leave the ended jobs in Corral's list; default: remove them.")
@click.option("--dry-run", is_flag=True, help="Only say what would be submitted.")
@click.option("--kubeconfig", default="", metavar="FILE", help="How to reach the cluster; default: KUBECONFIG.")
@click.option("--context", default="", help="The kubeconfig's context; default: its current one.")
@click.option("--namespace", default="default", show_default=True, help="Where the Jobs are created.")
@click.option("--scheduler", default="", metavar="NAME", help="The schedulerName of the pods; default: the cluster's.")
@click.option(
    "--queue-label",
    default="kueue.x-k8s.io/queue-name",
    show_default=True,
    help="The label that names a gang's queue.",
)
@click.option(
    "--priority-class", "classes", multiple=True, metavar="N=NAME", help="The PriorityClass of a priority; repeat it."
)
@click.option("--label", "labels", multiple=True, metavar="NAME=VALUE", help="A label of Jobs and pods; repeat it.")
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    metavar="NAME=VALUE",
    help="An annotation of the pods; {seconds} stands for how long they run.",
)
@output_option
def scheduler_command(**asked: Any) -> int:
    """Play a workload against a scheduler: waits by class, throughput, makespan and use.

    Gangs are ordinary jobs that sleep. They compete with all others, so play it where that does no harm; what is left is
    ended, and all are removed. Results of several schedulers are compared with corral benchmark compare. The exit code is
    1 when a gang did not succeed.

    \b
    corral benchmark scheduler --scale 0.01 --unit cpu=100m
    corral benchmark scheduler --engine kubernetes --scheduler volcano --image busybox --workload gangs
    corral benchmark compare volcano.jsonl corral.jsonl
    """
    from corral.benchmarks.suites.named import workload_text
    from corral.benchmarks.workloads.document import arrivals, read_workload, scaled

    workload = scaled(read_workload(workload_text(asked["workload"])), asked["scale"])
    planned = arrivals(workload)
    if asked["dry_run"]:
        return _show_plan(workload, planned, asked)
    return _carry_out(workload, planned, asked)


def _show_plan(workload: Workload, planned: list[Arrival], asked: dict[str, Any]) -> int:
    rows = [{**kind._asdict(), "gangs": kind.gangs * workload.queues} for kind in workload.classes]
    if show(rows, asked["output"], names=[kind.name for kind in workload.classes]):
        return OK
    cells = [
        (kind.name, kind.gangs * workload.queues, kind.tasks, kind.units, f"{kind.runs:g} s", kind.priority)
        for kind in workload.classes
    ]
    heads = ("CLASS", "GANGS", "TASKS", "UNITS", "RUNS", "PRIORITY")
    click.echo(table(heads, cells, right=frozenset({1, 2, 3, 4, 5})))
    seconds = planned[-1].at / asked["speed"]
    say(f"{len(planned)} gangs would be submitted within {seconds:.0f} s. Nothing was submitted.")
    return OK


def _carry_out(workload: Workload, planned: list[Arrival], asked: dict[str, Any]) -> int:
    from corral.benchmarks.pace import Played
    from corral.benchmarks.results.lines import write_results
    from corral.benchmarks.workloads.outcome import outcome, result_of
    from corral.cli.progress import StatusLine

    resource, millis = _unit(asked["unit"])
    line = StatusLine()
    run = f"bench-{secrets.token_hex(3)}"
    play = _on_kubernetes if asked["engine"] == "kubernetes" else _on_corral
    played = Played()
    name = asked["name"] or (asked["scheduler"] if asked["engine"] == "kubernetes" else "") or asked["engine"]
    try:
        asyncio.run(play(planned, run, (resource, millis), asked, line, played))
    finally:
        line.clear()
        found = outcome(played.lives, played.capacity)
        if played.lives:
            file = Path(asked["file"] or f"scheduler-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl")
            file.write_text(write_results([result_of(found, workload.name, name)]), encoding="utf-8")
            say(f"The figures of {name} are in {file}.")
    for problem in played.problems:
        say(paint(problem, "red"))
    if not show(_told(found, played), asked["output"], names=[each.kind for each in found.waits]):
        _show_outcome(found, played)
    return OK if found.ended == len(planned) else JOB_FAILED


async def _on_corral(
    planned: list[Arrival],
    run: str,
    unit: tuple[str, int],
    asked: dict[str, Any],
    line: StatusLine,
    played: Played,
) -> None:
    from corral.cli.benchmark_on_corral import Asked, OnCorral
    from corral.client import config
    from corral.client.aio import AsyncClient

    if unit[0] not in {"cpu", "devices"}:
        raise InvalidInput("bad-unit", "With --engine corral a unit is cpu=AMOUNT or devices=AMOUNT.")
    here = config.current()
    queues = _queues(asked["queues"])
    async with AsyncClient(here.url, config.require_token(here), ca=here.ca, timeout=120.0) as client:
        wanted = Asked(*unit, queues, asked["image"], asked["wait_seconds"], asked["keep"])
        await OnCorral(client, run, planned, wanted, played).play(speed=asked["speed"], tell=line.tell)


async def _on_kubernetes(
    planned: list[Arrival],
    run: str,
    unit: tuple[str, int],
    asked: dict[str, Any],
    line: StatusLine,
    played: Played,
) -> None:
    from corral.engines.kubernetes.api.optional_dependency import require_extra

    require_extra()
    from corral.engines.kubernetes.benchmark.gang_job import Asked
    from corral.engines.kubernetes.benchmark.workload_run import play_workload

    if not asked["image"]:
        raise InvalidInput("no-image", "Pods need an --image with a sleep command.")
    wanted = Asked(
        asked["namespace"],
        *unit,
        asked["image"],
        asked["scheduler"],
        _queues(asked["queues"]),
        asked["queue_label"],
        {_priority(number): name for number, name in _pairs("--priority-class", asked["classes"]).items()},
        _pairs("--label", asked["labels"]),
        _pairs("--annotation", asked["annotations"]),
        asked["wait_seconds"],
    )
    cluster = (asked["kubeconfig"], asked["context"])
    await play_workload(cluster, run, planned, wanted, played, speed=asked["speed"], tell=line.tell)


def _unit(text: str) -> tuple[str, int]:
    """Return the resource and the thousandths of it in a unit. Raises InvalidInput."""
    from corral.kernel.units import parse_cpu

    resource, _, given = text.partition("=")
    try:
        millis = parse_cpu(given)
    except ValueError:
        millis = 0
    if not _RESOURCE.fullmatch(resource) or millis <= 0:
        raise InvalidInput("bad-unit", "--unit is written as cpu=1, cpu=100m or nvidia.com/gpu=1.")
    return resource, millis


def _queues(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidInput("bad-option", f"{option} is written as NAME=VALUE.")
        found[name] = value
    return found


def _priority(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput("bad-option", "--priority-class is written as NUMBER=NAME.") from None


def _told(found: Outcome, played: Played) -> dict[str, Any]:
    from corral.benchmarks.workloads.outcome import QUANTILES

    classes = [
        {
            "class": each.kind,
            "gangs": each.gangs,
            "started": each.started,
            "ended": each.ended,
            "waitSeconds": {f"p{part}": wait for part, wait in zip(QUANTILES, each.quantiles, strict=False)},
            "longestWaitSeconds": each.longest,
        }
        for each in found.waits
    ]
    return {
        "gangs": found.gangs,
        "ended": found.ended,
        "makespanSeconds": found.makespan,
        "gangsPerSecond": found.throughput,
        "mostUnits": found.most_units,
        "unitSeconds": found.unit_seconds,
        "capacityUnits": played.capacity,
        "use": found.use,
        "lateSeconds": played.late,
        "classes": classes,
        "problems": played.problems,
    }


def _wait(quantiles: Sequence[float], at: int) -> str:
    return f"{quantiles[at]:.3f}" if quantiles else ""


def _show_outcome(found: Outcome, played: Played) -> None:
    cells = [
        (each.kind, each.gangs, each.ended, *(_wait(each.quantiles, at) for at in range(3)), f"{each.longest:.3f}")
        for each in found.waits
    ]
    heads = ("CLASS", "GANGS", "ENDED", "WAIT P50 (s)", "P95", "P99", "LONGEST")
    click.echo(table(heads, cells, right=frozenset(range(1, 7))))
    use = "" if found.use is None else f", {found.use:.1%} of {played.capacity} units used"
    click.echo(
        f"\n{found.ended} of {found.gangs} gangs ended in {found.makespan:.1f} s: {found.throughput:.2f} in a second{use}."
    )
    if played.late > 1:
        say(f"The last was submitted {played.late:.1f} s late: the server took them more slowly than they came.")
