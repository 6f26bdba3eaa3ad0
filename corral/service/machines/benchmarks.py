"""Kept results of benchmark suites: how nodes stand, the history of a measurement, and two runs compared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Final

from corral.benchmarks.results.figures import Figure, figures_of, results_of, worst_of_ranks
from corral.benchmarks.results.matrices import is_way
from corral.benchmarks.suite.catalogue import unit_of
from corral.kernel.errors import InvalidInput, NotFound
from corral.model.benchmarks import (
    KEPT_SECONDS,
    MOST_AT_ONCE,
    BenchmarkChange,
    BenchmarkComparison,
    BenchmarkedNode,
    BenchmarkHistory,
    BenchmarkMetric,
    BenchmarkNodeResult,
    BenchmarkOverview,
    BenchmarkPoint,
    BenchmarkResults,
    BenchmarkRun,
    BenchmarkRunResults,
    BenchmarkRunView,
    BenchmarkStanding,
    BenchmarkStandings,
    BenchmarkWays,
)
from corral.model.records import rfc3339
from corral.service.access.rules import Resource
from corral.service.actor import Actor
from corral.service.context import Context

if TYPE_CHECKING:
    from corral.benchmarks.results.matrices import Pair
    from corral.benchmarks.rules.document import Rule
    from corral.benchmarks.rules.expected import Table
    from corral.benchmarks.rules.standing import Standing

_MOST_POINTS: Final = 5000
_MOST_FINDINGS: Final = 5
"""Findings of a node in the overview."""


class Benchmarks:
    """What benchmarks measured on nodes; for administrators."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store

    async def keep(self, actor: Actor, asked: BenchmarkResults) -> BenchmarkRunView:
        """Keep results as a new run, or with one of the actor's that they belong to.

        Raises InvalidInput for what is no result, NotFound `no-such-run`.
        """
        resource = Resource("benchmark", asked.run)
        decision = await self._context.check(actor, "benchmark.change", resource)
        figures = [each for line in asked.results for each in figures_of(line.node, line.sku, line.metrics)]
        if not 0 < len(figures) <= MOST_AT_ONCE:
            raise InvalidInput("bad-results", f"Results have 1 to {MOST_AT_ONCE} figures; send more in several calls.")
        words = [asked.suite, asked.run, *(word for line in asked.results for word in (line.node, line.sku))]
        if any(not word.isprintable() for word in words):
            raise InvalidInput("bad-results", "Names of nodes, SKUs and suites are printable characters.")
        if asked.run:
            begun = BenchmarkRun(asked.run, 0, actor.user, asked.suite, problems=asked.problems)
        else:
            now = self._context.clock.now()
            begun = BenchmarkRun(str(self._context.new_job_id()), now, actor.user, asked.suite, problems=asked.problems)
        kept = await self._store.keep_benchmark(begun, [each._replace(run=begun.id) for each in figures])
        if not asked.run:
            await self._context.note(
                actor, "benchmark.change", Resource("benchmark", kept.id), decision, change="keep", suite=asked.suite
            )
        return _view(kept)

    async def results(self, actor: Actor, id: str, *, offset: int = 0) -> BenchmarkRunResults:
        """What a run measured, from its figure `offset` on.

        Raises NotFound `no-such-run`.
        """
        await self._context.check(actor, "benchmark.read", Resource("benchmark"))
        run = await self._run(id)
        found = await self._store.figures_of_run(run.id, offset, MOST_AT_ONCE + 1)
        part = found[:MOST_AT_ONCE]
        lines = tuple(BenchmarkNodeResult(each.node, each.metrics, each.sku) for each in results_of(part))
        return BenchmarkRunResults(_view(run), lines, offset + len(part) if len(found) > len(part) else None)

    async def remove(self, actor: Actor, id: str) -> None:
        """Remove a run with its figures.

        Raises NotFound `no-such-run`.
        """
        resource = Resource("benchmark", id)
        decision = await self._context.check(actor, "benchmark.change", resource)
        await self._run(id)
        await self._store.remove_benchmark_run(id)
        await self._context.note(actor, "benchmark.change", resource, decision, change="remove")

    async def overview(self, actor: Actor) -> BenchmarkOverview:
        """How all nodes stand, all measurements, and the newest runs."""
        await self._context.check(actor, "benchmark.read", Resource("benchmark"))
        runs = tuple(_view(each) for each in await self._store.benchmark_runs())
        latest = await self._store.latest_figures()
        nodes, metrics = await asyncio.to_thread(_overview, latest)
        return BenchmarkOverview(nodes, metrics, runs, round(KEPT_SECONDS / 86_400))

    async def standing(self, actor: Actor, *, node: str = "", metric: str = "") -> BenchmarkStandings:
        """The last values of a node, or of a metric on all nodes.

        Raises InvalidInput without either.
        """
        await self._context.check(actor, "benchmark.read", Resource("benchmark"))
        if not node and not metric:
            raise InvalidInput("nothing-asked", "Name a node or a metric.")
        latest = await self._store.latest_figures(metric=metric, nodes_of="" if metric else node)
        found = await asyncio.to_thread(_judged, latest)
        return BenchmarkStandings(tuple(_standing(each) for each in found if not node or each.figure.node == node))

    async def history(self, actor: Actor, metric: str, *, node: str = "") -> BenchmarkHistory:
        """What runs measured of a metric on all nodes or one, oldest first."""
        await self._context.check(actor, "benchmark.read", Resource("benchmark"))
        past = await self._store.past_figures(metric, node, _MOST_POINTS + 1)
        latest = await self._store.latest_figures(metric=metric)
        points = await asyncio.to_thread(_points, past[:_MOST_POINTS], latest)
        unit = unit_of(metric)
        return BenchmarkHistory(
            metric, unit.unit if unit else "", bool(unit and unit.larger_is_better), points, len(past) > _MOST_POINTS
        )

    async def comparison(self, actor: Actor, before: str, after: str) -> BenchmarkComparison:
        """The medians of two runs beside each other, the largest loss first.

        Raises NotFound `no-such-run`.
        """
        from corral.benchmarks.results.compare import compare
        from corral.benchmarks.results.matrices import paired

        await self._context.check(actor, "benchmark.read", Resource("benchmark"))
        runs = [await self._run(id) for id in (before, after)]
        old, new = [results_of(await self._store.figures_of_run(each.id)) for each in runs]
        changes = await asyncio.to_thread(compare, old, new)
        ways = await asyncio.to_thread(paired, old, new)
        told = (BenchmarkChange(each.metric, each.unit, each.before, each.after, each.gain) for each in changes)
        return BenchmarkComparison(_view(runs[0]), _view(runs[1]), tuple(told), tuple(map(_ways, ways)))

    async def _run(self, id: str) -> BenchmarkRun:
        found = await self._store.benchmark_run(id)
        if found is None:
            raise NotFound("no-such-run", f"There is no benchmark run {id[:100]}; corral benchmark history lists them.")
        return found


