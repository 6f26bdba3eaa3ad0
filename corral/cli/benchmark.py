"""The command `corral benchmark`: measure nodes, compare results, and name the nodes below their like."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.benchmark_checks import network_command, platform_command
from corral.cli.benchmark_history import compared_runs, history_command, is_run, keep_command, keep_results
from corral.cli.benchmark_scheduler import scheduler_command
from corral.cli.benchmark_show import LARGEST, read_named, show_command, summary_table
from corral.cli.benchmark_ways import show_compared_ways, show_kept_ways, show_ways
from corral.cli.command_group import CommandGroup
from corral.cli.exit_codes import JOB_FAILED, OK
from corral.cli.output import FORMATS, output_option, paint, say, show, table
from corral.kernel.errors import Forbidden, InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from corral.benchmarks.results.lines import NodeResult
    from corral.benchmarks.rules.diagnosis import Diagnosis
    from corral.benchmarks.suite.jobs import Machine, Run
    from corral.client.sync import Client

_MOST_NODES: Final = 10_000


@click.group("benchmark", cls=CommandGroup)
def benchmark_command() -> None:
    """Measure nodes with standard benchmarks, as ordinary jobs of lowest priority.

    \b
    corral benchmark run                              a suite of about a minute on every node
    corral benchmark baseline results.jsonl           the medians of nodes that are well
    corral benchmark diagnose results.jsonl --baseline baseline.json
    """


benchmark_command.add_command(scheduler_command)
benchmark_command.add_command(network_command)
benchmark_command.add_command(platform_command)
benchmark_command.add_command(history_command)
benchmark_command.add_command(keep_command)
benchmark_command.add_command(show_command)


@benchmark_command.command("list")
@output_option
def list_command(output: str) -> None:
    """List suites, workloads for schedulers, and benchmarks with their metrics and parameters."""
    from corral.benchmarks.suite.catalogue import KINDS
    from corral.benchmarks.suites.named import names, workload_names

    rows = [
        {
            "name": name,
            "what": kind.what,
            "metrics": list(kind.metrics),
            "needsTorch": kind.torch,
            "parameters": {key: each.default for key, each in kind.parameters.items()},
        }
        for name, kind in KINDS.items()
    ]
    if show({"suites": names(), "workloads": workload_names(), "benchmarks": rows}, output, names=[*names()]):
        return
    click.echo(f"Suites: {', '.join(names())}\nWorkloads for schedulers: {', '.join(workload_names())}\n")
    cells = [(name, kind.what, "PyTorch" if kind.torch else "") for name, kind in KINDS.items()]
    click.echo(table(("BENCHMARK", "WHAT IT MEASURES", "NEEDS"), cells))


@benchmark_command.command("run")
@click.option("--suite", default="quick", show_default=True, help="quick, full, devices, or a suite FILE.")
@click.option(
    "--nodes", default="", metavar="NAMES", help="These nodes, with commas between; default: all that are ready."
)
@click.option(
    "--results", "file", default="", metavar="FILE", help="Write results here; default: benchmark-TIME.jsonl."
)
@click.option("--python", default="python3", show_default=True, help="The Python of the tasks, where they run.")
@click.option("--image", default="", help="The container image of the tasks.")
@click.option("--queue", default="", help="The queue of the jobs; default: default.")
@click.option("--parallel", type=click.IntRange(1, 1000), default=16, show_default=True, help="Jobs open at a time.")
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(1, 7 * 86_400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long a job may wait for its node, beside its own time.",
)
@click.option("--dry-run", is_flag=True, help="Only list the jobs that would run.")
@click.option("--file-only", is_flag=True, help="Do not keep the results on the server, only in the file.")
@output_option
def run_command(**asked: Any) -> int:
    """Run a suite on nodes, and write one line of JSON for each node; administrators' results are kept by the server too.

    Each job takes a whole node, waits for it behind all other jobs, and yields to them. A run that fails, or a node that is
    lost, is told at the end; the others go on. Ctrl-C stops the jobs and keeps the results so far.

    \b
    corral benchmark run --nodes local/node1,local/node2
    corral benchmark run --suite full --python /opt/torch/bin/python --results today.jsonl
    """
    from corral.benchmarks.suite.document import read_suite
    from corral.benchmarks.suite.jobs import runs_of
    from corral.benchmarks.suites.named import suite_text
    from corral.cli.connection import connect

    suite = read_suite(suite_text(asked["suite"]))
    with connect() as client:
        measured = machines(client, [name for name in asked["nodes"].split(",") if name])
        runs = runs_of(suite, measured)
        if asked["dry_run"]:
            _show_plan(runs, asked["output"])
            return OK
        return _carry_out(client, runs, measured, asked)


def machines(client: Client, names: Sequence[str]) -> list[Machine]:
    """Return the named nodes, or all that are ready and not closed. Raises NotFound."""
    from corral.cli.benchmark_run import machine_of
    from corral.cli.paging import items

    found = items(client.nodes, _MOST_NODES)
    known = {node["name"]: node for node in found} | {node["name"].partition("/")[2]: node for node in found}
    for name in names:
        if name not in known:
            raise NotFound("no-such-node", f"There is no node {name[:100]!r}; corral nodes lists them.")
    chosen = [known[name] for name in names] or [node for node in found if node["ready"] and node["cordon"] is None]
    if not chosen:
        raise NotFound("no-nodes", "There is no node that is ready.")
    return [machine_of(node) for node in {node["name"]: node for node in chosen}.values()]


def _show_plan(runs: Sequence[Run], output: str) -> None:
    from corral.benchmarks.suite.jobs import processes_of

    rows = [
        {
            "benchmark": run.benchmark.name,
            "mode": run.mode.name,
            "processes": processes_of(run.mode, run.machines[0].devices),
            "nodes": [machine.name for machine in run.machines],
            "timeoutSeconds": run.benchmark.timeout_seconds,
        }
        for run in runs
    ]
    if show(rows, output, names=[str(row["benchmark"]) for row in rows]):
        return
    cells = [
        (row["benchmark"], row["mode"], row["processes"], _places(run)) for row, run in zip(rows, runs, strict=True)
    ]
    click.echo(table(("BENCHMARK", "MODE", "PROCESSES", "NODES"), cells))
    say(f"{len(runs)} jobs would run. Nothing was submitted.")


def _places(run: Run) -> str:
    shown = ", ".join(machine.name for machine in run.machines[:3])
    return f"{shown} and {len(run.machines) - 3} more" if len(run.machines) > 3 else shown


def _carry_out(client: Client, runs: Sequence[Run], machines: Sequence[Machine], asked: dict[str, Any]) -> int:
    from corral.benchmarks.results.lines import write_results
    from corral.benchmarks.suite.jobs import Programs
    from corral.cli.benchmark_run import SuiteRun
    from corral.cli.progress import StatusLine

    file = Path(asked["file"] or f"benchmark-{datetime.now(UTC):%Y%m%d-%H%M%S}.jsonl")
    line = StatusLine()
    suite = SuiteRun(
        client,
        Programs(asked["python"], asked["image"]),
        _programs(client),
        queue=asked["queue"],
        most=asked["parallel"],
        wait_seconds=asked["wait_seconds"],
        tell=line.tell,
    )
    try:
        suite.run(runs)
    finally:
        line.clear()
        results = suite.outcome.results(machines)
        if results:
            file.write_text(write_results(results), encoding="utf-8")
            say(f"Results of {len(results)} nodes are in {file}.")
    if results and not asked["file_only"]:
        _keep(client, results, asked["suite"], suite.outcome.problems)
    for reason, places in suite.outcome.left_out.items():
        say(f"{reason} ({', '.join(places[:3])}{f' and {len(places) - 3} more' if len(places) > 3 else ''})")
    for problem in suite.outcome.problems:
        say(paint(problem, "red"))
    shown = [{"node": each.node, "sku": each.sku, "metrics": each.metrics} for each in results]
    if not show(
        {"results": shown, "problems": suite.outcome.problems, "leftOut": list(suite.outcome.left_out)},
        asked["output"],
        names=[r.node for r in results],
    ):
        click.echo(summary_table(results))
        show_ways(results)
    return JOB_FAILED if suite.outcome.problems else OK


def _keep(client: Client, results: Sequence[NodeResult], suite: str, problems: Sequence[str]) -> None:
    """Keep results on the server too, where the caller may; the file has them in any case."""
    try:
        run = keep_results(client, results, Path(suite).name, problems)
        say(f"They are kept as run {run}: corral benchmark history")
    except Forbidden:
        pass  # only administrators keep results on the server
    except (InvalidInput, Unavailable) as error:
        say(paint(f"They are not kept on the server: {error.message}", "red"))


def _programs(client: Client) -> str:
    """Upload the programs of the tasks unless the server has them; return their digest."""
    from corral.benchmarks.suites.named import copy_programs
    from corral.cli.submit import send_code

    with tempfile.TemporaryDirectory() as folder:
        copy_programs(Path(folder))
        return send_code(client, Path(folder))


@benchmark_command.command("compare")
@click.argument("before")
@click.argument("after")
@output_option
def compare_command(before: str, after: str, output: str) -> None:
    """Compare the medians of two results, files or runs that the server keeps; the largest loss comes first.

    Ways between nodes, and between devices of a node, are matrices below.

    \b
    corral benchmark compare last-month.jsonl today.jsonl
    """
    from corral.benchmarks.results.compare import compare
    from corral.benchmarks.results.matrices import paired

    if is_run(before) and is_run(after):
        changes, ways = compared_runs(before, after)
        show_matrices = partial(show_kept_ways, ways)
    else:
        old, new = read_named(before), read_named(after)
        changes = compare(old, new)
        show_matrices = partial(show_compared_ways, paired(old, new))
    if show([each._asdict() for each in changes], output, names=[each.metric for each in changes]):
        return
    cells = []
    for each in changes:
        gain = "" if each.gain is None else f"{each.gain:+.1%}"
        colour = "" if each.gain is None or abs(each.gain) < 0.05 else "green" if each.gain > 0 else "red"
        cells.append((each.metric, _figure(each.before), _figure(each.after), each.unit, paint(gain, colour)))
    click.echo(table(("METRIC", "BEFORE", "AFTER", "UNIT", "GAIN"), cells, right=frozenset({1, 2})))
    show_matrices()


@benchmark_command.command("baseline")
@click.argument("results")
@click.option("--write", "file", default="", metavar="FILE", help="Write it here; default: print it.")
def baseline_command(results: str, file: str) -> None:
    """Make a baseline of a results file: the median of each metric, for each SKU by itself.

    \b
    corral benchmark baseline accepted.jsonl --write baseline.json
    """
    from corral.benchmarks.rules.diagnosis import baseline_of

    read = read_named(results)
    skus = sorted({each.sku for each in read})
    text = json.dumps({sku: baseline_of(each for each in read if each.sku == sku) for sku in skus}, indent=2)
    if file:
        Path(file).write_text(text + "\n", encoding="utf-8")
        say(f"The baseline of {len(skus)} SKUs is in {file}.")
    else:
        click.echo(text)


@benchmark_command.command("diagnose")
@click.argument("results")
@click.option("--baseline", default="", metavar="FILE", help="Expected values; default: the medians of these results.")
@click.option("--rules", default="", metavar="FILE", help="A rules file; default: Corral's own.")
@click.option("--expected", default="", metavar="FILE", help="Values of devices' data sheets; default: Corral's own.")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print it.")
def diagnose_command(results: str, baseline: str, rules: str, expected: str, output: str) -> int:
    """Name the nodes of a results file that break a rule, or are below the baseline of their SKU.

    Devices of a known model are compared with their data sheet too (`--suite devices` measures for that).

    The exit code is 1 when there is one.
    """
    from corral.benchmarks.rules.diagnosis import baseline_of, diagnose
    from corral.benchmarks.rules.document import read_rules
    from corral.benchmarks.rules.expected import read_expected, with_expected
    from corral.benchmarks.suites.named import expected_text, rules_text

    read = read_named(results)
    if baseline:
        known = _read_baseline(baseline)
    else:
        known = {sku: baseline_of(each for each in read if each.sku == sku) for sku in {each.sku for each in read}}
    found = with_expected(
        diagnose(read, read_rules(rules_text(rules)), known), read, read_expected(expected_text(expected))
    )
    defective = [each for each in found if each.defective]
    if not show([_told(each) for each in found], output, names=[each.node for each in defective]):
        _show_diagnosis(found, defective)
    return JOB_FAILED if defective else OK


def _show_diagnosis(found: Sequence[Diagnosis], defective: Sequence[Diagnosis]) -> None:
    if not defective:
        click.echo(f"None of {len(found)} nodes breaks a rule.")
        return
    for each in defective:
        click.echo(paint(each.node, bold=True))
        for breach in each.breaches:
            click.echo(f"  {breach.category}: {breach.details[0]}")
            for detail in breach.details[1:5]:
                click.echo(f"  {' ' * len(breach.category)}  {detail}")
            if len(breach.details) > 5:
                click.echo(f"  {' ' * len(breach.category)}  and {len(breach.details) - 5} more")
    say(f"{len(defective)} of {len(found)} nodes break a rule.")


def _told(each: Diagnosis) -> dict[str, Any]:
    breaches = [{"rule": b.rule, "category": b.category, "details": list(b.details)} for b in each.breaches]
    return {"node": each.node, "defective": each.defective, "breaches": breaches}


def _read_baseline(path: str) -> dict[str, dict[str, float]]:
    from corral.benchmarks.rules.diagnosis import read_baseline
    from corral.benchmarks.suites.named import bounded

    return read_baseline(bounded(Path(path), LARGEST), path)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
