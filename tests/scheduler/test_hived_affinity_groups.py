"""Under the hived preset a gang may have several affinity groups: each is placed separately, and they start together."""

from __future__ import annotations

import pytest
from msgspec import structs

from corral.kernel.ids import JobId, TaskKey
from corral.model.requests import ALONE, DeviceRequest, GangRequest, RoleRequest
from corral.scheduler import TasksReleased
from corral.scheduler.planners.hived import gang_placement
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, node, role
from tests.scheduler.test_hived_decides import HivedLife

SITE = """
physicalCluster:
  skuTypes:
    V100: {gpu: 1, cpu: 4, memory: 8192Mi}
    K80: {gpu: 1, cpu: 4, memory: 8192Mi}
  cellTypes:
    V100-BOX: {childCellType: V100, childCellNumber: 4, isNodeLevel: true}
    K80-BOX: {childCellType: K80, childCellNumber: 4, isNodeLevel: true}
  physicalCells:
  - {cellType: V100-BOX, cellAddress: v1, pinnedCellId: PIN}
  - {cellType: V100-BOX, cellAddress: v2}
  - {cellType: V100-BOX, cellAddress: v3}
  - {cellType: K80-BOX, cellAddress: k1}
  - {cellType: K80-BOX, cellAddress: k2}
virtualClusters:
  prod:
    virtualCells: [{cellType: V100-BOX, cellNumber: 1}, {cellType: K80-BOX, cellNumber: 1}]
    pinnedCells: [{pinnedCellId: PIN}]
  test: {virtualCells: [{cellType: V100-BOX, cellNumber: 1}, {cellType: K80-BOX, cellNumber: 1}]}
"""


def of_group(name: str, count: int, devices: int, group: str, *, model: str = "", pinned: str = "") -> RoleRequest:
    ask = DeviceRequest(devices, model=model)
    return role(count, name=name, ask=ask, cpu_millis=100, affinity=group, pinned_cell=pinned)


def nodes(life: HivedLife, job: str) -> dict[str, list[str]]:
    """The nodes of each role's tasks."""
    found: dict[str, list[str]] = {}
    for task, hold in sorted(life.cluster.holds(JobId(job)).items()):
        found.setdefault(task.role, []).append(hold.node.removeprefix("local/"))
    return found


def two_kinds(job: str = "both", *, at: float = 0.0, priority: int = 10, queue: str = "prod") -> GangRequest:
    parts = of_group("ps", 1, 4, "/a", model="V100"), of_group("worker", 2, 2, "/b", model="K80")
    return gang(job, *parts, queue=queue, at=at, priority=priority)


def test_groups_of_different_sku_types_start_in_one_cycle() -> None:
    life = HivedLife(SITE)
    life.submit(two_kinds())
    (placed,) = life.cycle().placements
    assert len(placed.placement.tasks) == 3
    assert [task.order for task in placed.placement.tasks] == [0, 1, 2]
    where = nodes(life, "both")
    assert where["ps"][0][0] == "v" and [node[0] for node in where["worker"]] == ["k", "k"]
    assert life.states() == {"both+[=2Fa]": "Allocated", "both+[=2Fb]": "Allocated"}
    life.end("both")
    assert life.states() == {}


def test_while_one_group_has_no_place_no_other_holds_any() -> None:
    life = HivedLife(SITE)
    life.submit(gang("first", of_group("w", 1, 4, "", model="K80"), queue="prod", priority=100))
    life.settle()
    life.submit(two_kinds(at=1.0))
    life.settle(2.0)
    assert life.why("both") == "hived-waits"
    assert life.states() == {"first": "Allocated"}
    life.submit(gang("other", of_group("w", 1, 4, "", model="V100"), queue="prod", at=3.0))
    life.settle(4.0)
    assert "other" in life.running, "what the waiting gang could have had is others' meanwhile"


def test_the_tasks_of_one_group_are_packed_together_and_other_groups_go_elsewhere() -> None:
    life = HivedLife(SITE)
    groups = [of_group(name, 2, 2, f"/{name}", model="V100") for name in ("left", "right")]
    life.submit(gang("pair", *groups, queue="prod"))
    life.settle()
    where = nodes(life, "pair")
    assert len(set(where["left"])) == len(set(where["right"])) == 1
    assert where["left"] != where["right"]


def test_tasks_without_a_group_beside_named_ones_are_placed_one_by_one() -> None:
    life = HivedLife(SITE)
    life.submit(gang("mixed", of_group("ps", 1, 4, "/a"), of_group("worker", 3, 2, ALONE), queue="prod"))
    life.settle()
    assert set(life.states()) == {"mixed+[=2Fa]", *(f"mixed+[=2Aworker-{at}]" for at in range(3))}
    assert life.sizes() == {"mixed": 4}


def test_each_role_is_in_its_own_pinned_cell_or_in_none() -> None:
    life = HivedLife(SITE)
    life.submit(gang("pins", of_group("in", 1, 4, "/a", pinned="PIN"), of_group("out", 1, 4, "/b"), queue="prod"))
    life.settle()
    where = nodes(life, "pins")
    assert where["in"] == ["v1"] and where["out"] != ["v1"]


