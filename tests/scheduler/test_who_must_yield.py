"""Preemption: the rules that allow it, the order of victims, and forbidden preemptions."""

from __future__ import annotations

import pytest

from corral.model.plan import Rule
from corral.model.queues import QueueSpec, Reclaim, WithinQueue
from corral.scheduler import Policy
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def nodes(count: int = 2) -> list:
    return [node(f"n{at}") for at in range(1, count + 1)]


def test_a_higher_priority_ends_the_lowest_and_cheapest_gangs_of_its_queue() -> None:
    life = Life(nodes())
    life.submit(gang("old", role(2), at=0.0, priority=10), gang("low", role(2), at=1.0, priority=5))
    life.cycle(0.0)
    life.submit(gang("young", role(2), at=2.0, priority=10), gang("big", role(2), at=3.0, priority=10))
    life.cycle(50.0)
    assert set(life.running) == {"old", "low", "young", "big"}
    life.submit(gang("urgent", role(4), at=4.0, priority=100))
    found = life.cycle(60.0)
    assert [eviction.job for eviction in found.evictions] == ["low", "big"] or [
        eviction.job for eviction in found.evictions
    ] == ["low", "young"]
    assert {eviction.rule for eviction in found.evictions} == {Rule.PRIORITY}
    assert sum(eviction.cost_device_seconds for eviction in found.evictions) == 2 * 60 + 2 * 10
    assert life.why("urgent") == "others-yield"
    life.yielded()
    life.cycle(61.0)
    assert "urgent" in life.running and "old" in life.running


def test_nothing_is_ended_twice_or_for_nothing_while_those_told_to_are_ending() -> None:
    life = Life(nodes())
    life.submit(*(gang(f"low{at}", role(2), at=float(at), priority=1) for at in range(4)))
    life.cycle(0.0)
    life.submit(gang("urgent", role(4), at=9.0, priority=100))
    assert len(life.cycle(10.0).evictions) == 2
    assert not life.cycle(11.0).evictions
    life.end(next(iter(life.leaving)))
    assert not life.cycle(12.0).evictions and "urgent" not in life.running
    life.yielded()
    life.cycle(13.0)
    assert "urgent" in life.running and len(life.receipts) == 2


def test_room_made_for_one_is_not_taken_by_another_that_comes_later() -> None:
    life = Life(nodes())
    life.submit(*(gang(f"low{at}", role(2), at=float(at), priority=1) for at in range(4)))
    life.cycle(0.0)
    life.submit(gang("urgent", role(6), at=5.0, priority=100))
    assert len(life.cycle(10.0).evictions) == 3
    first, *_ = life.leaving
    life.end(first)
    life.submit(gang("small", role(1), at=6.0, priority=50))
    life.cycle(11.0)
    assert "small" not in life.running
    life.yielded()
    life.cycle(12.0)
    assert "urgent" in life.running


def test_a_stronger_gang_cancels_the_claim_of_a_weaker_one() -> None:
    life = Life(nodes(1))
    life.submit(gang("low", role(4), priority=1))
    life.cycle(0.0)
    life.submit(gang("strong", role(4), at=1.0, priority=50))
    assert len(life.cycle(1.0).evictions) == 1
    life.submit(gang("stronger", role(4), at=2.0, priority=100))
    assert not life.cycle(2.0).evictions
    life.yielded()
    life.cycle(3.0)
    assert set(life.running) == {"stronger"}


def test_the_priority_below_zero_yields_to_any_queue_before_anybody_else() -> None:
    life = Life(nodes(), [QueueSpec("a"), QueueSpec("b")])
    life.submit(gang("oppo", role(4), priority=-1, queue="a"), gang("test", role(4), at=1.0, priority=1, queue="b"))
    life.cycle(0.0)
    life.submit(gang("prod", role(2), at=2.0, priority=100, queue="b"))
    life.cycle(100.0)
    assert life.rules() == [("oppo", Rule.OPPORTUNISTIC)]


def test_a_gang_that_may_not_be_preempted_is_left_alone() -> None:
    life = Life(nodes(1))
    life.submit(gang("low", role(4), priority=1, preemptible=False))
    life.cycle(0.0)
    life.submit(gang("urgent", role(4), at=1.0, priority=100))
    assert not life.cycle(1.0).evictions
    assert life.why("urgent") == "not-enough-devices"


def test_a_queue_or_a_policy_that_says_never_ends_nobody() -> None:
    for life in (
        Life(nodes(1), [QueueSpec("default", within_queue=WithinQueue.NEVER)]),
        Life(nodes(1), policy=Policy("quiet", preemption=False)),
    ):
        life.submit(gang("low", role(4), priority=1))
        life.cycle(0.0)
        life.submit(gang("urgent", role(4), at=1.0, priority=100))
        assert not life.cycle(1.0).evictions


def test_nobody_is_ended_for_a_gang_that_would_not_fit_even_then() -> None:
    life = Life(nodes())
    life.submit(gang("low", role(1), priority=1), gang("same", role(7), at=1.0, priority=100))
    life.cycle(0.0)
    life.submit(gang("urgent", role(4), at=2.0, priority=100))
    assert not life.cycle(1.0).evictions


