"""`corral benchmark show`, and results by the name of a file or the id of a kept run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from corral.cli.benchmark_history import is_run
from corral.cli.benchmark_ways import show_ways
from corral.cli.output import output_option, say, show, table
from corral.kernel.errors import InvalidInput

if TYPE_CHECKING:
    from corral.benchmarks.results.lines import NodeResult

LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a results file."""


@click.command("show")
@click.argument("results")
@click.option("--write", "file", default="", metavar="FILE", help="Write them as a results file here too.")
@output_option
def show_command(results: str, file: str, output: str) -> None:
    """Show a results file, or a run that the server keeps; a file may be of another server.

    With --write a kept run becomes a file, which any other server's commands read: show, compare, diagnose and keep.

    \b
    corral benchmark show today.jsonl
    corral benchmark show 1m8jam0c62r5k --write elsewhere.jsonl
    """
    from corral.benchmarks.results.lines import write_results

    found = read_named(results)
    if file:
        try:
            with open(file, "x", encoding="utf-8") as target:
                target.write(write_results(found))
        except FileExistsError:
            raise InvalidInput("file-exists", f"{file} is there already.") from None
        say(f"Results of {len(found)} nodes are in {file}.")
    lines = [{"node": each.node, "sku": each.sku, "metrics": each.metrics} for each in found]
    if not show(lines, output, names=[each.node for each in found]):
        click.echo(summary_table(found))
        show_ways(found)


def read_named(named: str) -> list[NodeResult]:
    """Return the results of a file, or those of a run that the server keeps. Raises InvalidInput, NotFound."""
    from corral.benchmarks.results.lines import read_results
    from corral.benchmarks.suites.named import bounded

    return _kept(named) if is_run(named) else read_results(bounded(Path(named), LARGEST), named)


def _kept(run: str) -> list[NodeResult]:
    """All parts of a kept run."""
    from corral.benchmarks.results.lines import NodeResult
    from corral.cli.connection import connect

    lines: dict[str, NodeResult] = {}
    offset: int | None = 0
    with connect() as client:
        while offset is not None:
            part = client.benchmark_results(run, offset=offset)
            for each in part["results"]:
                known = lines.setdefault(each["node"], NodeResult(each["node"], {}, each["sku"]))
                known.metrics.update(each["metrics"])
            offset = part["nextOffset"]
    return list(lines.values())


def summary_table(results: Iterable[NodeResult]) -> str:
    """Return the least, the median and the greatest value of each metric that has a unit, but of single ways."""
    from corral.benchmarks.results.lines import summary
    from corral.benchmarks.results.matrices import is_way
    from corral.benchmarks.suite.catalogue import unit_of

    cells = []
    for metric, (least, middle, most) in summary(results).items():
        unit = unit_of(metric)
        if unit is not None and unit.unit and not is_way(metric):
            cells.append((metric, f"{least:.4g}", f"{middle:.4g}", f"{most:.4g}", unit.unit))
    return table(("METRIC", "LEAST", "MEDIAN", "MOST", "UNIT"), cells, right=frozenset({1, 2, 3}))
