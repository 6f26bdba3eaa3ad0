"""Matrices of single ways: between nodes, and between the devices of a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from corral.cli.output import paint, table

if TYPE_CHECKING:
    from corral.benchmarks.results.lines import NodeResult
    from corral.benchmarks.results.matrices import Pair
    from corral.client.schema import BenchmarkWays

_LOSS: Final = 0.05
"""The part by which a way must have changed to be told."""
_Values = Sequence[Sequence[float | None]]


def show_ways(results: Iterable[NodeResult]) -> None:
    """Print the matrices of results."""
    from corral.benchmarks.results.matrices import matrices

    for each in matrices(results):
        _show(each.title, each.names, each.values, None)


def show_compared_ways(pairs: Iterable[Pair]) -> None:
    """Print the matrices of the second of two results, with what changed from the first."""
    for each in pairs:
        places = range(len(each.after.names))
        gain = [[each.gain(row, to) for to in places] for row in places]
        _show(each.after.title, each.after.names, each.after.values, gain)


def show_kept_ways(ways: Iterable[BenchmarkWays]) -> None:
    """Print the matrices of the second of two kept runs, with what changed from the first."""
    from corral.benchmarks.results.matrices import title_of

    for each in ways:
        title = title_of(each["benchmark"], each["node"], each["unit"])
        _show(title, each["names"], each["after"], each["gain"])


def _show(title: str, names: Sequence[str], values: _Values, gain: _Values | None) -> None:
    rows = []
    for at, (name, row) in enumerate(zip(names, values, strict=True)):
        changes = gain[at] if gain else [None] * len(row)
        cells = ["-" if at == to else _cell(*each) for to, each in enumerate(zip(row, changes, strict=True))]
        rows.append((name if name == str(at) else f"{at} {name}", *cells))
    heads = ("FROM / TO", *map(str, range(len(names))))
    click.echo(f"\n{title}")
    click.echo(table(heads, rows, right=frozenset(range(1, len(heads)))))


def _cell(value: float | None, change: float | None) -> str:
    if value is None:
        return ""
    told = "" if change is None or abs(change) < _LOSS else f" {change:+.0%}"
    return f"{value:.4g}{paint(told, 'red' if told.startswith(' -') else 'green') if told else ''}"
