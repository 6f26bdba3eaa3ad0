"""Kept results of benchmarks: the last figure of each node, the history of a metric, and what is removed."""

from __future__ import annotations

import pytest

from corral.benchmarks.results.figures import figures_of
from corral.kernel.errors import NotFound
from corral.model.benchmarks import KEPT_SECONDS, BenchmarkRun
from corral.store import Store, benchmark_records


async def keep(
    store: Store, id: str, at: float, user: str = "root", problems: tuple[str, ...] = (), **values: float
) -> BenchmarkRun:
    figures = [
        each._replace(run=id)
        for node, value in values.items()
        for each in figures_of(node, "small", {"stream/triad_bw:0": value, "stream/return_code": 0.0})
    ]
    return await store.keep_benchmark(BenchmarkRun(id, at, user, "quick", problems=problems), figures)


async def test_the_last_figure_of_each_node_and_the_history_are_read(store: Store) -> None:
    await keep(store, "one", 1000.0, a=1, b=2)
    await keep(store, "two", 2000.0, a=3)
    latest = {(each.node, each.metric): each for each in await store.latest_figures()}
    assert len(latest) == 4
    assert (latest["a", "stream/triad_bw"].value, latest["a", "stream/triad_bw"].run) == (3, "two")
    assert (latest["b", "stream/triad_bw"].value, latest["b", "stream/triad_bw"].rank) == (2, 0)
    assert {each.metric for each in await store.latest_figures(metric="stream/triad_bw")} == {"stream/triad_bw"}
    assert {each.node for each in await store.latest_figures(nodes_of="a")} == {"a", "b"}, "its like are needed too"
    past = await store.past_figures("stream/triad_bw", "", 10)
    assert [(each.run, each.node) for each in past] == [("two", "a"), ("one", "a"), ("one", "b")]
    assert [each.run for each in await store.past_figures("stream/triad_bw", "a", 1)] == ["two"]
    assert [each.id for each in await store.benchmark_runs()] == ["two", "one"]


async def test_a_run_goes_on_for_who_began_it_and_for_nobody_else(store: Store) -> None:
    await keep(store, "one", 1000.0, problems=("first",), a=1)
    kept = await keep(store, "one", 0, problems=("first", "second"), a=5, b=2)
    assert (kept.at, kept.nodes, kept.figures, kept.problems) == (1000.0, 2, 4, ("first", "second"))
    assert {each.at for each in await store.figures_of_run("one")} == {1000.0}
    for id, user in (("one", "eve"), ("none", "root")):
        with pytest.raises(NotFound):
            await keep(store, id, 0, user=user, c=1)
    assert {each.node for each in await store.figures_of_run("one")} == {"a", "b"}
    await store.remove_benchmark_run("one")
    assert (await store.benchmark_runs(), await store.latest_figures()) == ([], [])


async def test_runs_that_are_too_old_or_too_many_are_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await keep(store, "old", 1000.0, a=1)
    await keep(store, "first", 1000.0 + KEPT_SECONDS, a=1)
    await keep(store, "second", 1001.0 + KEPT_SECONDS, a=1, b=2)
    assert [each.id for each in await store.benchmark_runs()] == ["second", "first"]
    monkeypatch.setattr(benchmark_records, "MOST_FIGURES", 5)
    await keep(store, "third", 1002.0 + KEPT_SECONDS, a=1, b=2, c=3)
    assert [each.id for each in await store.benchmark_runs()] == ["third"], "the newest stays beyond the bound too"
    assert {each.run for each in await store.latest_figures()} == {"third"}


async def test_as_many_figures_are_read_as_are_kept_and_what_is_beyond_is_of_the_last_nodes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keep(store, "one", 1000.0, c=1, a=2, b=3)
    monkeypatch.setattr(benchmark_records, "MOST_FIGURES", 5)
    for found in (await store.figures_of_run("one"), await store.latest_figures()):
        assert [(each.node, each.metric) for each in found] == [
            ("a", "stream/return_code"), ("a", "stream/triad_bw"), ("b", "stream/return_code"),
            ("b", "stream/triad_bw"), ("c", "stream/return_code"),
        ]  # fmt: skip
