"""Single figures of kept results: a line of results as figures, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from corral.benchmarks.results.lines import NodeResult
from corral.benchmarks.suite.catalogue import unit_of
from corral.kernel.errors import InvalidInput

_METRIC: Final = re.compile(r"(?P<name>[\w.:+-]{1,100}/[\w.+-]{1,150}?)(?::(?P<rank>\d{1,6}))?")


class Figure(NamedTuple):
    """What a run measured on a node."""

    run: str
    node: str
    metric: str
    """Its name without the rank."""
    rank: int
    """The process, or -1."""
    sku: str
    at: float
    """Seconds since 1970."""
    value: float

    @property
    def name(self) -> str:
        """The metric with its rank, as in a results file."""
        return self.metric if self.rank < 0 else f"{self.metric}:{self.rank}"


def figures_of(node: str, sku: str, metrics: Mapping[str, float]) -> list[Figure]:
    """Return the figures of a line of results, of no run yet. Raises InvalidInput for what is no metric or number."""
    found = []
    for name, value in metrics.items():
        match = _METRIC.fullmatch(name)
        if match is None:
            raise InvalidInput("bad-metric", f'"{name[:100]}" does not name a metric; cpu-stream/triad_bw:0 does.')
        if not math.isfinite(value):
            raise InvalidInput("bad-metric", f"{name} of {node[:100]} is not finite.")
        rank = int(match["rank"]) if match["rank"] else -1
        found.append(Figure("", node, match["name"], rank, sku, 0, float(value)))
    return found


def worst_of_ranks(figures: Iterable[Figure]) -> list[Figure]:
    """Return for each run, node and metric the figure of its worst process or device: a gang goes as fast as that."""
    worst: dict[tuple[str, str, str], Figure] = {}
    for each in figures:
        key = (each.run, each.node, each.metric)
        known = worst.get(key)
        unit = unit_of(each.metric)
        if known is None or (each.value < known.value if unit and unit.larger_is_better else each.value > known.value):
            worst[key] = each
    return list(worst.values())


def results_of(figures: Iterable[Figure]) -> list[NodeResult]:
    """Return figures as lines of results, one for each node."""
    lines: dict[str, NodeResult] = {}
    for each in figures:
        lines.setdefault(each.node, NodeResult(each.node, {}, each.sku)).metrics[each.name] = each.value
    return list(lines.values())