@cache
def _rules() -> tuple[Sequence[Rule], Table]:
    """Corral's own rules and data sheets."""
    from corral.benchmarks.rules.document import read_rules
    from corral.benchmarks.rules.expected import read_expected
    from corral.benchmarks.suites.named import expected_text, rules_text

    return read_rules(rules_text("")), read_expected(expected_text(""))


def _judged(latest: Sequence[Figure]) -> list[Standing]:
    from corral.benchmarks.rules.standing import standings

    return standings(latest, *_rules())


def _points(past: Sequence[Figure], latest: Sequence[Figure]) -> tuple[BenchmarkPoint, ...]:
    from corral.benchmarks.rules.standing import Baselines, judged

    baselines = Baselines(each.figure for each in _judged(latest))
    points = []
    for each in sorted(worst_of_ranks(past), key=lambda figure: (figure.at, figure.run, figure.node)):
        slow = bool(judged(each, baselines, *_rules()).findings)
        points.append(BenchmarkPoint(each.node, each.sku, each.run, rfc3339(each.at), each.value, each.rank, slow))
    return tuple(points)


def _overview(latest: Sequence[Figure]) -> tuple[tuple[BenchmarkedNode, ...], tuple[BenchmarkMetric, ...]]:
    nodes: dict[str, list[Standing]] = {}
    metrics: dict[str, list[Standing]] = {}
    for each in _judged(latest):
        nodes.setdefault(each.figure.node, []).append(each)
        if not each.figure.metric.endswith("/return_code"):
            metrics.setdefault(each.figure.metric, []).append(each)
    told = sorted(map(_node, nodes.values()), key=lambda each: (-each.slow, each.node))
    shown = (_metric(name, found) for name, found in sorted(metrics.items()))
    return tuple(told), tuple(each for each in shown if each.slow or not is_way(each.metric))


def _node(found: Sequence[Standing]) -> BenchmarkedNode:
    newest = max((each.figure for each in found), key=lambda figure: (figure.at, figure.run))
    findings = [finding for each in found for finding in each.findings]
    slow = sum(bool(each.findings) for each in found)
    at = rfc3339(newest.at)
    return BenchmarkedNode(newest.node, newest.sku, at, len(found), slow, tuple(findings[:_MOST_FINDINGS]))


def _metric(name: str, found: Sequence[Standing]) -> BenchmarkMetric:
    unit, values = unit_of(name), [each.figure.value for each in found]
    slow = sum(bool(each.findings) for each in found)
    larger = bool(unit and unit.larger_is_better)
    return BenchmarkMetric(
        name, unit.unit if unit else "", larger, len(found), min(values), median(values), max(values), slow
    )


def _ways(found: Pair) -> BenchmarkWays:
    unit, places = found.after.unit, range(len(found.after.names))
    return BenchmarkWays(
        found.after.benchmark, found.after.node, unit.unit, unit.larger_is_better, found.after.names,
        found.before.values, found.after.values, tuple(tuple(found.gain(row, to) for to in places) for row in places),
    )  # fmt: skip


def _standing(found: Standing) -> BenchmarkStanding:
    figure, unit, expected = found.figure, unit_of(found.figure.metric), found.expected
    return BenchmarkStanding(
        figure.node, figure.sku, figure.metric, figure.rank, figure.value, unit.unit if unit else "",
        bool(unit and unit.larger_is_better), rfc3339(figure.at), figure.run, found.baseline, found.alike, found.change,
        expected.peak if expected else None, expected.least if expected else None, expected.source if expected else "",
        found.findings,
    )  # fmt: skip


def _view(run: BenchmarkRun) -> BenchmarkRunView:
    return BenchmarkRunView(run.id, rfc3339(run.at), run.user, run.suite, run.nodes, run.figures, run.problems)
