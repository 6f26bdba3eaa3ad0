"""`corral benchmark history` and `keep`: results that the server keeps of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from corral.cli.output import output_option, paint, say, show, table
from corral.cli.sparkline import sparkline

if TYPE_CHECKING:
    from corral.benchmarks.results.compare import Change
    from corral.benchmarks.results.lines import NodeResult
    from corral.client.schema import BenchmarkHistory, BenchmarkOverview, BenchmarkStanding, BenchmarkWays
    from corral.client.sync import Client

_MOST_FIGURES: Final = 8000
"""Figures that are sent in one call, which takes 1 MiB."""
_MOST_PROBLEM: Final = 500
_MOST_PROBLEMS: Final = 500
_MOST_WITH_WAYS: Final = 256
"""Nodes of a run whose single ways are sent: those between eight devices are 112 figures of each node."""
_LARGEST: Final = 256 * 1024 * 1024
_WIDTH: Final = 24


@click.command("history")
@click.argument("node", required=False, default="")
@click.option("--measurement", "metric", default="", metavar="NAME", help="What runs measured of it, on NODE or all.")
@output_option
def history_command(node: str, metric: str, output: str) -> None:
    """Show kept results: how nodes stand beside the median of their SKU and the data sheets of their devices.

    With NODE all measurements of that node are shown, with --measurement the values of one over time. Results are kept
    for 400 days. For administrators.

    \b
    corral benchmark history
    corral benchmark history local/node1
    corral benchmark history --measurement cpu-stream/triad_bw -o json
    """
    from corral.cli.connection import connect

    with connect() as client:
        if metric:
            history = client.benchmark_history(metric, node=node)
            names = list(dict.fromkeys(point["node"] for point in history["points"]))
            if not show(history, output, names=names):
                _show_history(history)
        elif node:
            standings = client.benchmark_standing(node=node)["items"]
            if not show(standings, output, names=[each["metric"] for each in standings]):
                _show_standings(standings)
        else:
            overview = client.benchmark_overview()
            if not show(overview, output, names=[each["node"] for each in overview["nodes"]]):
                _show_overview(overview)


@click.command("keep")
@click.argument("results")
@click.option("--suite", default="", metavar="NAME", help="The name of the suite that was run.")
def keep_command(results: str, suite: str) -> None:
    """Keep a results file on the server, as a run of now. For administrators.

    \b
    corral benchmark keep results.jsonl --suite quick
    """
    from corral.benchmarks.results.lines import read_results
    from corral.benchmarks.suites.named import bounded
    from corral.cli.connection import connect

    read = read_results(bounded(Path(results), _LARGEST), results)
    with connect() as client:
        run = keep_results(client, read, suite, ())
    say(f"The results of {len(read)} nodes are kept as run {run}.")


def keep_results(client: Client, results: Sequence[NodeResult], suite: str, problems: Sequence[str]) -> str:
    """Send results to the server in calls of a bounded size; return the id of their run.

    Single ways of many nodes would take the place of older runs: each node has its worst one, and these are left out.
    """
    if len(results) > _MOST_WITH_WAYS:
        results = _without_ways(results)
    run, told = "", [problem[:_MOST_PROBLEM] for problem in problems[:_MOST_PROBLEMS]]
    for part in _parts(results):
        run = client.keep_benchmark(part, suite=suite[:200], problems=told, run=run)["id"]
        told = []
    return run


def _without_ways(results: Sequence[NodeResult]) -> list[NodeResult]:
    from corral.benchmarks.results.matrices import is_way

    left = [
        each._replace(metrics={name: value for name, value in each.metrics.items() if not is_way(name)})
        for each in results
    ]
    if any(len(one.metrics) > len(other.metrics) for one, other in zip(results, left, strict=True)):
        say(f"The server keeps no single ways of more than {_MOST_WITH_WAYS} nodes; the results file has them.")
    return left


def _parts(results: Sequence[NodeResult]) -> Iterator[list[dict[str, Any]]]:
    """Lines of results, in groups of a bounded number of figures."""
    group: list[dict[str, Any]] = []
    for each in results:
        metrics = list(each.metrics.items())
        for at in range(0, len(metrics), _MOST_FIGURES):
            piece = dict(metrics[at : at + _MOST_FIGURES])
            if group and sum(len(line["metrics"]) for line in group) + len(piece) > _MOST_FIGURES:
                yield group
                group = []
            group.append({"node": each.node, "sku": each.sku, "metrics": piece})
    if group:
        yield group


def is_run(given: str) -> bool:
    """Whether a word is the id of a run, and not a file."""
    return re.fullmatch(r"[A-Za-z0-9-]{1,64}", given) is not None and not Path(given).exists()


def compared_runs(before: str, after: str) -> tuple[list[Change], list[BenchmarkWays]]:
    """Return the changes between two runs that the server keeps, and their single ways. Raises NotFound."""
    from corral.benchmarks.results.compare import Change
    from corral.cli.connection import connect

    with connect() as client:
        found = client.compare_benchmarks(before, after)
    changes = [
        Change(each["metric"], each["before"], each["after"], each["unit"], each["gain"]) for each in found["changes"]
    ]
    ways: list[BenchmarkWays] = found.get("ways", [])  # a server of before has none
    return changes, ways


def _show_overview(overview: BenchmarkOverview) -> None:
    if not overview["nodes"]:
        say("No results are kept; corral benchmark run measures nodes.")
        return
    rows = [
        (each["node"], each["sku"], each["measurements"], each["slow"] or "", each["at"][:16].replace("T", " "))
        for each in overview["nodes"]
    ]
    click.echo(table(("NODE", "SKU", "MEASUREMENTS", "BELOW", "MEASURED"), rows, right=frozenset({2, 3})))
    for each in overview["nodes"]:
        for finding in each["findings"]:
            click.echo(f"{each['node']}: {paint(finding, 'yellow')}")
    runs = [
        (each["id"], each["suite"], each["user"], each["nodes"], each["figures"], each["at"][:16].replace("T", " "))
        for each in overview["runs"][:10]
    ]
    click.echo()
    click.echo(table(("RUN", "SUITE", "BY", "NODES", "FIGURES", "AT"), runs, right=frozenset({3, 4})))


def _show_standings(standings: Sequence[BenchmarkStanding]) -> None:
    if not standings:
        say("No results of this node are kept; corral benchmark run measures nodes.")
        return
    rows = []
    for each in standings:
        change = "" if each["change"] is None else f"{each['change']:+.1%}"
        cells = (each["metric"], f"{each['value']:.4g}", each["unit"], _figure(each["baseline"]))
        rows.append((*cells, paint(change, "yellow" if each["findings"] else ""), _figure(each["expected"])))
    head = ("MEASUREMENT", "VALUE", "UNIT", "MEDIAN OF ITS SKU", "CHANGE", "DATA SHEET")
    click.echo(table(head, rows, right=frozenset({1, 3, 4, 5})))
    for each in standings:
        for finding in each["findings"]:
            click.echo(paint(finding, "yellow"))


def _show_history(history: BenchmarkHistory) -> None:
    if not history["points"]:
        say(f"Nothing is kept of {history['metric']}; corral benchmark history lists what there is.")
        return
    values: dict[str, list[float]] = {}
    slow: dict[str, bool] = {}
    for point in history["points"]:
        values.setdefault(point["node"], []).append(point["value"])
        slow[point["node"]] = point["slow"]
    rows = []
    for node, found in values.items():
        mark = paint("below", "yellow") if slow[node] else ""
        rows.append((node, len(found), f"{min(found):.4g}", f"{found[-1]:.4g}", sparkline(found, _WIDTH), mark))
    click.echo(table(("NODE", "RUNS", "LEAST", "LAST", "HISTORY", ""), rows, right=frozenset({1, 2, 3})))
    more = " Older values are left out." if history["cut"] else ""
    say(f"{history['metric']} in {history['unit'] or 'its own unit'}.{more}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"
