"""Ways between nodes, and between the devices of a node, as matrices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.suite.catalogue import Unit, unit_of

MOST_NODES: Final = 32
"""Nodes of a run whose single ways are kept; of more, each node has its worst way alone."""
_LONGEST: Final = 100
"""Characters of a node's name that a metric has room for."""
_TO_NODE: Final = re.compile(r"(?P<benchmark>[^/]+)/to_(?P<to>[\w.-]+\+[\w.-]+)_(?P<what>bw|lat)(?::\d+)?")
_OF_DEVICES: Final = re.compile(r"(?P<benchmark>[^/]+)/peer_(?P<of>\d{1,4})_(?P<to>\d{1,4})_(?P<what>bw|lat)(?::\d+)?")
_PAIR: Final = re.compile(r"/pair_(?P<one>\d+)_(?P<two>\d+)_(?P<what>bw|lat)(?::\d+)?$")


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
        where = f"the devices of {self.node}" if self.node else "nodes"
        return f"{self.benchmark} between {where}, {self.unit.unit}"


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
    """Return the matrices of results: those between nodes first, of each benchmark bandwidth before latency."""
    ways: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for result in results:
        for metric, value in result.metrics.items():
            if match := _TO_NODE.fullmatch(metric):
                way = (result.node, match["to"].replace("+", "/", 1))
                ways.setdefault(("", match["benchmark"], match["what"]), {})[way] = value
            elif match := _OF_DEVICES.fullmatch(metric):
                way = (str(int(match["of"])), str(int(match["to"])))
                ways.setdefault((result.node, match["benchmark"], match["what"]), {})[way] = value
    return [_matrix(*key, ways[key]) for key in sorted(ways)]


def _matrix(node: str, benchmark: str, what: str, ways: Mapping[tuple[str, str], float]) -> Matrix:
    found = {end for way in ways for end in way}
    names = sorted(found, key=int) if node else sorted(found)
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
    """Return the matrices that either of two results has, each beside its other one."""
    old, new = ({(each.node, each.benchmark, each.unit): each for each in matrices(of)} for of in (before, after))
    return [_pair(old.get(key), new.get(key)) for key in sorted({*old, *new})]


def _pair(before: Matrix | None, after: Matrix | None) -> Pair:
    known = [each for each in (before, after) if each is not None]
    names = tuple(dict.fromkeys(name for each in known for name in each.names))
    names = tuple(sorted(names, key=int)) if known[0].node else tuple(sorted(names))
    empty = known[0]._replace(names=(), values=())
    return Pair(_with_names(before or empty, names), _with_names(after or empty, names))


def _with_names(matrix: Matrix, names: Sequence[str]) -> Matrix:
    at = {name: number for number, name in enumerate(matrix.names)}

    def value(of: str, to: str) -> float | None:
        return matrix.values[at[of]][at[to]] if of in at and to in at else None

    return matrix._replace(names=tuple(names), values=tuple(tuple(value(of, to) for to in names) for of in names))
