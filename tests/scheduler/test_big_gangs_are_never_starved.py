"""A large gang waits no longer than the gangs that ran before it, however many small ones follow."""

from __future__ import annotations

import pytest

from corral.kernel.draw import draw_integer
from corral.scheduler import Policy, PriorityOrder
from tests.examples import at_least
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

LONGEST = 20
BEFORE = 12
"""Seconds of small gangs before the large one is submitted."""
AGEING = float(at_least(1, 5))
"""Seconds in which a waiting gang gains one priority."""


def stream(life: Life, policy_seed: int, second: int, priority: int) -> None:
    """Submit small gangs that together want more than there is, each ending within `LONGEST` seconds."""
    for at in range(4):
        lasts = 1 + draw_integer(policy_seed, second, at) % LONGEST
        tasks = 1 + draw_integer(policy_seed, second, at, 1) % 3
        name = f"small{second:04}-{at}"
        life.submit(gang(name, role(tasks), at=float(second), priority=priority, max_duration_seconds=lasts))


def end_what_is_over(life: Life) -> None:
    over = [job for end, job in life.cluster.ends if end <= life.now]
    life.end(*over)


def wait_of_big(life: Life, seed: int, big_priority: int, small_priority: int, needs: int) -> int:
    """Seconds from the large gang's submission to its start, while small ones keep arriving."""
    for second in range(BEFORE):
        stream(life, seed, second, small_priority)
        life.cycle(float(second))
        end_what_is_over(life)
    life.submit(gang("big", role(needs), at=float(BEFORE), priority=big_priority, max_duration_seconds=5))
    for second in range(BEFORE, 1000):
        stream(life, seed, second, small_priority)
        life.now = float(second)
        end_what_is_over(life)
        life.cycle(float(second))
        if "big" in life.running:
            return second - BEFORE
    raise AssertionError("it never started")


@pytest.mark.parametrize(("seed", "needs"), [(0, 6), (1, 8), (2, 8)])
def test_the_first_in_line_waits_no_longer_than_what_runs_when_it_comes(seed: int, needs: int) -> None:
    life = Life([node("n1"), node("n2")], policy=Policy("first", PriorityOrder()))
    assert wait_of_big(life, seed, 11, 10, needs) <= LONGEST


def test_a_gang_of_the_whole_cluster_waits_for_those_submitted_before_it_and_no_others() -> None:
    life = Life([node("n1"), node("n2")], policy=Policy("first", PriorityOrder()))
    wait_of_big(life, 0, 10, 10, 8)
    started_later = [
        job for job, request in life.requests.items() if job in life.running and request.submitted_at > BEFORE
    ]
    assert not started_later


@pytest.mark.parametrize("seed", range(1))
def test_ageing_bounds_the_wait_below_an_endless_stream_of_higher_priority(seed: int) -> None:
    ageing = Policy("ageing", PriorityOrder(ageing_seconds=AGEING))
    life = Life([node("n1"), node("n2")], policy=ageing)
    waited = wait_of_big(life, seed, 1, 10, 8)
    ahead = AGEING * (10 - 1)
    assert waited <= ahead + LONGEST * (1 + 4 * (BEFORE + ahead))


def test_y4_two_gangs_that_do_not_fit_together_never_hold_half_each() -> None:
    life = Life([node("n1"), node("n2")])
    life.submit(gang("one", role(6), at=0.0), gang("two", role(6), at=0.0))
    life.settle(0.0)
    assert life.sizes() == {"one": 6}
    life.end("one")
    life.settle(1.0)
    assert life.sizes() == {"two": 6}
