"""The return time on a receipt is the end of the preemptor, or of another job if that frees room first; else unknown."""

from __future__ import annotations

import pytest
from msgspec import structs

from corral.kernel.ids import JobId
from corral.model.plan import Eviction, Rule
from corral.model.queues import QueueSpec
from corral.scheduler import Checkpointed, NodesSeen
from corral.scheduler.preemption.return_estimate import likely_back
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, inventory, node, role


def told(life: Life) -> dict[str, float | None]:
    """The estimated return of each preempted job."""
    return {receipt.job: receipt.back_at for receipt in life.receipts}


def preempted(*, preemptor: int, beside: int, nodes: int = 2) -> Life:
    """A gang of four preempts another at 100; another machine is taken by one started at 0; the bounds are in seconds."""
    life = Life([node(f"n{at}") for at in range(nodes)])
    life.submit(gang("beside", role(4), at=0.0, priority=50, max_duration_seconds=beside))
    life.submit(gang("low", role(4), at=1.0, priority=1))
    life.cycle(0.0)
    life.submit(gang("urgent", role(4), at=2.0, priority=100, max_duration_seconds=preemptor))
    life.cycle(100.0)
    assert list(told(life)) == ["low"]
    return life


@pytest.mark.parametrize(
    ("preemptor", "beside", "back"),
    [
        (600, 0, 700.0),
        (0, 500, 500.0),
        (600, 500, 500.0),
        (600, 5000, 700.0),
        (0, 0, None),
    ],
    ids=["the preemptor's bound", "somebody else's", "the first of both", "the first of both again", "nobody knows"],
)
def test_it_is_back_when_the_first_known_end_makes_room(preemptor: int, beside: int, back: float | None) -> None:
    life = preempted(preemptor=preemptor, beside=beside)
    assert told(life) == {"low": back}
    if back is not None:
        life.yielded()
        life.cycle(100.0)
        life.cycle(back - 1)
        assert "low" not in life.running
        life.now = back
        life.end("beside" if back == beside else "urgent")
        life.cycle(back)
        assert "low" in life.running, "and so it was"


def test_several_ends_may_be_needed() -> None:
    life = Life([node("n1"), node("n2")])
    for at, bound in enumerate((300, 400, 900)):
        life.submit(gang(f"short{at}", role(1), at=0.0, priority=50, max_duration_seconds=bound))
    life.submit(gang("endless", role(1), at=0.5, priority=50), gang("low", role(4), at=1.0, priority=1))
    life.cycle(0.0)
    life.submit(gang("urgent", role(2), at=2.0, priority=100))
    life.cycle(10.0)
    assert told(life) == {"low": 400.0}, "two devices of its own stay free, and it takes what two others leave"


def test_ends_of_those_who_are_told_to_end_themselves_do_not_count() -> None:
    life = Life([node("n1")])
    life.submit(
        gang("a", role(2), at=0.0, priority=1, max_duration_seconds=300), gang("b", role(2), at=1.0, priority=1)
    )
    life.cycle(0.0)
    life.submit(gang("urgent", role(4), at=2.0, priority=100))
    life.cycle(10.0)
    assert told(life) == {"a": None, "b": None}


def test_what_starts_in_the_same_cycle_and_ends_is_known_too() -> None:
    life = Life([node("n1"), node("n2")])
    life.submit(gang("low", role(4), at=0.0, priority=1))
    life.cycle(0.0)
    life.submit(gang("short", role(4), at=1.0, priority=200, max_duration_seconds=60))
    life.submit(gang("urgent", role(4), at=2.0, priority=100))
    life.cycle(10.0)
    assert "short" in life.running and told(life) == {"low": 70.0}


def test_who_finds_room_elsewhere_at_once_is_told_so() -> None:
    life = Life([node("n1"), node("n2", rack="r2")], [QueueSpec("default")])
    life.submit(*(gang(job, role(count), at=float(at)) for at, (job, count) in enumerate((("a", 1), ("x", 3)))))
    life.submit(*(gang(job, role(count), at=float(at)) for at, (job, count) in enumerate((("c", 1), ("y", 3)), 2)))
    life.cycle(0.0)
    life.end("x", "y")
    life.submit(gang("large", role(4), at=9.0, required="node"))
    life.cycle(20.0)
    (receipt,) = life.receipts
    assert (receipt.rule, receipt.back_at) == (Rule.CONSOLIDATION, 20.0)


