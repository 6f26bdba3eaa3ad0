"""A place is reserved for the head of the queue once another gang would fit, and found for an estimate otherwise."""

from __future__ import annotations

from corral.kernel.ids import JobId
from corral.scheduler import Policy
from corral.scheduler.planners.builtin.planning import Memory, plan
from corral.scheduler.policy.order import ArrivalOrder
from tests.scheduler.machines import cluster, gang, node, occupy, queue, role

FIFO = Policy("fifo", ArrivalOrder())


def test_nothing_is_reserved_while_no_other_gang_would_fit_but_the_head_is_known() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, 1, ends_at=5.0)
    occupy(target, "n1", 2, 3, ends_at=10.0)
    waiting = queue(gang("large", role(4), at=1.0), gang("small", role(1), at=2.0))
    found, memory = plan(target, waiting, FIFO, 3.0), waiting.memory
    assert isinstance(memory, Memory)
    assert not found.placements
    assert memory.reservation is None
    head = memory.head(waiting, 3.0)
    assert head is not None
    assert (head.job, head.start) == (JobId("large"), 10.0)


def test_a_gang_that_would_fit_is_held_off_the_place_of_the_first_that_can_have_one() -> None:
    target = cluster(node("n1"))
    occupy(target, "n1", 0, 1, 2, ends_at=10.0)
    gangs = (gang("large", role(4), at=1.0), gang("long", role(1), at=2.0), gang("huge", role(9), at=0.0))
    waiting = queue(*gangs, gang("short", role(1), at=3.0, max_duration_seconds=7))
    found, memory = plan(target, waiting, FIFO, 3.0), waiting.memory
    assert [placed.job for placed in found.placements] == ["short"]
    assert found.reasons["long"].binding.code == "behind-head"
    assert isinstance(memory, Memory)
    assert memory.reservation is not None
    assert (memory.reservation.job, memory.reservation.start) == (JobId("large"), 10.0)
