"""Where a queue's bound blocks a gang although machines are free, jobs that count against the bound are preempted."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from corral.model.plan import Rule
from corral.model.queues import QueueSpec, Reclaim, WithinQueue
from tests.examples import examples
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

COHORT = 12


def cohort(**fields: object) -> list[QueueSpec]:
    """Three queues with a quota of 4 each, which may borrow everything that the others leave idle, as in Kueue."""
    bounds: dict[str, object] = {
        "deserved": {"devices": 4}, "borrowing_limit": {"devices": 20}, "reclaim": Reclaim.ANY,
        "within_queue": WithinQueue.LOWER_PRIORITY,
    }  # fmt: skip
    own = (QueueSpec(name, "cohort", **(bounds | fields)) for name in ("a", "b", "c"))  # type: ignore[arg-type]
    return [QueueSpec("cohort", limit={"devices": COHORT}), *own]


def life(devices: int = 16, **fields: object) -> Life:
    """One machine, as large as the cohort's quota or larger."""
    return Life([node("n1", devices)], cohort(**fields))


def test_a_queue_takes_back_its_quota_though_the_cohort_holds_all_that_it_may() -> None:
    for devices in (COHORT, 16):
        played = life(devices)
        played.submit(*(gang(f"b{at:02}", role(1), at=float(at), priority=200, queue="b") for at in range(COHORT)))
        played.cycle(0.0)
        assert len(played.running) == COHORT
        played.submit(gang("mine", role(4), at=50.0, priority=50, queue="a"))
        found = played.cycle(60.0)
        assert played.rules() == [(f"b{at:02}", Rule.RECLAIM) for at in (11, 10, 9, 8)]
        assert played.why("mine") == "others-yield"
        assert not found.placements
        played.yielded()
        played.cycle(61.0)
        assert "mine" in played.running


def test_lower_priorities_of_a_queue_yield_where_its_limit_is_reached() -> None:
    played = Life([node("n1", 8)], [QueueSpec("q", limit={"devices": 4})])
    played.submit(*(gang(f"low{at}", role(1), at=float(at), priority=10, queue="q") for at in range(4)))
    played.cycle(0.0)
    played.submit(gang("urgent", role(3), at=9.0, priority=100, queue="q"))
    played.settle(10.0)
    assert sorted(job for job, _ in played.rules()) == ["low1", "low2", "low3"]
    assert set(played.running) == {"low0", "urgent"}


def test_a_user_s_own_lower_priorities_yield_where_the_user_s_limit_is_reached() -> None:
    played = Life([node("n1", 8)], [QueueSpec("q", user_limit={"devices": 2})])
    mine = [gang(f"mine{at}", role(1), at=float(at), queue="q", user="ada") for at in range(2)]
    theirs = [gang(f"theirs{at}", role(1), at=float(at), queue="q", user="bob") for at in range(2)]
    played.submit(*mine, *theirs)
    played.cycle(0.0)
    played.submit(gang("urgent", role(1), at=9.0, priority=100, queue="q", user="ada"))
    played.settle(10.0)
    assert [job for job, _ in played.rules()] in (["mine0"], ["mine1"])
    assert "urgent" in played.running


def test_nobody_yields_for_a_bound_that_would_hold_even_then() -> None:
    played = Life([node("n1", 8)], [QueueSpec("q", limit={"devices": 4})])
    played.submit(gang("low", role(1), priority=10, queue="q"), gang("same", role(3), priority=100, queue="q"))
    played.cycle(0.0)
    played.submit(gang("urgent", role(2), at=9.0, priority=100, queue="q"))
    assert not played.cycle(10.0).evictions
    assert played.why("urgent") == "queue-limit"


