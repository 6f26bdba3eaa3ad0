"""Results: what a log tells, what is no result, files of results, and their comparison."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.benchmarks.results.compare import compare
from corral.benchmarks.results.lines import NodeResult, Told, of_nodes, read_results, summary, told_in, write_results
from corral.kernel.errors import InvalidInput


def line(**told: object) -> bytes:
    return b"CORRAL-BENCHMARK " + json.dumps({"metrics": {}, "problems": []} | told).encode()


def test_marked_lines_of_one_benchmark_are_read_behind_a_tasks_name_too() -> None:
    log = b"starting\nworker-1 | " + line(metrics={"a:x/copy_bw:0": 2}, problems=["rank 1: no"]) + b"\nend"
    assert told_in(log, "a:x") == [Told({"a:x/copy_bw:0": 2.0}, ("rank 1: no",))]
    assert told_in(log, "a") == []


@pytest.mark.parametrize(
    "hostile",
    [
        b"CORRAL-BENCHMARK ",
        b"CORRAL-BENCHMARK " + b"[" * 100_000,
        b"CORRAL-BENCHMARK " + b"9" * 100_000,
        line(metrics=[1]),
        line(metrics={"a/x": "fast"}),
        line(metrics={"a/x": [1]}),
        b'CORRAL-BENCHMARK {"metrics": {"a/x": 1e999}, "problems": []}',
        b'CORRAL-BENCHMARK {"metrics": {"a/x": NaN}, "problems": []}',
        line(metrics={"b/x": 1}),
        line(metrics={"a/\x1b[31m": 1}),
        line(metrics={"a/" + "x" * 1000: 1}),
        line(problems=3),
        line(metrics={"a/x": 1}, problems=["p" * 2_000_000]),
        b"CORRAL-BENCHMARK \xff\xfe",
    ],
)
def test_a_line_that_is_no_result_is_left_out(hostile: bytes) -> None:
    assert told_in(hostile + b"\n" + line(metrics={"a/good_bw:0": 1}), "a") == [Told({"a/good_bw:0": 1.0}, ())]


@given(st.binary(max_size=300))
def test_no_log_raises(log: bytes) -> None:
    assert told_in(b"CORRAL-BENCHMARK " + log, "a") is not None


def test_what_tasks_measured_together_is_each_nodes_and_of_a_way_both_have_their_worst() -> None:
    ways = {"t/pair_0_1_bw:0": 5.0, "t/pair_0_2_bw:0": 1.0, "t/pair_1_2_bw:0": 4.0, "t/pair_0_2_lat:0": 9.0}
    told = [Told({"t/return_code": 0.0} | ways, ()), Told({"t/return_code": 1.0}, ())]
    assert of_nodes(told, {0: "n0", 1: "n1", 2: "n2"}, "t") == {
        "n0": {"t/return_code": 1.0, "t/pair_bw:0": 1.0, "t/pair_lat:0": 9.0},
        "n1": {"t/return_code": 1.0, "t/pair_bw:0": 4.0},
        "n2": {"t/return_code": 1.0, "t/pair_bw:0": 1.0, "t/pair_lat:0": 9.0},
    }


_RESULTS = st.lists(
    st.builds(
        NodeResult,
        st.text(min_size=1, max_size=20),
        st.dictionaries(
            st.from_regex(r"[a-z]{1,5}/[a-z_]{1,9}:[0-9]", fullmatch=True), st.floats(-1e9, 1e9), max_size=4
        ),
        st.text(max_size=9),
    ),
    min_size=1,
    max_size=5,
    unique_by=lambda each: each.node,
)


@given(_RESULTS)
def test_results_are_read_as_they_were_written(results: list[NodeResult]) -> None:
    assert read_results(write_results(results).encode(), "r") == results


def test_a_summary_of_superbench_is_read() -> None:
    text = b'{"node": "vm0", "kernel-launch/event_time:0": 0.0059, "kernel-launch/return_code": 0}\n\n'
    assert read_results(text, "r") == [
        NodeResult("vm0", {"kernel-launch/event_time:0": 0.0059, "kernel-launch/return_code": 0.0})
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "r has no results"),
        (b'{"node": "a"}\n{', "r, line 2: this is not JSON"),
        (b"[]", 'a result has a "node"'),
        (b'{"node": ""}', 'a result has a "node"'),
        (b'{"node": "a", "a/b": "1"}', '"a/b" has to be a number'),
        (b'{"node": "a", "a/b": true}', '"a/b" has to be a number'),
        (b'{"node": "a", "a/b": 1e999}', '"a/b" has to be a number'),
        (b"[" * 100_000, "this is not JSON"),
    ],
)
def test_what_is_no_file_of_results_is_refused_with_its_line(text: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_results(text, "r")


def test_a_comparison_begins_with_the_largest_loss() -> None:
    before = [NodeResult("a", {"m/x_bw:0": 10, "m/y_lat:0": 10, "m/gone_bw:0": 1, "m/odd:0": 1, "m/same_bw:0": 3})]
    after = [NodeResult("b", {"m/x_bw:0": 5, "m/y_lat:0": 8, "m/new_bw:0": 1, "m/odd:0": 2, "m/same_bw:0": 3})]
    changes = compare(before, after)
    assert [(each.metric, each.gain) for each in changes] == [
        ("m/x_bw", -0.5), ("m/same_bw", 0.0), ("m/y_lat", 0.2), ("m/gone_bw", None), ("m/new_bw", None), ("m/odd", None),
    ]  # fmt: skip
    assert summary(before + after)["m/x_bw"] == (5, 7.5, 10)
