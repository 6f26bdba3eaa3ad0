"""The baselines `smallest-first`, `largest-first` and `random`."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corral.scheduler import History, find_policy
from corral.scheduler.policy.baselines.random_order import RandomOrder
from tests.scheduler.machines import gang, role


def test_gangs_go_by_the_number_of_their_devices() -> None:
    gangs = [
        gang("eight", role(2, 4), at=0.0),
        gang("one", role(1, 1), at=3.0),
        gang("none", role(5, 0), at=4.0),
        gang("three", role(3, 1), at=1.0),
        gang("three-too", role(1, 3), at=2.0),
    ]
    for name, ordered in (
        ("smallest-first", ["one", "none", "three", "three-too", "eight"]),
        ("largest-first", ["eight", "three", "three-too", "one", "none"]),
    ):
        order = find_policy(name).order
        assert [each.job for each in sorted(gangs, key=lambda each: order.key(each, History(), 9.0))] == ordered


@given(st.lists(st.text(max_size=26), min_size=2, max_size=20, unique=True), st.integers(0, 9))
def test_a_random_order_depends_on_ids_and_seed_only(ids: list[str], seed: int) -> None:
    order = RandomOrder(seed)
    keys = {each: order.key(gang(each, role(1, 2), at=5.0), History(), 10.0) for each in ids}
    again = {each: order.key(gang(each, role(4), at=5.0, user="bob"), History(), 99.0) for each in reversed(ids)}
    assert again == keys and all(0 <= number < 1 for number, _ in keys.values())
    assert len({number for number, _ in keys.values()}) == len(ids)
    assert keys != {each: RandomOrder(seed + 1).key(gang(each, at=5.0), History(), 10.0) for each in ids}


def test_a_random_order_favours_nobody() -> None:
    """Each of 400 jobs is in the first half about as often as not, over 100 seeds."""
    gangs = [gang(f"job-{number}") for number in range(400)]
    early = sum(RandomOrder(seed).key(each, History(), 0.0)[0] < 0.5 for seed in range(100) for each in gangs)
    assert 0.49 < early / 40_000 < 0.51
