"""Ways between nodes, and between the devices of a node, as matrices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.suite.catalogue import Unit, unit_of

MOST_NODES: Final = 32
"""Nodes of a run whose single ways are kept; of more, each node has its worst way alone."""
_MOST_NAMES: Final = 64
"""Nodes or devices of a matrix, whose size is the square of that."""
_LONGEST: Final = 100
"""Characters of a node's name that a metric has room for."""
_TO_NODE: Final = re.compile(r"(?P<benchmark>[^/]+)/to_(?P<to>[\w.-]+\+[\w.-]+)_(?P<what>bw|lat)(?::\d+)?")
_OF_DEVICES: Final = re.compile(r"(?P<benchmark>[^/]+)/peer_(?P<of>\d{1,4})_(?P<to>\d{1,4})_(?P<what>bw|lat)(?::\d+)?")
_PAIR: Final = re.compile(r"/pair_(?P<one>\d+)_(?P<two>\d+)_(?P<what>bw|lat)(?::\d+)?$")

_Way = tuple[str, str]
_Ways = Mapping[_Way, float]
_Key = tuple[str, str, str]
"""The node whose devices they are or "", the benchmark, and what was measured."""


class Matrix(NamedTuple):
    """What was measured of each way between some nodes or devices; None where there is no way or no value."""

    benchmark: str
    node: str
    """The node whose devices it is of; "" for ways between nodes."""
    unit: Unit
    names: tuple[str, ...]
    """The rows, from which a way leads, and the columns."""
    values: tuple[tuple[float | None, ...], ...]

    @property
    def title(self) -> str:
        """What it shows, in words."""
        return title_of(self.benchmark, self.node, self.unit.unit)


def title_of(benchmark: str, node: str, unit: str) -> str:
    """What a matrix shows, in words; `node` is the one whose devices it is of, or ""."""
    return f"{benchmark} between {f'the devices of {node}' if node else 'nodes'}, {unit}"


def is_way(metric: str) -> bool:
    """Whether a metric is of one way alone: an entry of a matrix."""
    return (_TO_NODE.fullmatch(metric) or _OF_DEVICES.fullmatch(metric)) is not None


def to_nodes(metrics: Mapping[str, float], nodes: Mapping[int, str], benchmark: str) -> dict[str, dict[str, float]]:
    """Return, for each node, the metrics of its ways to others, from what a run measured between its tasks.

    A way has the same value in both directions. Of more than 32 nodes there are none.
    """
    found: dict[str, dict[str, float]] = {}
    if len(set(nodes.values())) > MOST_NODES:
        return found
    for metric, value in metrics.items():
        match = _PAIR.search(metric)
        ends = match and (nodes.get(int(match["one"])), nodes.get(int(match["two"])))
        if match is None or ends is None or not ends[0] or not ends[1]:
            continue
        for of, to in (ends, ends[::-1]):
            name = f"{benchmark}/to_{str(to).replace('/', '+', 1)}_{match['what']}:0"
            if len(str(to)) <= _LONGEST and is_way(name):
                found.setdefault(str(of), {})[name] = value
    return found


def matrices(results: Iterable[NodeResult]) -> list[Matrix]:
    """Return the matrices of results: those between nodes first, of each benchmark bandwidth before latency.

    Nodes or devices without a way between them, as nodes of two gangs, are in different ones. Ways that connect more than
    64 have none.
    """
    found = _ways_of(results)
    return [_matrix(key, names, found[key]) for key in sorted(found) for names in _bounded(_connected(found[key]))]


def _ways_of(results: Iterable[NodeResult]) -> dict[_Key, dict[_Way, float]]:
    ways: dict[_Key, dict[_Way, float]] = {}
    for result in results:
        for metric, value in result.metrics.items():
            if match := _TO_NODE.fullmatch(metric):
                way = (result.node, match["to"].replace("+", "/", 1))
                ways.setdefault(("", match["benchmark"], match["what"]), {})[way] = value
            elif match := _OF_DEVICES.fullmatch(metric):
                way = (str(int(match["of"])), str(int(match["to"])))
                ways.setdefault((result.node, match["benchmark"], match["what"]), {})[way] = value
    return ways


def _connected(ways: Iterable[_Way]) -> list[list[str]]:
    """The names between which ways lead, those that ways connect together. O(ways + names log names)."""
    groups: dict[str, list[str]] = {}
    for of, to in ways:
        larger, other = groups.setdefault(of, [of]), groups.setdefault(to, [to])
        if larger is other:
            continue
        if len(larger) < len(other):
            larger, other = other, larger
        larger += other
        groups |= dict.fromkeys(other, larger)
    return list({id(each): each for each in groups.values()}.values())


def _bounded(groups: Iterable[list[str]]) -> list[list[str]]:
    """Those that a matrix has room for, in the order of their names."""
    bounded = [sorted(each, key=_order) for each in groups if len(each) <= _MOST_NAMES]
    return sorted(bounded, key=lambda names: _order(names[0]))


def _order(name: str) -> tuple[int, str]:
    """Devices are in the order of their numbers, nodes in that of their names."""
    return (int(name) if name.isdecimal() else 0), name


def _matrix(key: _Key, names: Sequence[str], ways: _Ways) -> Matrix:
    node, benchmark, what = key
    values = tuple(tuple(ways.get((of, to)) for to in names) for of in names)
    unit = unit_of(f"{benchmark}/way_{what}")
    assert unit is not None, "bandwidth and latency have units"
    return Matrix(benchmark, node, unit, tuple(names), values)


class Pair(NamedTuple):
    """The matrix of a benchmark in two results, with the names of both."""

    before: Matrix
    after: Matrix

    def gain(self, row: int, column: int) -> float | None:
        """The change of a way for the better as a part of the value before; None where one of the two is missing."""
        old, new = self.before.values[row][column], self.after.values[row][column]
        if old is None or new is None or old == 0:
            return None
        change = (new - old) / abs(old)
        return change if self.after.unit.larger_is_better else -change


def paired(before: Iterable[NodeResult], after: Iterable[NodeResult]) -> list[Pair]:
    """Return the matrices that either of two results has, each beside its other one, with the same names."""
    old, new = _ways_of(before), _ways_of(after)
    pairs = []
    for key in sorted({*old, *new}):
        first, second = old.get(key, {}), new.get(key, {})
        for names in _bounded(_of_both(first, second)):
            pairs.append(Pair(_matrix(key, names, first), _matrix(key, names, second)))
    return pairs


def _of_both(before: _Ways, after: _Ways) -> Iterator[list[str]]:
    """The names that ways of either connect; where these are too many, as of gangs that were others, those of the later."""
    for names in _connected([*before, *after]):
        within = set(names)
        if len(within) <= _MOST_NAMES:
            yield names
        else:
            yield from _connected(way for way in after if way[0] in within)
