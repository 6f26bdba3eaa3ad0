"""The gain that is told of exposed communication fits gangs that communicate faster, and those that do so less often."""

from __future__ import annotations

import random
from typing import Any

import pytest

from corral.profiles.advice import Advice, advise
from corral.profiles.critical_path import critical_path
from tests.profiles.test_traces import span, told

BATCHES, STEPS = 16, 25
WITHIN = 0.3


def advice_of(work: list[list[float]], talks: float) -> Advice:
    """The advice for ranks that compute for so many milliseconds each, and communicate together after each time."""
    spans: list[list[dict[str, Any]]] = [[] for _ in work]
    now = 0.0
    for times in zip(*work, strict=True):
        end = now + max(times) + talks
        for at, busy in enumerate(times):
            spans[at] += [
                span("aten::mm", now, now + busy),
                span("gloo:all_reduce", now + busy, end, "user_annotation", thread=2),
            ]
        now = end
    ranks = [told(*each, rank=f"worker-{at}") for at, each in enumerate(spans)]
    (advice,) = (each for each in advise(ranks, critical_path(ranks)) if each.subject == "communication")
    return advice


def lasts(work: list[list[float]], talks: float, every: int = 1) -> float:
    """How long they take if they communicate after every so many times only, each for so long."""
    groups = [[sum(each[at : at + every]) for at in range(0, len(each), every)] for each in work]
    return sum((max(times) + talks for times in zip(*groups, strict=True)), 0.0)


@pytest.mark.parametrize("talks", [2.5, 4.0, 8.0])
@pytest.mark.parametrize(
    ("ranks", "varies"), [(2, 0.0), (2, 0.5), (2, 1.0), (2, 2.0), (2, 3.0), (4, 0.0), (4, 0.5), (4, 1.0)]
)
def test_the_gain_fits_gangs_that_communicate_faster_or_less_often(ranks: int, varies: float, talks: float) -> None:
    """Each time of a rank has a part of its own, `varies` in the mean, beside six milliseconds."""
    source = random.Random(f"{ranks} {varies} {talks}")
    work = [[6.0 + varies * source.expovariate(1.0) for _ in range(BATCHES * STEPS)] for _ in range(ranks)]
    before = lasts(work, talks)
    told_gain = advice_of(work, talks).gain
    for after in (lasts(work, 0.0), lasts(work, talks, BATCHES)):
        assert abs(1 - after / before - told_gain) <= WITHIN * told_gain


@pytest.mark.parametrize(("turns", "gain"), [((50, 50), 0.5), ((60, 10), 0.525), ((90, 10), 0.3)])
def test_the_gain_is_the_mean_of_what_remains_after_the_last_rank_has_come_and_of_all(
    turns: tuple[float, float], gain: float
) -> None:
    """Ranks that come last in turns wait as long for each other."""
    advice = advice_of([list(turns) * 5, list(turns[::-1]) * 5], 100 - max(turns))
    least = 1 - max(turns) / 100
    assert (round(advice.figure, 3), round(advice.gain, 3)) == (round(1 - sum(turns) / 200, 3), gain)
    assert f"({least:.0%} after the last one has come)" in advice.text
