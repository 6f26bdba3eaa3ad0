"""Administrators keep results of benchmarks, see which nodes are below their like, and compare two runs."""

from __future__ import annotations

import msgspec
import pytest

from corral.kernel.clock import VirtualClock
from corral.kernel.errors import Forbidden, InvalidInput, NotFound
from corral.model.benchmarks import MOST_AT_ONCE, BenchmarkNodeResult, BenchmarkResults
from corral.service.machines import benchmarks as module
from corral.service.service import Service
from corral.store import Store
from tests.service.conftest import ANN, ROOT

TRIAD = "cpu-stream/triad_bw"
NODES = ("local/a", "local/b", "local/c")


def results(*values: float, run: str = "", suite: str = "quick") -> BenchmarkResults:
    lines = (
        BenchmarkNodeResult(node, {f"{TRIAD}:0": value, "cpu-stream/return_code": 0}, "small")
        for node, value in zip(NODES, values, strict=False)
    )
    return BenchmarkResults(tuple(lines), suite, ("disk on local/a: no space",), run)


async def test_a_node_below_its_like_is_told_by_node_by_metric_and_in_the_history(
    service: Service, clock: VirtualClock
) -> None:
    first = await service.benchmarks.keep(ROOT, results(100, 101, 99))
    assert (first.nodes, first.figures, first.user, first.problems) == (3, 6, "root", ("disk on local/a: no space",))
    clock.advance(3600)
    second = await service.benchmarks.keep(ROOT, results(100, 102, 60))
    overview = await service.benchmarks.overview(ROOT)
    assert [(each.node, each.slow, each.measurements) for each in overview.nodes] == [
        ("local/c", 1, 2), ("local/a", 0, 2), ("local/b", 0, 2),
    ]  # fmt: skip
    assert overview.nodes[0].findings == (f"{TRIAD}:0 is 60, -40.0% of 100",)
    (metric,) = overview.metrics
    assert (metric.metric, metric.nodes, metric.least, metric.median, metric.most) == (TRIAD, 3, 60, 100, 102)
    assert (metric.slow, metric.unit, metric.larger_is_better) == (1, "GB/s", True)
    assert [each.id for each in overview.runs] == [second.id, first.id]
    standing = await service.benchmarks.standing(ROOT, node="local/c")
    assert [(each.metric, each.value, each.baseline, each.alike) for each in standing.items] == [
        (TRIAD, 60, 100, 2), ("cpu-stream/return_code", 0, None, 0),
    ]  # fmt: skip
    assert len((await service.benchmarks.standing(ROOT, metric=TRIAD)).items) == 3
    history = await service.benchmarks.history(ROOT, TRIAD)
    assert [(each.node, each.value, each.slow) for each in history.points] == [
        ("local/a", 100, False), ("local/b", 101, False), ("local/c", 99, False),
        ("local/a", 100, False), ("local/b", 102, False), ("local/c", 60, True),
    ]  # fmt: skip
    assert [each.run for each in (await service.benchmarks.history(ROOT, TRIAD, node="local/b")).points] == [
        first.id, second.id,
    ]  # fmt: skip


async def test_two_runs_are_compared_and_one_is_removed(service: Service, store: Store, clock: VirtualClock) -> None:
    before = await service.benchmarks.keep(ROOT, results(100, 100))
    clock.advance(60)
    after = await service.benchmarks.keep(ROOT, results(50, 50))
    found = await service.benchmarks.comparison(ROOT, before.id, after.id)
    assert (found.before.id, found.after.id) == (before.id, after.id)
    assert [(each.metric, each.before, each.after, each.gain) for each in found.changes] == [
        (TRIAD, 100, 50, -0.5), ("cpu-stream/return_code", 0, 0, None),
    ]  # fmt: skip
    await service.benchmarks.remove(ROOT, before.id)
    with pytest.raises(NotFound, match="There is no benchmark run"):
        await service.benchmarks.comparison(ROOT, before.id, after.id)
    with pytest.raises(NotFound):
        await service.benchmarks.remove(ROOT, before.id)
    audited = [line.action for line in (await store.audit()).items]
    assert audited.count("benchmark.change") == 3