def shrunk(*, bound: int = 0, saved_at: float | None = None) -> Eviction:
    """An elastic gang of six tasks gives up two for one that needs four devices."""
    life = Life([node("n1"), node("n2")])
    life.submit(gang("elastic", role(6, minimum=2)))
    life.cycle(0.0)
    if saved_at is not None:
        life.planner.fold(Checkpointed(life.requests["elastic"].job, 0, saved_at))
    life.submit(gang("other", role(4), at=1.0, max_duration_seconds=bound))
    life.cycle(100.0)
    (receipt,) = life.receipts
    assert receipt.rule is Rule.SHRINK and len(receipt.tasks) == 2
    return receipt


@pytest.mark.parametrize(("saved_at", "lost"), [(None, 200.0), (60.0, 80.0), (100.0, 0.0)])
def test_what_shrinks_loses_the_work_of_the_tasks_that_it_gives_up(saved_at: float | None, lost: float) -> None:
    assert shrunk(saved_at=saved_at).cost_device_seconds == lost


@pytest.mark.parametrize(("bound", "back"), [(0, None), (50, 150.0)])
def test_tasks_come_back_when_there_is_room_for_them(bound: int, back: float | None) -> None:
    assert shrunk(bound=bound).back_at == back


def test_many_shapes_that_yield_are_told_by_the_preemptors_bound_alone() -> None:
    life = Life([node(f"n{at}", 8) for at in range(2)])
    life.submit(
        *(gang(f"low{size}", role(size, cpu_millis=100 + size), at=float(size), priority=1) for size in range(1, 6))
    )
    life.cycle(0.0)
    life.submit(gang("urgent", role(16), at=9.0, priority=100, max_duration_seconds=60))
    life.cycle(100.0)
    assert told(life) == {f"low{size}": 160.0 for size in range(1, 6)}


def drained(*, elsewhere: int, bound: int = 0) -> float | None:
    """The estimated return of a gang of two nodes whose first node is drained at 100."""
    life = Life([node(f"n{at}") for at in range(3 + elsewhere)])
    life.submit(gang("moves", role(8)), gang("beside", role(4), at=1.0, max_duration_seconds=bound))
    life.cycle(0.0)
    moves = life.requests["moves"].job
    (first, *_) = sorted({hold.node for hold in life.cluster.holds(moves).values()})
    closed = [structs.replace(each, ready=each.name != first) for each in life.cluster.nodes()]
    life.planner.fold(NodesSeen(inventory(*closed)))
    tasks = [task for task, hold in life.cluster.holds(moves).items() if hold.node == first]
    before = life.cluster.digest()
    back = likely_back(life.cluster, moves, tasks, 100.0)
    assert life.cluster.digest() == before and likely_back(life.cluster, JobId("nobody"), tasks, 100.0) is None
    return back


@pytest.mark.parametrize(
    ("elsewhere", "bound", "back"), [(1, 0, 100.0), (0, 700, 700.0), (0, 0, None)], ids=["at once", "later", "unknown"]
)
def test_who_leaves_a_drained_node_is_back_when_there_is_room_elsewhere(
    elsewhere: int, bound: int, back: float | None
) -> None:
    assert drained(elsewhere=elsewhere, bound=bound) == back


def test_only_the_tasks_that_an_elastic_gang_can_spare_have_to_find_room() -> None:
    life = Life([node("n1"), node("n2"), node("n3")])
    life.submit(gang("elastic", role(8, minimum=2)), gang("beside", role(2), at=1.0))
    life.cycle(0.0)
    elastic = life.requests["elastic"].job
    holds = life.cluster.holds(elastic)
    spared = sorted(holds)[-2:]
    assert likely_back(life.cluster, elastic, spared, 100.0) == 100.0
    assert likely_back(life.cluster, elastic, sorted(holds)[:1], 100.0) == 100.0, (
        "else all of it, and its places are free"
    )
