"""Cached findings about gangs that no longer wait are never used for later gangs, even while the old objects live."""

from __future__ import annotations

from corral.scheduler import GangWithdrawn
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role


def test_a_gang_like_one_that_was_withdrawn_gets_the_room_that_came_back_meanwhile() -> None:
    life = Life([node("n1"), node("n2")])
    life.submit(gang("holder", role(8), preemptible=False))
    life.cycle(0.0)
    before = gang("before", role(8), at=1.0, preemptible=False)
    life.submit(before)
    life.cycle(1.0)
    held = list(life.queue.groups.values())  # as uncollected garbage would
    life.planner.fold(GangWithdrawn(before.job, before.tasks))
    life.end("holder")
    life.cycle(2.0)
    life.submit(gang("after", role(8), at=3.0, preemptible=False))
    life.cycle(3.0)
    assert "after" in life.running and held
