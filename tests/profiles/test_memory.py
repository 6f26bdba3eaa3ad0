"""Memory is told by what holds it and beneath which functions it grew; unused memory leads to advice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.kernel.errors import InvalidInput
from corral.profiles.advice import Given, memory_slack
from corral.profiles.curves import curve
from corral.profiles.kinds import read
from corral.profiles.memory import UNSEEN, MemoryReport, grown_beneath, read_memory
from corral.profiles.sampled_calls import Seen, read_calls
from corral.profiles.taken import Taken

FACTS: dict[str, Any] = {
    "seconds": 2.0,
    "begun": 100.0,
    "rate": 500,
    "sampling": 100.0,
    "wrote": 0.0,
    "unseen": "",
    "fine": [[0, 0, 1000], [498, 500, 5000], [998, 1000, 4000], [1498, 1500, 9000]],
    "parts": [[0, 1000, 300, 0, 0, 2000], [1900, 9000, 300, 50, 0, 9400]],
    "before": {"": 900, "[heap]": 100, "/usr/lib/libc.so.6": 300},
    "after": {"": 8900, "[heap]": 100, "/usr/lib/libc.so.6": 300, "/dev/shm/batch": 50, "/data/a.bin": 0},
}


def told(*seen: Seen, **more: Any) -> MemoryReport:
    return read_memory("worker-0", json.dumps({**FACTS, **more}), seen)


def call(phase: str, name: str, at: float) -> dict[str, Any]:
    """An event of py-spy's Chrome trace, at a time in seconds."""
    return {"ph": phase, "name": name, "tid": 7, "ts": at * 1e6, "args": {"filename": "job.py", "line": 3}}


def test_growth_counts_for_the_stack_that_was_seen_meanwhile() -> None:
    train, load = ("train",), ("train", "load")
    found = told(Seen(0.0, 0.4, train), Seen(0.4, 0.6, load), Seen(0.6, 1.4, train), Seen(1.4, 1.6, load))
    assert {each.frames: each.samples for each in found.stacks} == {load: 9000}
    assert (found.grown, found.kept, found.used, found.peak) == (9000, 8000, 9350, 9400)


def test_growth_that_two_threads_share_is_divided_by_their_time_and_the_rest_is_named() -> None:
    seen = [Seen(0.0, 2.0, ("a",)), Seen(0.0, 0.5, ("b",))]
    found = grown_beneath([(0.0, 1.0, 300), (5.0, 6.0, 40)], seen)
    assert {each.frames[-1]: each.samples for each in found} == {"a": 200, "b": 100, UNSEEN: 40}


def test_memory_is_told_by_what_holds_it() -> None:
    assert [(each.kind, each.before, each.after) for each in told().holders] == [
        ("anonymous", 900, 8900),
        ("libraries", 300, 300),
        ("heap", 100, 100),
        ("shared memory", 0, 50),
    ]


def test_stacks_begin_and_end_with_their_calls() -> None:
    events = [
        call("B", "thread", 1), call("B", "train", 1), call("B", "load", 2), call("E", "load", 3), call("E", "train", 4),
    ]  # fmt: skip
    found = list(read_calls([json.dumps(events)]))
    assert [(each.begin, each.end, len(each.frames)) for each in found] == [(1, 2, 2), (2, 3, 3), (3, 4, 2)]
    assert found[1].frames[-1] == "load (job.py:3)"


HOSTILE = {
    "not JSON": "nonsense",
    "empty": json.dumps({**FACTS, "parts": []}),
    "negative": json.dumps({**FACTS, "before": {"": -1}}),
    "huge": json.dumps({**FACTS, "after": {"": 1 << 60}}),
    "no time": json.dumps({**FACTS, "seconds": 0}),
    "no rate": json.dumps({**FACTS, "rate": 0}),
    "other shape": json.dumps({**FACTS, "fine": [[1]]}),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_answer_about_memory_is_refused_in_one_sentence(text: str) -> None:
    found, problem = read(Taken("worker-0", 7, text=text), "memory")
    assert found is None
    assert problem.startswith("What the task told of its memory") and problem.count(".") == 1


@given(st.lists(st.tuples(st.sampled_from("BEX"), st.integers(0, 9)), max_size=30))
def test_calls_that_do_not_match_never_give_a_stack_that_ends_before_it_begins(events: list[tuple[str, int]]) -> None:
    found = list(read_calls([json.dumps([call(phase, "f", at) for phase, at in events])]))
    assert all(each.begin < each.end and each.frames for each in found)


def test_a_process_that_py_spy_cannot_read_still_tells_its_memory() -> None:
    found, problem = read(Taken("worker-0", 7, text=json.dumps({**FACTS, "unseen": "no ptrace."})), "memory")
    assert found.grown == 9000
    assert problem == "Its growth is told without functions. No ptrace."


def test_unused_memory_is_advice_once_for_tasks_that_asked_alike_and_used_memory_is_none() -> None:
    asked = {"worker-0": Given(0, 8 << 30), "worker-1": Given(0, 8 << 30), "ps-0": Given(0, 1 << 30), "x-0": Given()}
    (found,) = memory_slack({"worker-0": 1 << 30, "worker-1": 2 << 30, "ps-0": 900 << 20, "x-0": 1}, asked)
    assert (found.subject, found.rank, found.figure, found.of) == ("memory-slack", "worker-1", 0.25, "memory")
    assert found.gain == pytest.approx(1 - 0.25 / 0.8, abs=0.01)
    assert "2Gi at most of the 8Gi" in found.text and "2560Mi would do" in found.text


def test_a_curve_has_few_points_and_its_greatest_value() -> None:
    made = curve("private", "MiB", [(at / 100, float(at)) for at in range(1000)], 10.0)
    assert len(made.points) == 120 and made.most == 999
    assert list(made.points) == sorted(made.points)


def test_profiles_are_refused_by_name_beyond_their_bounds() -> None:
    with pytest.raises(InvalidInput, match="empty or out of bounds"):
        told(fine=[[0, 0, 1 << 51]])