def test_one_group_preempts_and_the_free_cells_of_the_other_are_kept_too() -> None:
    life = HivedLife(SITE)
    life.submit(
        *(gang(f"oppo{at}", of_group("w", 1, 4, "", model="K80"), priority=-1, queue="test") for at in range(2))
    )
    life.settle()
    life.submit(two_kinds(at=1.0))
    plan = life.cycle(2.0)
    assert len(plan.evictions) == 1 and len(plan.reserved) == 2
    assert life.why("both") == "others-yield"
    assert {name: state for name, state in life.states().items() if "both" in name} == {
        "both+[=2Fa]": "Preempting",
        "both+[=2Fb]": "Preempting",
    }
    guests = [gang(f"late{at}", of_group("w", 1, 4, "", model="V100"), priority=-1, queue="test") for at in range(3)]
    life.submit(*guests)
    life.settle(3.0)
    assert life.sizes()["both"] == 3
    assert sum(job.startswith("late") for job in life.running) == 2, "the third V100 box was kept"


def test_a_stopped_gang_gives_back_what_was_kept_for_each_of_its_groups() -> None:
    life = HivedLife(SITE)
    life.submit(
        *(gang(f"oppo{at}", of_group("w", 1, 4, "", model="K80"), priority=-1, queue="test") for at in range(2))
    )
    life.settle()
    before = life.states()
    life.submit(two_kinds(at=1.0))
    life.cycle(2.0)
    life.end("both")
    assert life.states().keys() == before.keys()


def test_a_task_that_ended_alone_comes_back_into_its_own_group() -> None:
    life = HivedLife(SITE)
    whole = gang(
        "pair", of_group("left", 2, 2, "/l", model="V100"), of_group("right", 2, 2, "/r", model="V100"), queue="prod"
    )
    life.submit(whole)
    life.settle()
    before = dict(life.cluster.holds(JobId("pair")))
    for task in (TaskKey("right", 1), TaskKey("left", 0)):
        life.planner.fold(TasksReleased(JobId("pair"), (task,)))
    for task in (TaskKey("right", 1), TaskKey("left", 0)):
        own = next(each for each in whole.roles if each.role == task.role)
        alone = structs.replace(own, indexes=(task.index,), minimum=1)
        life.submit(structs.replace(whole, roles=(alone,)))
    life.settle(1.0)
    assert dict(life.cluster.holds(JobId("pair"))) == before
    assert len(life.states()) == 2


def test_the_groups_are_the_same_after_a_restart_from_what_runs() -> None:
    life = HivedLife(SITE)
    pins = gang("pins", of_group("in", 1, 2, "/a", pinned="PIN"), of_group("out", 2, 1, ALONE), queue="prod", at=1.0)
    life.submit(two_kinds(queue="test"), pins)
    placed = life.cycle().placements
    assert len(placed) == 2
    assert life.restarted(placed).digest() == life.hived.digest()


def test_tasks_that_need_not_wait_for_each_other_start_where_there_is_room() -> None:
    life = HivedLife(SITE)
    loose = role(9, ask=DeviceRequest(4), minimum=1, cpu_millis=100, affinity=ALONE)
    life.submit(gang("loose", loose, queue="prod"))
    life.settle()
    assert life.sizes() == {"loose": 3}, "the pinned cell, a V100 box and a K80 box are its queue's"


def test_of_very_many_groups_that_need_not_wait_some_start_in_each_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_placement, "_MOST_AT_ONCE", 2)
    life = HivedLife(SITE)
    loose = role(5, ask=DeviceRequest(1), minimum=1, cpu_millis=100, affinity=ALONE)
    life.submit(gang("loose", loose, queue="prod"))
    seen = []
    for _ in range(3):
        life.cycle()
        seen.append(life.sizes()["loose"])
    assert seen == [2, 4, 5]
    strict = gang("strict", *(of_group(f"r{at}", 1, 1, f"/{at}") for at in range(3)), queue="prod", at=1.0)
    life.submit(strict)
    life.cycle(2.0)
    assert life.sizes()["strict"] == 3, "a gang is never parted"


def test_asking_why_changes_nothing() -> None:
    life = HivedLife(SITE)
    life.submit(gang("first", of_group("w", 1, 4, "", model="K80"), queue="prod", priority=100))
    life.settle()
    life.submit(two_kinds(at=1.0, priority=200))
    before = life.hived.digest()
    told = life.planner.explain(JobId("both"), 2.0)
    assert told is not None and told.binding.code == "others-yield"
    assert life.hived.digest() == before


def test_several_models_in_one_named_group_are_nothing_that_hived_knows() -> None:
    life = HivedLife(SITE)
    life.submit(
        gang("odd", of_group("a", 1, 1, "/g", model="V100"), of_group("b", 1, 1, "/g", model="K80"), queue="prod")
    )
    life.settle()
    assert life.why("odd") == "not-in-hived"


@pytest.mark.parametrize("cells", [("PIN", ""), ("PIN", "OTHER")])
def test_under_other_presets_roles_of_one_gang_are_not_parted_and_it_is_said(cells: tuple[str, str]) -> None:
    life = Life([node("n1", 8)])
    life.submit(gang("pins", *(of_group(f"r{at}", 1, 1, "", pinned=cell) for at, cell in enumerate(cells))))
    life.settle()
    assert life.why("pins") == "pinned-cells"
