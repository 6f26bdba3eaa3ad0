"""`explain` names each bound of queues, users and groups that keeps a gang waiting, not the first one alone."""

from __future__ import annotations

import pytest

from corral.kernel.ids import JobId
from corral.model.plan import Reasons
from corral.model.queues import CellQuota, QueueSpec
from corral.model.requests import GangRequest
from corral.scheduler.planners.builtin.planning import explain
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role

TOP = QueueSpec("top", limit={"devices": 4})
TEAM = QueueSpec("team", parent="top", user_limit={"devices": 4}, group_limit={"devices": 5})


def told(life: Life, wanted: GangRequest) -> Reasons:
    life.submit(wanted)
    life.cycle(1.0)
    found = explain(life.cluster, life.queue, life.policy, wanted.job, 1.0)
    assert found is not None
    return found


@pytest.mark.parametrize("devices", [8, 4], ids=["with-room", "without-room"])
def test_bounds_that_are_used_up_are_all_named(devices: int) -> None:
    life = Life([node("n1", devices)], [TOP, TEAM])
    life.submit(gang("holds", role(devices=4), queue="team", user="ada", groups=("lab",)))
    life.settle(0.0)
    found = told(life, gang("waits", role(devices=2), at=1.0, queue="team", user="ada", groups=("lab",)))
    said = [found.binding.code, *(each.code for each in found.others)]
    room = [] if devices == 8 else ["devices"]
    assert sorted(each for each in said if each not in room) == ["group-limit", "queue-limit", "user-limit"]
    assert len({each.message for each in (found.binding, *found.others)}) == len(said)
    assert found.possible


def test_bounds_that_it_can_never_meet_are_all_named() -> None:
    life = Life([node("n1", 8)], [TOP, TEAM])
    found = told(life, gang("large", role(devices=6), queue="team", user="ada", groups=("lab",)))
    assert not found.possible and found.binding.code == "queue-limit"
    said = [found.binding.message, *(each.message for each in found.others)]
    assert [each.split(" allows ")[0] for each in said] == ["The userLimit of queue team", "The limit of queue top"]


def test_a_job_that_only_lacks_room_is_told_of_no_bound() -> None:
    life = Life([node("n1", 4)], [QueueSpec("top", limit={"devices": 8}), TEAM])
    life.submit(gang("holds", role(devices=4), queue="team", user="ada"))
    life.settle(0.0)
    found = told(life, gang("waits", role(devices=4), at=1.0, queue="team", user="eve"))
    assert not [each.code for each in (found.binding, *found.others) if each.code.endswith("-limit")]


def test_the_bounds_of_a_queue_are_not_those_of_its_own_cells() -> None:
    owner = QueueSpec("owner", cells=(CellQuota("node", 1),), limit={"devices": 2}, user_limit={"devices": 2})
    life = Life([node("n1", 4)], [owner])
    life.submit(gang("holds", role(devices=4), queue="owner"))
    life.settle(0.0)
    found = told(life, gang("waits", role(devices=4), at=1.0, queue="owner"))
    assert not [each.code for each in found.others if each.code.endswith("-limit")]


def test_growth_is_held_against_the_bounds_of_one_more_task() -> None:
    life = Life([node("n1", 8)], [TOP, TEAM])
    life.submit(gang("grows", role(8, 1, minimum=2), queue="team", user="ada"))
    life.settle(0.0)
    found = explain(life.cluster, life.queue, life.policy, JobId("grows"), 1.0)
    assert found is not None
    assert sorted(each.code for each in (found.binding, *found.others)) == ["queue-limit", "user-limit"]
