"""The critical path follows the rank that enters each collective last, and names what it did meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