def test_a_queue_has_its_own_lower_priorities_yield_too_to_stay_within_its_quota() -> None:
    """As Kueue does: borrowers are preempted for the rest, once the gang's own queue would hold its quota only."""
    played = life(COHORT)
    played.submit(*(gang(f"a{at}", role(1), at=float(at), priority=50, queue="a") for at in range(2)))
    for queue in ("b", "c"):  # each borrows one more than it deserves, and wants another one
        played.submit(*(gang(f"{queue}{at}", role(1), at=float(at), priority=50, queue=queue) for at in range(6)))
    played.cycle(0.0)
    assert set(played.running) == {
        *(f"a{at}" for at in range(2)),
        *(f"{queue}{at}" for queue in "bc" for at in range(5)),
    }
    played.submit(gang("large", role(4), at=50.0, priority=200, queue="a"))
    played.cycle(60.0)
    assert sorted(played.rules()) == [
        ("a0", Rule.PRIORITY), ("a1", Rule.PRIORITY), ("b4", Rule.RECLAIM), ("c4", Rule.RECLAIM),
    ]  # fmt: skip
    played.yielded()
    played.cycle(61.0)
    assert "large" in played.running


def test_a_queue_takes_nothing_back_while_it_would_hold_more_than_its_own_even_then() -> None:
    played = life(COHORT)
    played.submit(*(gang(f"a{at}", role(1), at=float(at), priority=200, queue="a") for at in range(2)))
    for queue in ("b", "c"):
        played.submit(*(gang(f"{queue}{at}", role(1), at=float(at), priority=50, queue=queue) for at in range(6)))
    played.cycle(0.0)
    assert len(played.running) == COHORT
    played.submit(gang("large", role(4), at=50.0, priority=200, queue="a"))
    assert not played.cycle(60.0).evictions


def test_what_yields_for_a_bound_is_not_taken_by_another_of_the_queue() -> None:
    played = Life([node("n1", 8)], [QueueSpec("q", limit={"devices": 4})])
    played.submit(*(gang(f"low{at}", role(1), at=float(at), priority=10, queue="q") for at in range(4)))
    played.cycle(0.0)
    played.submit(gang("urgent", role(3), at=9.0, priority=100, queue="q"))
    assert len(played.cycle(10.0).evictions) == 3
    first, *_ = played.leaving
    played.end(first)
    played.submit(gang("small", role(1), at=10.0, priority=10, queue="q"))
    found = played.cycle(11.0)
    assert not found.placements and not found.evictions
    played.yielded()
    played.cycle(12.0)
    assert "urgent" in played.running
    assert len(played.receipts) == 3


def test_what_was_taken_back_for_one_is_not_taken_by_a_larger_one_that_would_have_to_give_it_back() -> None:
    played = Life([node(f"n{at}") for at in range(4)], [QueueSpec("a"), QueueSpec("b")])
    sizes = (("a", 2, 0), ("a", 3, 1), ("a", 3, 1), ("a", 3, 1), ("b", 2, 0), ("b", 3, 1), ("b", 3, 1), ("b", 3, 1))
    for at, (queue, tasks, priority) in enumerate(sizes):
        played.submit(gang(f"g{at}", role(tasks), at=float(at), queue=queue, priority=priority))
    played.settle(0.0)


@st.composite
def _queues(draw: st.DrawFn) -> list[QueueSpec]:
    bound = st.none() | st.integers(2, 10)
    own = []
    for name in "abc":
        limit, borrowing = draw(bound), draw(bound)
        own.append(
            QueueSpec(
                name,
                "cohort",
                deserved={"devices": draw(st.integers(0, 4))},
                limit={} if limit is None else {"devices": limit},
                borrowing_limit={} if borrowing is None else {"devices": borrowing},
            )
        )
    return [QueueSpec("cohort", limit={"devices": draw(st.integers(4, 16))}), *own]


_GANG = st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.integers(-1, 3), st.booleans())


@settings(max_examples=examples(60))
@given(queues=_queues(), early=st.lists(_GANG, max_size=8), late=st.lists(_GANG, max_size=8))
def test_yielding_comes_to_an_end_and_no_bound_is_passed(
    queues: list[QueueSpec], early: list[tuple[str, int, int, bool]], late: list[tuple[str, int, int, bool]]
) -> None:
    played = Life([node(f"n{at}") for at in range(3)], queues)
    for now, batch in ((0.0, early), (100.0, late)):
        for at, (queue, tasks, priority, elastic) in enumerate(batch):
            asked = role(tasks, minimum=1 if elastic else tasks)
            played.submit(gang(f"g{now:g}-{at}", asked, at=now + at, queue=queue, priority=priority))
        played.settle(now + 50.0, cycles=60)
        for found in played.cluster.queues.nodes.values():
            assert found.used[0] <= min(found.limit[0], found.borrowing[0])