@pytest.mark.parametrize("mode", list(Reclaim))
def test_a_queue_takes_back_what_it_deserves(mode: Reclaim) -> None:
    own = QueueSpec("own", deserved={"devices": 4}, reclaim=mode)
    life = Life(nodes(), [own, QueueSpec("guest", deserved={"devices": 4})])
    life.submit(*(gang(f"guest{at}", role(2), at=float(at), priority=10, queue="guest") for at in range(4)))
    life.cycle(0.0)
    assert len(life.running) == 4
    life.submit(gang("mine", role(4), at=9.0, priority=10, queue="own"))
    life.settle(10.0)
    if mode is Reclaim.ANY:
        assert life.rules() == [("guest3", Rule.RECLAIM), ("guest2", Rule.RECLAIM)]
        assert set(life.running) == {"guest0", "guest1", "mine"}
    else:
        assert not life.receipts and life.why("mine") == "not-enough-devices"


def test_a_queue_that_holds_its_own_takes_nothing_more_back() -> None:
    queues = [QueueSpec("own", deserved={"devices": 4}), QueueSpec("guest", deserved={"devices": 4})]
    life = Life(nodes(), queues)
    life.submit(gang("first", role(4), queue="own"), gang("guest", role(4), at=1.0, queue="guest"))
    life.cycle(0.0)
    life.submit(gang("more", role(2), at=2.0, queue="own"))
    life.settle(10.0)
    assert not life.receipts


def test_a_borrower_keeps_what_it_took_for_its_minimum_run_time() -> None:
    queues = [
        QueueSpec("own", deserved={"devices": 4}),
        QueueSpec("guest", deserved={"devices": 4}, min_runtime_seconds=60.0),
    ]
    life = Life(nodes(), queues)
    life.submit(gang("guest", role(8), queue="guest"))
    life.cycle(0.0)
    life.submit(gang("mine", role(4), at=1.0, queue="own"))
    found = life.cycle(10.0)
    assert not found.evictions and found.again_at == 60.0
    assert not life.cycle(59.0).evictions
    assert life.cycle(60.0).evictions


def test_over_its_own_a_queue_gets_back_its_part_by_weight() -> None:
    queues = [QueueSpec("heavy", weight=3.0), QueueSpec("light", weight=1.0)]
    life = Life(nodes(4), queues)
    life.submit(*(gang(f"light{at:02}", role(1), at=float(at), queue="light") for at in range(16)))
    life.cycle(0.0)
    life.submit(*(gang(f"heavy{at:02}", role(1), at=20.0 + at, queue="heavy") for at in range(16)))
    life.settle(100.0)
    assert sum(job.startswith("heavy") for job in life.running) == 12
    assert sum(job.startswith("light") for job in life.running) == 4


def test_what_is_guaranteed_is_kept_free_for_its_queue() -> None:
    life = Life(nodes(), [QueueSpec("own", guaranteed={"devices": 4}), QueueSpec("guest")])
    life.submit(*(gang(f"guest{at}", role(2), at=float(at), queue="guest") for at in range(4)))
    life.cycle(0.0)
    assert set(life.running) == {"guest0", "guest1"} and life.why("guest2") == "kept-for-others"
    life.submit(gang("mine", role(4), at=9.0, queue="own"))
    life.cycle(1.0)
    assert "mine" in life.running and not life.receipts


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"limit": {"devices": 3}}, "queue-limit"),
        ({"deserved": {"devices": 1}, "borrowing_limit": {"devices": 2}}, "borrowing-limit"),
        ({"user_limit": {"devices": 3}}, "user-limit"),
        ({"group_limit": {"devices": 3}}, "group-limit"),
        ({"limit": {"cpu": 3000}}, "queue-limit"),
    ],
)
def test_no_bound_is_ever_passed(fields: dict, code: str) -> None:
    life = Life(nodes(), [QueueSpec("default", **fields)])
    life.submit(*(gang(f"job{at}", role(1, cpu_millis=1000), at=float(at), groups=("g",)) for at in range(8)))
    life.cycle(0.0)
    assert sorted(life.running) == ["job0", "job1", "job2"]
    assert life.why("job7") == code
    life.end("job1")
    life.cycle(1.0)
    assert sorted(life.running) == ["job0", "job2", "job3"]


def test_limits_hold_for_the_queues_below_too() -> None:
    life = Life(nodes(), [QueueSpec("top", limit={"devices": 3}), QueueSpec("a", "top"), QueueSpec("b", "top")])
    life.submit(*(gang(f"job{at}", role(1), at=float(at), queue="ab"[at % 2]) for at in range(6)))
    life.cycle(0.0)
    assert len(life.running) == 3


def test_a_gang_larger_than_its_limit_is_told_that_it_never_starts() -> None:
    life = Life(nodes(), [QueueSpec("default", limit={"devices": 3})])
    life.submit(gang("big", role(4)), gang("small", role(1), at=1.0))
    life.cycle(0.0)
    entry = life.queue.first("big")
    assert entry is not None and entry.reported is not None and not entry.reported.possible
    assert set(life.running) == {"small"}


def test_a_gang_that_may_be_asked_for_a_task_and_for_all_of_it_gives_each_task_once() -> None:
    """Ending it frees 3 processors, not also the 1.5 of its spare task: no gang is ended in vain."""
    life = Life([node("n1", 4, cpu_millis=4000)])
    life.submit(gang("stays", role(1, cpu_millis=1000), preemptible=False))
    life.submit(gang("elastic", role(2, minimum=1, cpu_millis=1500), at=1.0, priority=1))
    life.settle(2.0)
    life.submit(gang("large", role(1, cpu_millis=4000), at=3.0, priority=100))
    life.settle(4.0)
    assert not life.receipts and sorted(life.running) == ["elastic", "stays"]
