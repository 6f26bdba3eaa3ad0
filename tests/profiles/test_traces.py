"""Traces are read in bounded memory and told as time by kind, imbalance and advice; what is no trace is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.profiles.advice import advise
from corral.profiles.intervals import common, length, union, without
from corral.profiles.kinds import unpacked
from corral.profiles.stalls import periodic_stalls
from corral.profiles.trace_events import read_events
from corral.profiles.trace_report import COLUMNS, RankReport, imbalance, report

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def span(name: str, begin: float, end: float, kind: str = "cpu_op", thread: int = 1) -> dict[str, Any]:
    """A span of a Chrome trace; times in milliseconds."""
    return {
        "ph": "X",
        "cat": kind,
        "name": name,
        "pid": 7,
        "tid": thread,
        "ts": begin * 1e3,
        "dur": (end - begin) * 1e3,
    }


def told(*spans: dict[str, Any], rank: str = "worker-0") -> RankReport:
    """The report of a trace with these spans."""
    return report(rank, read_events([json.dumps({"traceEvents": list(spans)})]))


def shares(of: RankReport) -> list[float]:
    """Computing, exposed communication, copies, waits for data and idle, in hundredths."""
    parts = (of.computing, of.exposed_communication, of.copies, of.data_waits, of.idle)
    return [round(100 * each / of.seconds) for each in parts]


def test_a_trace_that_was_cut_is_read_up_to_the_last_work_of_the_device() -> None:
    spans = [
        *(span("aten::mm", at, at + 5) for at in range(0, 100, 10)),
        *(span("gemm", at, at + 9, "kernel", thread=2) for at in range(0, 30, 10)),  # the other seven were cut
    ]
    events = list(read_events([json.dumps({"traceEvents": spans})]))
    assert shares(report("worker-0", events, cut=True)) == [93, 0, 0, 0, 7]
    assert report("worker-0", events, cut=True).seconds == pytest.approx(0.029)
    assert shares(report("worker-0", events)) == [28, 0, 0, 0, 72]


def test_a_trace_that_was_cut_before_the_work_of_the_device_is_refused() -> None:
    launch, of_processor = span("cudaLaunchKernel", 0, 5, "cuda_runtime"), span("aten::mm", 0, 5)
    with pytest.raises(InvalidInput, match="take a shorter one"):
        report("worker-0", read_events([json.dumps([launch, of_processor])]), cut=True)
    assert report("worker-0", read_events([json.dumps([of_processor])]), cut=True).computing == pytest.approx(0.005)


def test_no_moment_counts_twice_on_processors() -> None:
    found = told(
        span(LOADER, 0, 50, "user_annotation"),
        span("aten::stack", 10, 20),
        span("aten::mm", 50, 70),
        span("gloo:all_reduce", 60, 90, "user_annotation", thread=2),
        span("Optimizer.step#SGD.step", 95, 100, "user_annotation"),
    )
    assert shares(found) == [20, 20, 0, 50, 10]
    assert (found.steps, found.device) == (1, False)


def test_on_processors_operators_hide_communication_unless_they_may_wait_for_it() -> None:
    talks = span("gloo:all_reduce", 0, 60, "user_annotation", thread=2)
    begins = span("c10d::allreduce_", 0, 1)
    beside = told(begins, span("aten::matmul", 1, 81), span("aten::mm", 2, 80), span("aten::add", 81, 100), talks)
    assert shares(beside) == [99, 1, 0, 0, 0]
    within = told(span("SyncBackward", 0, 80), begins, span("aten::add", 81, 100), talks)
    assert shares(within) == [39, 60, 0, 0, 1]
    after = told(begins, span("_c10d_functional::wait_tensor", 1, 60), span("aten::mm", 60, 100), talks)
    assert shares(after) == [40, 60, 0, 0, 0]


def test_communication_beneath_a_devices_kernels_is_hidden() -> None:
    found = told(
        span("gemm", 0, 40, "kernel"),
        span("ncclDevKernel_AllReduce", 30, 60, "kernel", thread=2),
        span("Memcpy HtoD", 60, 70, "gpu_memcpy"),
        span("aten::mm", 0, 100),
    )
    assert shares(found) == [40, 20, 10, 0, 30]
    assert (found.device, round(found.communication, 6)) == (True, 0.03)
    assert [each.name for each in found.kernels] == ["gemm", "Memcpy HtoD"]


def test_a_timeline_adds_up_to_the_parts_and_is_in_their_order() -> None:
    found = told(
        span(LOADER, 0, 60, "user_annotation"),
        span("aten::mm", 60, 90),
        span("gloo:all_reduce", 90, 120, "user_annotation", thread=2),
    )
    line = found.timeline
    assert len(line.computing) == COLUMNS
    for part, seconds in zip(line, (found.computing, found.exposed_communication, 0, found.data_waits), strict=True):
        assert sum(part) / COLUMNS * found.seconds == pytest.approx(seconds)
    first = [part.index(1.0) for part in (line.data_waits, line.computing, line.exposed_communication)]
    assert first == [0, COLUMNS // 2, COLUMNS * 3 // 4]


def test_a_slow_data_loader_is_the_first_advice_and_its_healthy_twin_gets_none() -> None:
    slow = told(span(LOADER, 0, 90, "user_annotation"), span("aten::mm", 90, 100))
    healthy = told(span(LOADER, 0, 2, "user_annotation"), span("aten::mm", 2, 100))
    (first,) = advise([slow])
    assert (first.subject, first.rank, round(first.gain, 2)) == ("data-loading", "worker-0", 0.9)
    assert advise([healthy]) == []


def test_the_rank_that_others_wait_for_is_named() -> None:
    fast = told(span("aten::mm", 0, 20), span("gloo:all_reduce", 20, 100, "user_annotation", thread=2))
    slow = told(span("aten::mm", 0, 95), span("gloo:all_reduce", 95, 100, "user_annotation", thread=2), rank="worker-1")
    (first,) = advise([fast, slow])
    assert (first.subject, first.rank, round(first.gain, 2)) == ("imbalance", "worker-1", 0.75)
    assert round(imbalance([fast, slow]), 2) == 0.39
    assert advise([slow, slow]) == []


def test_communication_that_every_rank_has_is_its_own_cost() -> None:
    ranks = [told(span("aten::mm", 0, 50), span("gloo:all_reduce", 50, 100, "user_annotation", thread=2))] * 2
    assert [(each.subject, round(each.gain, 2)) for each in advise(ranks)] == [("communication", 0.5)]


def test_an_idle_device_and_many_copies_are_told_by_their_gain() -> None:
    found = told(span("gemm", 0, 20, "kernel"), span("Memcpy HtoD", 20, 40, "gpu_memcpy"), span("aten::mm", 0, 100))
    assert [(each.subject, round(each.gain, 2)) for each in advise([found])] == [("device-use", 0.6), ("copies", 0.2)]


def stepping(lengths: Sequence[float], rank: str = "worker-0") -> RankReport:
    """The report of a rank that computes all the time, with optimizer steps at the ends of these lengths."""
    spans, at = [], 0.0
    for seconds in (1.0, *lengths):
        spans += [
            span("aten::mm", at, at + seconds),
            span("Optimizer.step#SGD.step", at, at + seconds, "user_annotation"),
        ]
        at += seconds
    return told(*spans, rank=rank)


def test_a_step_that_stalls_at_a_regular_pace_is_told_with_what_it_costs() -> None:
    often = stepping([10.0 if at % 5 == 4 else 1.0 for at in range(40)])
    calm, alike = stepping([1.0] * 40, "worker-1"), stepping([1.0, 1.2] * 20)
    (first,) = advise([often, calm])
    assert (first.subject, first.rank) == ("stalls", "worker-0")
    assert first.gain == pytest.approx(8 * 9.0 / (8 * 10.0 + 32 + 1.0))
    assert first.text.startswith("One of 5 steps of worker-0 takes 10.0 times as long")
    assert advise([calm]) == advise([alike]) == []


@pytest.mark.parametrize(
    "lengths",
    [
        pytest.param([10.0 if at in (3, 4, 30) else 1.0 for at in range(40)], id="no pace"),
        pytest.param([10.0 if at in (10, 20) else 1.0 for at in range(40)], id="twice is no pace"),
        pytest.param([1.0, 10.0] * 20 + [10.0], id="every other step is the usual one"),
        pytest.param([10.0, 1.0], id="too few steps"),
        pytest.param([], id="none"),
    ],
)
def test_what_has_no_pace_is_no_stall(lengths: list[float]) -> None:
    assert periodic_stalls(lengths) is None


@given(st.lists(st.floats(0, 1e6), max_size=60))
def test_stalls_never_cost_more_than_all_steps_took(lengths: list[float]) -> None:
    found = periodic_stalls(lengths)
    if found is not None:
        assert 0 < found.lost <= sum(lengths) and found.every >= 1 and found.times > 1


HOSTILE = {
    "not JSON": "nonsense",
    "no events": "{}",
    "cut": '{"traceEvents": [{"ph": "X"',
    "nested": '{"traceEvents": [' + "[" * 100_000,
    "endless event": '{"traceEvents": ["' + "x" * 600_000,
    "endless head": " " * 3_000_000,
    "negative": json.dumps({"traceEvents": [span("a", 2, 1)]}),
    "huge": '{"traceEvents": [{"ph": "X", "ts": 1e400, "dur": 1}]}',
    "large": json.dumps({"traceEvents": [{"ph": "X", "ts": 10**30, "dur": 1}]}),
    "no number": json.dumps({"traceEvents": [{"ph": "X", "ts": "now", "dur": 1}]}),
    "nothing in it": '{"traceEvents": []}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_trace_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^This is not a trace that can be read: [^.]*\.$"):
        report("worker-0", read_events([text]))


def test_a_trace_that_unpacks_to_very_much_is_refused() -> None:
    with pytest.raises(InvalidInput, match="longer than 64 MiB"):
        for _ in unpacked(gzip.compress(bytes(70 * 1024**2))):
            pass


@pytest.mark.parametrize("data", [b"plain", gzip.compress(b"x" * 1000)[:-12], b""], ids=["plain", "cut", "empty"])
def test_a_trace_that_is_not_compressed_whole_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="compressed"):
        list(unpacked(data))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=20), st.integers(1, 50))
def test_a_trace_is_read_alike_in_pieces_of_any_size(lengths: list[int], size: int) -> None:
    spans = [span(f"op{number}", 10 * number, 10 * number + each) for number, each in enumerate(lengths)]
    text = json.dumps({"schemaVersion": 1, "traceEvents": spans, "traceName": "x"})
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(read_events(pieces)) == list(read_events([text]))
    assert len(list(read_events([text]))) == len(spans)


MOMENTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12)


@given(MOMENTS, MOMENTS)
def test_sets_of_moments_are_those_of_single_moments(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    def moments(intervals: list[Any]) -> set[int]:
        return {each for begin, end in intervals for each in range(int(begin), int(end))}

    one, other = union(first), union(second)
    assert moments(one) == moments(first)
    assert all(before[1] < after[0] for before, after in pairwise(one))
    assert length(one) == len(moments(one))
    assert moments(common(one, other)) == moments(one) & moments(other)
    assert moments(without(one, other)) == moments(one) - moments(other)