async def test_single_ways_are_matrices_of_the_comparison_and_no_measurements_of_the_overview(
    service: Service, clock: VirtualClock
) -> None:
    runs = []
    for rate in (4.0, 1.0):
        way = {"tcp-bw/to_local+b_bw:0": rate}, {"tcp-bw/to_local+a_bw:0": 2.0}
        lines = tuple(BenchmarkNodeResult(node, each, "small") for node, each in zip(NODES, way, strict=False))
        runs.append((await service.benchmarks.keep(ROOT, BenchmarkResults(lines))).id)
        clock.advance(60)
    found = await service.benchmarks.comparison(ROOT, *runs)
    (ways,) = found.ways
    assert (found.changes, ways.benchmark, ways.node, ways.unit) == ((), "tcp-bw", "", "GB/s")
    assert ways.names == ("local/a", "local/b")
    assert (ways.before, ways.after) == (((None, 4), (2, None)), ((None, 1), (2, None)))
    assert ways.gain == ((None, -0.75), (0, None))
    assert (await service.benchmarks.overview(ROOT)).metrics == ()


async def test_a_run_is_sent_in_several_calls(service: Service) -> None:
    run = await service.benchmarks.keep(ROOT, results(100))
    more = msgspec.structs.replace(results(1, 2, run=run.id), problems=())
    whole = await service.benchmarks.keep(ROOT, more)
    assert (whole.id, whole.nodes, whole.figures, len(whole.problems)) == (run.id, 2, 4, 1)


async def test_the_figures_of_a_run_are_read_in_parts(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    run = await service.benchmarks.keep(ROOT, results(1, 2, 3))
    monkeypatch.setattr(module, "MOST_AT_ONCE", 4)
    found: dict[str, dict[str, float]] = {}
    offset: int | None = 0
    parts = []
    while offset is not None:
        part = await service.benchmarks.results(ROOT, run.id, offset=offset)
        parts.append(sum(len(line.metrics) for line in part.results))
        for line in part.results:
            assert line.sku == "small"
            found.setdefault(line.node, {}).update(line.metrics)
        assert part.run.id == run.id
        offset = part.next_offset
    assert parts == [4, 2]
    assert found == {
        node: {f"{TRIAD}:0": value, "cpu-stream/return_code": 0} for node, value in zip(NODES, (1, 2, 3), strict=True)
    }
    with pytest.raises(NotFound, match="There is no benchmark run"):
        await service.benchmarks.results(ROOT, "none")


async def test_only_administrators_keep_and_read_results(service: Service) -> None:
    run = await service.benchmarks.keep(ROOT, results(100))
    for asked in (
        service.benchmarks.keep(ANN, results(1)),
        service.benchmarks.overview(ANN),
        service.benchmarks.standing(ANN, node="local/a"),
        service.benchmarks.history(ANN, TRIAD),
        service.benchmarks.comparison(ANN, run.id, run.id),
        service.benchmarks.results(ANN, run.id),
        service.benchmarks.remove(ANN, run.id),
    ):
        with pytest.raises(Forbidden, match="only administrators may do this"):
            await asked
    assert [each.id for each in (await service.benchmarks.overview(ROOT)).runs] == [run.id]


@pytest.mark.parametrize(
    "wrong",
    [
        BenchmarkResults((BenchmarkNodeResult("a", {"a/b_bw": float("nan")}),)),
        BenchmarkResults((BenchmarkNodeResult("a", {"no-metric": 1.0}),)),
        BenchmarkResults((BenchmarkNodeResult("a\0", {"a/b_bw": 1.0}),)),
        BenchmarkResults((BenchmarkNodeResult("a", {}),)),
        BenchmarkResults((BenchmarkNodeResult("a", {f"a/b{at}_bw": 1.0 for at in range(MOST_AT_ONCE + 1)}),)),
    ],
)
async def test_what_is_no_result_is_refused_and_nothing_is_kept(service: Service, wrong: BenchmarkResults) -> None:
    with pytest.raises(InvalidInput):
        await service.benchmarks.keep(ROOT, wrong)
    assert (await service.benchmarks.overview(ROOT)).runs == ()


async def test_neither_a_node_nor_a_metric_is_refused_in_a_sentence(service: Service) -> None:
    with pytest.raises(InvalidInput, match=r"Name a node or a metric\."):
        await service.benchmarks.standing(ROOT)
