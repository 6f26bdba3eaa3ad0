"""How nodes stand by their last figures: beside the median of their SKU, and the data sheets of their devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from corral.benchmarks.results.figures import Figure, worst_of_ranks
from corral.benchmarks.rules.diagnosis import breaches
from corral.benchmarks.rules.document import Rule
from corral.benchmarks.rules.expected import Expected, Table, expected_of, model_of, too_low

_CODE: Final = "/return_code"


class Standing(NamedTuple):
    """A figure and what it is compared with."""

    figure: Figure
    baseline: float | None
    """The median over all nodes of its SKU; None where no other node has it."""
    alike: int
    """Other nodes of its SKU."""
    expected: Expected | None
    findings: tuple[str, ...]
    """The rules that it breaks, in words."""

    @property
    def change(self) -> float | None:
        """The difference from the baseline as a part of it."""
        return (self.figure.value - self.baseline) / abs(self.baseline) if self.baseline else None


class Baselines:
    """The medians of nodes' last figures by SKU and metric."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        """`figures` has one of each node and metric."""
        values: dict[tuple[str, str], list[float]] = {}
        for each in figures:
            if not each.metric.endswith(_CODE):
                values.setdefault((each.sku, each.metric), []).append(each.value)
        self._medians = {key: (median(found), len(found)) for key, found in values.items()}

    def of(self, figure: Figure) -> tuple[float | None, int]:
        """The baseline of a figure, and how many other nodes it is of."""
        found = self._medians.get((figure.sku, figure.metric))
        return (found[0], found[1] - 1) if found is not None and found[1] > 1 else (None, 0)


def standings(latest: Iterable[Figure], rules: Sequence[Rule], table: Table) -> list[Standing]:
    """Judge the last figures of nodes, the worst of each node's ranks; those with findings come first."""
    figures = list({(each.node, each.metric): each for each in _last(worst_of_ranks(latest))}.values())
    baselines = Baselines(figures)
    found = [judged(each, baselines, rules, table) for each in figures]
    return sorted(found, key=lambda each: (not each.findings, each.figure.metric, each.figure.node))


def _last(figures: Iterable[Figure]) -> list[Figure]:
    """Figures with the newest at the end; ranks of a node may have been measured last by different runs."""
    return sorted(figures, key=lambda each: (each.at, each.run))


def judged(figure: Figure, baselines: Baselines, rules: Sequence[Rule], table: Table) -> Standing:
    """Judge one figure."""
    baseline, alike = baselines.of(figure)
    model = model_of(figure.sku)
    low = too_low(model, {figure.name: figure.value}, table)
    findings = (*breaches(rules, figure.name, figure.value, baseline), *low)
    return Standing(figure, baseline, alike, expected_of(model, figure.metric, table), findings)
