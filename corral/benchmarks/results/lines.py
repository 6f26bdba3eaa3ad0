"""Results: the figures that tasks print, a line of JSON for each node, and files of such lines.

A line is `{"node": "local/node1", "cpu-stream/triad_bw:0": 12.1, …}`, the shape of SuperBench's
results-summary.jsonl. Keys that begin with `corral/` tell of the run itself.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any, Final, NamedTuple

from corral.kernel.errors import InvalidInput

MARK: Final = b"CORRAL-BENCHMARK "
_LONGEST_LINE: Final = 1024 * 1024
_MOST_METRICS: Final = 20_000
_MOST_NODES: Final = 100_000
_METRIC: Final = re.compile(r"[\w.:+-]{1,100}/[\w.:+-]{1,150}")
_WAY: Final = re.compile(r"/pair_(?P<one>\d+)_(?P<two>\d+)_")
SKU: Final = "corral/sku"


class Told(NamedTuple):
    """What one task told."""

    metrics: dict[str, float]
    problems: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Why nothing could be measured where that is no fault, as of a device that the node lacks."""


class NodeResult(NamedTuple):
    """The metrics of one node, by name."""

    node: str
    metrics: dict[str, float]
    sku: str = ""


def told_in(log: bytes, benchmark: str) -> list[Told]:
    """Return what a log's marked lines tell of a benchmark; lines that are no result are left out.

    A program's own output may begin with the mark: only numbers of this benchmark's metrics are taken.
    """
    found = []
    for line in log.splitlines():
        at = line.find(MARK)
        if at < 0 or len(line) > _LONGEST_LINE:
            continue
        try:
            given = json.loads(line[at + len(MARK) :])
            metrics = {str(name): float(value) for name, value in given["metrics"].items()}
            problems, left_out = _sentences(given["problems"]), _sentences(given.get("leftOut", []))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            continue
        if all(_own(name, benchmark) and math.isfinite(value) for name, value in metrics.items()):
            found.append(Told(metrics, problems, left_out))
    return found


def _sentences(given: list[Any]) -> tuple[str, ...]:
    return tuple(str(each)[:400] for each in given[:100])


def _own(metric: str, benchmark: str) -> bool:
    return metric.startswith(f"{benchmark}/") and _METRIC.fullmatch(metric) is not None


def write_results(results: Iterable[NodeResult]) -> str:
    """Return the lines of a results file."""
    lines = []
    for each in results:
        known: dict[str, Any] = {"node": each.node}
        known |= {SKU: each.sku} if each.sku else {}
        lines.append(json.dumps(known | dict(sorted(each.metrics.items())), ensure_ascii=False) + "\n")
    return "".join(lines)


def read_results(text: bytes, shown: str) -> list[NodeResult]:
    """Read a results file, of Corral or of SuperBench. Raises InvalidInput with the line of the fault."""
    found: dict[str, NodeResult] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        result = _line(line, f"{shown}, line {number}")
        found[result.node] = result
        if len(found) > _MOST_NODES:
            raise InvalidInput("bad-results", f"{shown} has more than {_MOST_NODES} nodes.")
    if not found:
        raise InvalidInput("bad-results", f"{shown} has no results.")
    return list(found.values())


def _line(line: bytes, place: str) -> NodeResult:
    if len(line) > _LONGEST_LINE * 4:
        raise InvalidInput("bad-results", f"{place}: the line is too long.")
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInput("bad-results", f"{place}: this is not JSON.") from None
    if not isinstance(given, dict) or not isinstance(given.get("node"), str) or not 0 < len(given["node"]) <= 300:
        raise InvalidInput("bad-results", f'{place}: a result has a "node".')
    if len(given) > _MOST_METRICS:
        raise InvalidInput("bad-results", f"{place}: there are more than {_MOST_METRICS} metrics.")
    metrics = {name: _number(value, name, place) for name, value in given.items() if "/" in name and name != SKU}
    return NodeResult(given["node"], metrics, str(given.get(SKU) or "")[:200])


def _number(value: Any, name: str, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput("bad-results", f'{place}: "{name[:100]}" has to be a number.')
    return float(value)


def summary(results: Iterable[NodeResult]) -> Mapping[str, tuple[float, float, float]]:
    """Return least, median and greatest of each metric over nodes and ranks; the rank is left out of the name."""
    values: dict[str, list[float]] = {}
    for each in results:
        for metric, value in each.metrics.items():
            values.setdefault(without_rank(metric), []).append(value)
    return {name: (min(found), median(found), max(found)) for name, found in sorted(values.items())}


def without_rank(metric: str) -> str:
    """Return a metric's name without the number of the process."""
    return re.sub(r":\d+$", "", metric)


def of_nodes(told: Iterable[Told], nodes: Mapping[int, str], benchmark: str) -> dict[str, dict[str, float]]:
    """Return the metrics of each node from what the tasks of a run told; `nodes` has the node of each task.

    What all tasks measured together is each node's. Of a way between two tasks each of them has its worst.
    """
    metrics: dict[str, float] = {}
    code = f"{benchmark}/return_code"
    for each in told:
        metrics |= each.metrics | {code: max(metrics.get(code, 0), each.metrics.get(code, 0))}
    ways = {name: match for name in metrics if (match := _WAY.search(name))}
    found = {}
    for index, node in nodes.items():
        own = {name: value for name, value in metrics.items() if name not in ways}
        for name, match in ways.items():
            if index in (int(match["one"]), int(match["two"])):
                short = _WAY.sub("/pair_", name)
                worse = min if short.partition(":")[0].endswith("_bw") else max
                own[short] = worse(own.get(short, metrics[name]), metrics[name])
        found[node] = own
    return found
