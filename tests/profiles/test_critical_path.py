"""The critical path follows the rank that enters each collective last, and names what it did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.profiles import critical_path as paths
from corral.profiles.critical_path import PathPart, critical_path
from corral.profiles.trace_report import RankReport
from tests.profiles.test_traces import LOADER, span, told

STEPS = 10
STEP = 100.0


def rank(name: str, work: Sequence[float], *, loads: float = 0.0, ahead: float = 0.0, after: int = 0) -> RankReport:
    """A rank whose steps compute for so many milliseconds after `loads`, and end together at each hundredth.

    Its clock is `ahead`, and its trace begins `after` so many steps.
    """
    spans: list[dict[str, Any]] = []
    for number, busy in list(enumerate(work))[after:]:
        begin = number * STEP + ahead
        entered = begin + loads + busy
        if loads:
            spans.append(span(LOADER, begin, begin + loads, "user_annotation"))
        spans += [
            span("aten::linear", begin + loads, entered),
            span("aten::mm", begin + loads, begin + loads + busy * 0.8),
            span("gloo:all_reduce", entered, begin + STEP, "user_annotation", thread=2),
        ]
    return told(*spans, rank=name)


def shares(path: Sequence[PathPart]) -> list[tuple[str, str, float]]:
    return [(each.rank, each.part, round(each.share, 2)) for each in path]


def test_the_slow_rank_is_on_the_path_with_its_operators_and_the_others_are_not() -> None:
    path = critical_path([rank("worker-0", [20] * STEPS), rank("worker-1", [90] * STEPS)])
    assert shares(path) == [("worker-1", "computing", 0.9), ("worker-1", "exposed_communication", 0.1)]
    assert path[0].names == ("aten::mm", "aten::linear")
    assert path[1].names == ("gloo:all_reduce",)


def test_ranks_that_come_last_by_turns_share_the_path_and_waits_for_data_are_on_it() -> None:
    one = rank("worker-0", [60, 10] * (STEPS // 2))
    other = rank("worker-1", [10, 50] * (STEPS // 2), loads=20)
    found = {(each.rank, each.part): round(each.share, 2) for each in critical_path([one, other])}
    assert found[("worker-0", "computing")] == 0.3
    assert found[("worker-1", "computing")] == 0.25
    assert found[("worker-1", "data_waits")] == 0.1


@pytest.mark.parametrize("ahead", [0.0, 30.0, -30.0])
def test_clocks_that_differ_and_traces_that_begin_a_step_later_change_nothing(ahead: float) -> None:
    path = critical_path([rank("worker-0", [20] * STEPS), rank("worker-1", [90] * STEPS, ahead=ahead, after=1)])
    assert shares(path)[0][:2] == ("worker-1", "computing")
    assert shares(path)[0][2] == pytest.approx(0.9, abs=0.04)


def test_a_rank_alone_is_its_own_path_and_ranks_without_collectives_have_none() -> None:
    alone = told(span(LOADER, 0, 60, "user_annotation"), span("aten::mm", 60, 100))
    assert shares(critical_path([alone])) == [("worker-0", "data_waits", 0.6), ("worker-0", "computing", 0.4)]
    assert critical_path([alone, alone]) == []
    assert critical_path([alone, rank("worker-1", [20] * STEPS)]) == []


@given(st.lists(st.lists(st.integers(1, 99), min_size=4, max_size=4), min_size=1, max_size=4))
def test_a_path_is_never_longer_than_the_traces_and_its_shares_add_up_to_one(work: list[list[int]]) -> None:
    path = critical_path([rank(f"worker-{index}", each) for index, each in enumerate(work)])
    assert sum(each.share for each in path) == pytest.approx(1)
    assert sum(each.seconds for each in path) <= 4 * STEP / 1000 + 1e-6
    longest = sum(max(each) for each in zip(*work, strict=True)) / 1000
    computed = sum(each.seconds for each in path if each.part == "computing")
    assert computed == pytest.approx(longest)


def in_group(ranks: list[int], begin: float, end: float) -> dict[str, Any]:
    """An all-reduce of a process group on a device, as PyTorch tells it of NCCL."""
    args = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "Process Group Name": "3",
        "Process Group Ranks": str(ranks),
    }
    return span("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, end, "kernel", thread=9) | {"args": args}


def of_group(name: str, ranks: list[int], work: float, step: float, count: int) -> RankReport:
    """A rank of a group whose steps take so long, of which it computes `work`."""
    spans = []
    for begin in (number * step for number in range(count)):
        spans += [span("gemm", begin, begin + work, "kernel"), in_group(ranks, begin + work, begin + step)]
    return told(*spans, rank=name)


def test_ranks_of_another_group_are_not_waited_for_even_where_they_end_at_the_same_time() -> None:
    """Both groups end their steps together; the last one to enter is of the other group in each of them."""
    first = [of_group("worker-0", [0, 1], 10, 50, 8), of_group("worker-1", [0, 1], 40, 50, 8)]
    other = [of_group("worker-2", [2, 3], 45, 50, 8), of_group("worker-3", [2, 3], 20, 50, 8)]
    ended = {each.rank for each in critical_path([*first, *other])}
    assert len(ended) == 1, "a path stays in its group where groups have nothing in common"
    longer = of_group("worker-1", [0, 1], 40, 50, 9), of_group("worker-0", [0, 1], 10, 50, 9)
    assert shares(critical_path([*longer, *other]))[0] == ("worker-1", "computing", 0.8)


def exchanges(
    name: str, steps: Sequence[Sequence[tuple[float, float]]], step: float, what: str = "gloo:all_reduce"
) -> RankReport:
    """A rank with so many collectives in each step (entered, end), then one of all ranks; without groups, as of gloo."""
    spans = []
    for number, own in enumerate(steps):
        begin, last = number * step, 0.0
        for entered, end in [*own, (own[-1][1] if own else 0.0, step)]:
            spans += [
                span("aten::mm", begin + last, begin + entered),
                span(
                    "gloo:barrier" if end == step else what, begin + entered, begin + end, "user_annotation", thread=2
                ),
            ]
            last = end
    return told(*spans, rank=name)


def test_groups_without_names_are_told_apart_by_when_they_end() -> None:
    one = [[(10, 60)]] * 6, [[(58, 60)]] * 6
    other = [[(5, 12), (17, 24), (26, 32)]] * 6, [[(10, 12), (20, 24), (30, 32)]] * 6
    ranks = [exchanges(f"worker-{at}", each, 65) for at, each in enumerate((*one, *other))]
    path = critical_path(ranks)
    assert shares(path)[0][:2] == ("worker-1", "computing") and shares(path)[0][2] > 0.8
    assert {each.rank for each in path if each.part == "computing"} == {"worker-1"}


def test_who_receives_waits_for_who_sends() -> None:
    sender = exchanges("worker-0", [[(50, 51)]] * 5, 60, "gloo:send")
    receiver = exchanges("worker-1", [[(5, 51)]] * 5, 60, "gloo:recv")
    path = critical_path([sender, receiver])
    assert shares(path)[0][:2] == ("worker-0", "computing")
    assert {each.rank for each in path if each.part == "computing"} == {"worker-0"}


def test_a_rank_that_sends_and_goes_on_does_not_wait_for_who_receives_later() -> None:
    sender = exchanges("worker-0", [[(2, 3)]] * 5, 60, "gloo:send")
    receiver = exchanges("worker-1", [[(55, 56)]] * 5, 60, "gloo:recv")
    path = critical_path([sender, receiver])
    assert shares(path)[0][:2] == ("worker-1", "computing") and shares(path)[0][2] > 0.8


_TIMES = st.lists(st.tuples(st.integers(0, 999), st.integers(0, 60)), min_size=1, max_size=12)


_TRACES = st.lists(
    st.tuples(_TIMES, st.sampled_from(["gloo:all_reduce", "gloo:send", "gloo:recv"])), min_size=1, max_size=5
)


def of_times(given: Sequence[tuple[Sequence[tuple[int, int]], str]]) -> list[RankReport]:
    """Ranks with one kind of collective each, that begin and take so long."""
    return [
        told(*(span(name, begin, begin + took, "user_annotation") for begin, took in spans), rank=f"worker-{at}")
        for at, (spans, name) in enumerate(given)
    ]


@given(_TRACES)
def test_any_traces_have_a_path_that_ends(given: list[tuple[list[tuple[int, int]], str]]) -> None:
    path = critical_path(of_times(given))
    assert not path or sum(each.share for each in path) == pytest.approx(1)


class LookingAtAll(paths._Collectives):
    """Finds where a path begins and where it ends by looking at every window of every rank."""

    def _last(self) -> tuple[int, int] | None:
        common = [
            (self._spans[at][number][1], -at, number)
            for at, own in enumerate(self._windows)
            for number in range(len(own))
            if len(self._same(at, number)) > 1
        ]
        return (-max(common)[1], max(common)[2]) if common else None

    def _first(self, rank: int) -> int:
        own = self._windows[rank]
        return min((number for number in range(len(own)) if len(self._same(rank, number)) > 1), default=len(own))


@given(_TRACES)
def test_a_path_is_that_of_a_look_at_every_window(given: list[tuple[list[tuple[int, int]], str]]) -> None:
    windows = [each.windows for each in of_times(given)]
    assert paths._Collectives(windows).backwards() == LookingAtAll(windows).backwards()


def test_few_windows_are_looked_at_on_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    compared, together = 0, paths._together

    def counted(one: tuple[float, float], other: tuple[float, float]) -> bool:
        nonlocal compared
        compared += 1
        return together(one, other)

    monkeypatch.setattr(paths, "_together", counted)
    ranks, steps = 12, 20
    path = critical_path([rank(f"worker-{at}", [70 + at] * steps) for at in range(ranks)])
    assert shares(path)[0][:2] == ("worker-11", "computing")
    assert compared < 5 * ranks * steps, "not each window of each rank beside all ranks"
