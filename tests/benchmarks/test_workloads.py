"""Workloads for schedulers: files are read, gangs come at their times, and figures follow from the times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.benchmarks.results.compare import compare
from corral.benchmarks.results.lines import read_results, write_results
from corral.benchmarks.suites.named import workload_names, workload_text
from corral.benchmarks.workloads.document import arrivals, read_workload, scaled
from corral.benchmarks.workloads.gang_pods import GangPods
from corral.benchmarks.workloads.outcome import Life, outcome, result_of
from corral.kernel.errors import InvalidInput, NotFound

TWO = b"""
name: two
queues: 2
classes:
  small: {gangs: 3, every: 0.5, runs: 1}
  wide: {gangs: 1, tasks: 4, units: 2, runs: 2.5, priority: -1}
"""


def test_a_workload_is_read_with_its_defaults() -> None:
    small, wide = read_workload(TWO).classes
    assert (small.gangs, small.every, small.tasks, small.units, small.runs, small.priority) == (3, 0.5, 1, 1, 1.0, 0)
    assert (wide.gangs, wide.every, wide.tasks, wide.units, wide.runs, wide.priority) == (1, 0.0, 4, 2, 2.5, -1)


def test_gangs_arrive_in_order_and_each_queue_at_its_own_pace() -> None:
    found = [(each.at, each.queue, each.kind.name, each.number) for each in arrivals(read_workload(TWO))]
    assert found == [
        (0.0, 0, "small", 0),
        (0.0, 0, "wide", 0),
        (0.0, 1, "small", 0),
        (0.0, 1, "wide", 0),
        (0.5, 0, "small", 1),
        (0.5, 1, "small", 1),
        (1.0, 0, "small", 2),
        (1.0, 1, "small", 2),
    ]


def test_corrals_own_workloads_are_those_of_kueue_and_kai() -> None:
    sizes = {name: len(arrivals(read_workload(workload_text(name)))) for name in workload_names()}
    assert sizes == {"gangs": 1000, "kueue": 15_000}
    assert len(arrivals(scaled(read_workload(workload_text("kueue")), 0.01))) == 30 * (4 + 1 + 1)
    with pytest.raises(NotFound, match="neither a workload"):
        workload_text("nowhere")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "the workload file must be a mapping"),
        ("name: Two\nclasses: {a: {gangs: 1, runs: 1}}", "name must be a word"),
        ("name: two", "classes must be a mapping"),
        ("name: two\nclasses: {}", "classes must be a mapping of 1 to 20"),
        ("name: two\nclasses: {a: 3}", "classes.a must be a mapping"),
        ("name: two\nclasses: {a b: {gangs: 1, runs: 1}}", "classes.a b is no word"),
        ("name: two\nclasses: {a: {runs: 1}}", "classes.a.gangs is missing"),
        ("name: two\nclasses: {a: {gangs: 1}}", "classes.a.runs is missing"),
        ("name: two\nclasses: {a: {gangs: true, runs: 1}}", "classes.a.gangs must be a whole number"),
        ("name: two\nclasses: {a: {gangs: 1, runs: 0}}", "classes.a.runs must be 0.001 to"),
        ("name: two\nclasses: {a: {gangs: 1, runs: .inf}}", "classes.a.runs must be a number"),
        ("name: two\nclasses: {a: {gangs: 1, runs: .nan}}", "classes.a.runs must be a number"),
        ("name: two\nclasses: {a: {gangs: 1, runs: 1, every: -1}}", "classes.a.every must be 0 to"),
        ("name: two\nclasses: {a: {gangs: 1, runs: 1, tasks: 1001}}", "classes.a.tasks must be a whole number"),
        ("name: two\nclasses: {a: {gangs: 1, runs: 1, gpu: 1}}", "classes.a.gpu is not known"),
        ("name: two\nqueues: 1000\nclasses: {a: {gangs: 1000, runs: 1}}", "have 1000000 gangs"),
        ("name: two\nclasses: &a {a: {gangs: 1, runs: 1}}\nb: *a", "no aliases"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_workload(text.encode())
    assert said in refused.value.message


def test_figures_follow_from_the_times_of_gangs() -> None:
    lives = [
        Life("small", 1, 10.0, 10.0, 12.0),
        Life("small", 1, 10.0, 12.0, 14.0),
        Life("wide", 8, 11.0, 14.0, 20.0),
        Life("wide", 8, 11.0, None, None),
    ]
    found = outcome(lives, capacity=10)
    assert (found.gangs, found.ended, found.makespan, found.most_units) == (4, 3, 10.0, 8)
    assert (found.throughput, found.unit_seconds, found.use) == (0.3, 52.0, 0.52)
    small, wide = found.waits
    assert (small.quantiles, small.longest, small.started) == ((0.0, 2.0, 2.0), 2.0, 2)
    assert (wide.gangs, wide.started, wide.ended, wide.quantiles) == (2, 1, 1, (3.0, 3.0, 3.0))


def test_nothing_that_ended_gives_no_division_by_zero() -> None:
    for lives in ([], [Life("a", 1, 1.0, None, None)], [Life("a", 1, 1.0, 1.0, 1.0)]):
        found = outcome(lives, capacity=4)
        assert (found.throughput, found.use, found.unit_seconds) == (0.0, None, 0.0)


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 50), st.floats(0, 50), st.floats(0, 50)), max_size=30))
def test_never_more_units_run_than_there_are_and_use_is_a_part_of_them(
    drawn: list[tuple[int, float, float, float]],
) -> None:
    lives = [Life("a", units, at, at + wait, at + wait + runs) for units, at, wait, runs in drawn]
    total = sum(life.units for life in lives)
    found = outcome(lives, capacity=max(total, 1))
    assert found.most_units <= total and (found.use is None or 0 <= found.use <= 1 + 1e-9)
    assert all(list(each.quantiles) == sorted(each.quantiles) for each in found.waits)


def test_figures_of_two_schedulers_are_compared_like_those_of_nodes() -> None:
    slow = result_of(outcome([Life("small", 1, 0.0, 4.0, 5.0)], 1), "two", "theirs")
    quick = result_of(outcome([Life("small", 1, 0.0, 1.0, 2.0)], 1), "two", "corral")
    assert read_results(write_results([slow]).encode(), "a")[0] == slow
    changes = {each.metric: each for each in compare([slow], [quick])}
    assert changes["two/small_wait_p50_time"].gain == 0.75 and changes["two/small_wait_p50_time"].unit == "ms"
    assert changes["two/gangs_throughput"].gain == pytest.approx(1.5)


PODS = [
    (
        "all pods must run",
        [("a", "Running", 1), ("b", "Running", 3), ("a", "Succeeded", 4), ("b", "Succeeded", 5)],
        3,
        5,
    ),
    ("an end may be all that is seen of a pod", [("a", "Succeeded", 2), ("b", "Succeeded", 2)], 2, 2),
    ("a pending pod does not run", [("a", "Running", 1), ("b", "Pending", 2)], None, None),
    (
        "a pod that is evicted starts the gang anew",
        [("a", "Running", 1), ("b", "Running", 1), ("b", "Failed", 2), ("b", "", 3), ("c", "Running", 7)],
        7,
        None,
    ),
    ("a pod that succeeded may be gone", [("a", "Succeeded", 1), ("a", "", 2), ("b", "Running", 3)], 3, None),
    (
        "nothing counts after the end",
        [("a", "Succeeded", 1), ("b", "Succeeded", 2), ("a", "", 3), ("b", "", 3)],
        2,
        2,
    ),
]


@pytest.mark.parametrize(("heard", "started", "ended"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_a_gang_of_two_pods(heard: list[tuple[str, str, float]], started: float | None, ended: float | None) -> None:
    gang = GangPods(2)
    for key, phase, now in heard:
        gang.fold(key, phase, now)
    assert (gang.started, gang.ended) == (started, ended)
