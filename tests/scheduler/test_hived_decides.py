"""Under the hived preset HiveD's algorithm decides placements, preemptions and reservations in the live scheduler."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from corral.devices.described import described_inventory
from corral.kernel.ids import JobId, TaskKey
from corral.model.configuration import configuration_of
from corral.model.inventory import Inventory
from corral.model.placement import Placement
from corral.model.plan import GangPlacement, Rule
from corral.model.requests import DeviceRequest, RoleRequest, TopologyRequest
from corral.scheduler import (
    BuiltinPlanner,
    NodesSeen,
    QueuesConfigured,
    TasksReleased,
    find_policy,
    gang_placed,
)
from corral.scheduler.planners.hived.algorithm import GroupState
from corral.scheduler.planners.hived.planner import HivedPlanner
from corral.scheduler.planners.hived.settings import HivedSettings
from corral.scheduler.planners.hived.state_fold import Hived
from corral.spec.cluster import ClusterDocument
from corral.spec.configuration_file import load_document
from tests.examples import at_least, examples
from tests.scheduler.hived_clusters import read_cases
from tests.scheduler.life import Life
from tests.scheduler.machines import gang, role

SITE = """
physicalCluster:
  skuTypes:
    V100: {gpu: 1, cpu: 4, memory: 8192Mi}
  cellTypes:
    SWITCH: {childCellType: V100, childCellNumber: 2}
    BOX: {childCellType: SWITCH, childCellNumber: 2, isNodeLevel: true}
    RACK: {childCellType: BOX, childCellNumber: 2}
  physicalCells:
  - {cellType: RACK, cellChildren: [{cellAddress: n1}, {cellAddress: n2, pinnedCellId: PIN}]}
  - {cellType: RACK, cellChildren: [{cellAddress: n3}, {cellAddress: n4}]}
virtualClusters:
  prod: {virtualCells: [{cellType: RACK.BOX, cellNumber: 2}]}
  test: {virtualCells: [{cellType: RACK.BOX, cellNumber: 1}]}
  own: {pinnedCells: [{pinnedCellId: PIN}]}
"""


class HivedLife(Life):
    """A life on the machines of HiveD's own configuration."""

    def __init__(self, config: str | Mapping[str, Any] = SITE, *, lazy: bool = False) -> None:
        super().__init__([])
        self.lazy = lazy
        self.planner = BuiltinPlanner(policy=self.policy)
        self.reconfigure(config)

    def reconfigure(self, config: str | Mapping[str, Any]) -> None:
        """Apply a configuration as control does."""
        documents = load_document(config)
        configuration = configuration_of(documents)
        described = configuration.clusters["local"]
        assert isinstance(described, ClusterDocument)
        self.configure(*configuration.queue_specs())
        found = configuration.hived()
        assert found is not None
        self.settings = HivedSettings(found[1], found[0], self.lazy)
        if isinstance(self.planner, HivedPlanner):
            self.planner = self.planner.reconfigured(self.settings)
        else:
            self.planner = HivedPlanner.take_over(self.planner, find_policy("hived"), self.settings, 0.0)
        self.see(described_inventory(described, "local"))

    def see(self, inventory: Inventory) -> None:
        """Set the machines."""
        self.inventory = inventory
        self.planner.fold(NodesSeen(inventory))

    @property
    def hived(self) -> Hived:
        """HiveD's state."""
        assert isinstance(self.planner, HivedPlanner)
        return self.planner.hived

    def restarted(self, placed: Iterable[GangPlacement]) -> Hived:
        """HiveD's state after a restart from these stored placements."""
        again = HivedPlanner.begun(self.settings)
        again.fold(QueuesConfigured(tuple(self.cluster.queues.specs.values())))
        again.fold(NodesSeen(self.inventory))
        for each in placed:
            again.fold(gang_placed(self.requests[each.job], Placement(each.placement.tasks), 0.0))
        return again.hived

    def states(self) -> dict[str, str]:
        """The groups' states as HiveD's tests write them."""
        return {name: group.label for name, group in sorted(self.hived.algorithm.groups.items())}

    def nodes_of(self, job: str) -> list[str]:
        """The nodes of a running job."""
        return sorted(hold.node.removeprefix("local/") for hold in self.cluster.holds(JobId(job)).values())


def test_a_virtual_cluster_gets_its_cells_whatever_opportunists_hold() -> None:
    life = HivedLife()
    life.submit(*(gang(f"oppo{at}", role(1, 4), queue="test", priority=-1, at=float(at)) for at in range(3)))
    life.settle()
    assert life.sizes() == {"oppo0": 1, "oppo1": 1, "oppo2": 1}
    life.submit(gang("big", role(2, 4), queue="prod", priority=100, at=10.0))
    plan = life.cycle(11.0)
    assert life.states()["big"] == "Preempting"
    assert {each.rule for each in plan.evictions} == {Rule.OPPORTUNISTIC}
    assert life.why("big") == "others-yield"
    assert not life.cycle(12.0).evictions, "who was told to yield is not told again"
    life.yielded()
    life.settle(13.0)
    assert life.sizes()["big"] == 2
    assert life.states()["big"] == "Allocated"
    assert life.why(plan.evictions[0].job) == "hived-waits"


def test_cells_are_kept_for_a_preemptor_against_gangs_that_come_later() -> None:
    life = HivedLife()
    life.submit(*(gang(f"oppo{at}", role(1, 4), queue="test", priority=-1, at=float(at)) for at in range(4)))
    life.settle()
    life.submit(gang("big", role(2, 4), queue="prod", priority=100, at=10.0))
    victims = {each.job for each in life.cycle(11.0).evictions}
    first = sorted(victims)[0]
    life.end(first)
    life.submit(gang("later", role(1, 4), queue="own", priority=-1, at=12.0))
    life.settle(12.0)
    assert "later" not in life.running


def test_a_stopped_preemptor_gives_back_what_was_kept_for_it() -> None:
    life = HivedLife()
    life.submit(*(gang(f"oppo{at}", role(1, 4), queue="test", priority=-1, at=float(at)) for at in range(4)))
    life.settle()
    life.submit(gang("big", role(2, 4), queue="prod", priority=100, at=10.0))
    life.cycle(11.0)
    life.end("big")
    assert "big" not in life.states()
    assert set(life.states().values()) <= {"Allocated", "BeingPreempted"}


def test_higher_priority_of_the_same_virtual_cluster_preempts() -> None:
    life = HivedLife()
    life.submit(gang("low", role(1, 4), queue="test", priority=10))
    life.settle()
    life.submit(gang("high", role(1, 4), queue="test", priority=100, at=1.0))
    life.settle(2.0)
    assert life.rules() == [("low", Rule.PRIORITY)]
    assert life.sizes() == {"high": 1}


def test_who_is_not_preemptible_keeps_cells_of_its_own_and_no_others() -> None:
    life = HivedLife()
    life.submit(gang("low", role(1, 4), queue="test", priority=10, preemptible=False))
    life.submit(
        *(gang(f"oppo{at}", role(1, 4), queue="test", priority=-1, at=1.0, preemptible=False) for at in range(3))
    )
    life.settle()
    life.submit(
        gang("high", role(1, 4), queue="test", priority=100, at=2.0), gang("big", role(2, 4), queue="prod", at=3.0)
    )
    life.settle(4.0)
    assert life.why("high") == "not-preemptible"
    assert {rule for _, rule in life.rules()} == {Rule.OPPORTUNISTIC}
    assert life.sizes()["big"] == 2


def test_with_lazy_preemption_the_lower_priority_runs_on_without_its_guarantee() -> None:
    life = HivedLife(lazy=True)
    life.submit(gang("first", role(1, 4), queue="prod"), gang("low", role(1, 4), queue="test", priority=10, at=0.5))
    life.settle()
    life.submit(gang("high", role(1, 4), queue="test", priority=100, at=1.0))
    life.settle(2.0)
    assert life.receipts == []
    assert life.states() == {"first": "Allocated", "high": "Allocated", "low": "Allocated+LazyPreempted"}


def test_a_pinned_cell_is_its_owners() -> None:
    life = HivedLife()
    life.submit(gang("mine", role(1, 4), queue="own", priority=10))
    life.settle()
    assert life.nodes_of("mine") == ["n2"]


def test_what_hived_does_not_know_is_said_and_not_ignored() -> None:
    life = HivedLife()
    life.submit(
        gang("racked", role(1, 4), queue="prod", required="rack"),
        gang(
            "grouped", role(2, 2, topology=TopologyRequest(group_size=2, group_required="node")), queue="prod", at=1.0
        ),
        gang("named", role(1, 1, ask=DeviceRequest(1, ids=("0",))), queue="prod", at=2.0),
        gang("plain", role(1, 4), queue="prod", at=3.0),
    )
    life.settle()
    assert [life.why(job) for job in ("racked", "grouped", "named")] == ["not-in-hived"] * 3
    assert life.sizes() == {"plain": 1}


def test_a_virtual_cluster_that_does_not_exist_is_refused_with_hiveds_sentence() -> None:
    life = HivedLife()
    life.submit(gang("lost", role(1, 1), queue="nobody"))
    life.settle()
    assert life.why("lost") == "unknown-virtual-cluster"


def test_nodes_that_lack_processors_are_left_out() -> None:
    life = HivedLife()
    life.submit(gang("busy", role(1, 0, name="cpu", cpu_millis=14_000), queue="prod", at=0.0))
    life.settle()
    (crowded,) = life.nodes_of("busy")
    life.submit(gang("wants", role(2, 4, cpu_millis=8_000), queue="prod", at=1.0))
    life.settle(2.0)
    assert crowded not in life.nodes_of("wants")
    life.submit(gang("huge", role(1, 1, cpu_millis=640_000), queue="test", at=3.0))
    life.settle(4.0)
    assert life.why("huge") == "hived-waits"


def test_the_same_state_after_a_restart_from_what_runs() -> None:
    life = HivedLife()
    life.submit(
        gang("a", role(2, 4), queue="prod", priority=10),
        gang("b", role(1, 2), queue="test", priority=10, at=1.0),
        gang("c", role(1, 4), queue="own", priority=10, at=2.0),
        gang("d", role(1, 2), queue="own", priority=-1, at=3.0),
    )
    placed = life.cycle().placements
    assert len(placed) == 4
    assert life.restarted(placed).digest() == life.hived.digest()


def test_tasks_that_ended_alone_come_back_into_their_own_places() -> None:
    life = HivedLife()
    life.submit(gang("a", role(2, 4), queue="prod", priority=10))
    life.settle()
    before = dict(life.cluster.holds(JobId("a")))
    life.planner.fold(TasksReleased(JobId("a"), (TaskKey("worker", 1),)))
    life.submit(gang("a", RoleRequest("worker", (1,), 1, devices=DeviceRequest(4)), queue="prod", priority=10))
    life.submit(gang("other", role(1, 4), queue="prod", priority=10, at=1.0))
    life.settle(2.0)
    assert dict(life.cluster.holds(JobId("a"))) == before
    assert list(life.states()) == ["a"]


def test_a_new_configuration_keeps_what_runs() -> None:
    life = HivedLife()
    life.submit(gang("a", role(2, 4), queue="prod", priority=10))
    life.settle()
    life.reconfigure(SITE.replace("cellNumber: 2", "cellNumber: 1"))
    assert life.sizes() == {"a": 2}
    assert life.states() == {"a": "Allocated+LazyPreempted"}
    assert life.hived.changes is not None and life.hived.changes.lazily_preempted == ("a",)


def test_explaining_changes_nothing_and_says_what_hived_says() -> None:
    life = HivedLife()
    life.submit(gang("a", role(1, 4), queue="test"), gang("b", role(1, 4), queue="test", at=1.0))
    life.settle()
    before = life.planner.digest()
    reasons = life.planner.explain(JobId("b"), 2.0)
    assert reasons is not None and reasons.binding.code == "hived-waits"
    assert "in VC test" in reasons.binding.message
    assert life.planner.digest() == before


@pytest.mark.parametrize("seed", range(examples(6)))
@pytest.mark.parametrize("lazy", [False, True])
def test_random_lives_leave_the_draft_a_true_copy(seed: int, lazy: bool) -> None:
    """Planning changes nothing, and the state that it expected is the state after the events."""
    life, chance = HivedLife(lazy=lazy), random.Random(seed)
    placed: dict[str, Placement] = {}
    for step in range(at_least(30, 60)):
        match chance.randrange(5):
            case 0 if life.running:
                life.end(chance.choice(sorted(life.running)))
            case 1:
                life.yielded()
            case 2:
                nodes = tuple(structs.replace(node, ready=chance.random() < 0.9) for node in life.inventory.nodes)
                life.planner.fold(NodesSeen(structs.replace(life.inventory, nodes=nodes)))
            case _:
                shape = role(chance.randrange(1, 3), chance.choice([1, 2, 4]))
                vc, priority = chance.choice(["prod", "test", "own"]), chance.choice([-1, 0, 10, 100])
                life.submit(gang(f"j{step}", shape, queue=vc, priority=priority, at=float(step)))
        placed |= {each.job: each.placement for each in life.cycle(float(step)).placements}
        before = life.planner.digest()
        for job in life.requests:
            life.planner.explain(JobId(job), float(step))
        assert life.planner.digest() == before
        hived = life.hived
        assert hived.algorithm.differences() == []
        assert hived.algorithm.broken_guarantees() == []
        assert hived.draft().digest() == hived.digest()
        kept = {group.name for group in hived.algorithm.groups.values() if group.state is GroupState.PREEMPTING}
        assert kept <= {str(job) for job in life.requests}
    _recovers(life, placed)


def _recovers(life: HivedLife, placed: Mapping[str, Placement]) -> None:
    """Check that running groups can be replayed in any order without promising their cells to others."""
    for order in (sorted(life.running), sorted(life.running, reverse=True)):
        again = HivedPlanner.begun(life.settings)
        again.fold(QueuesConfigured(tuple(life.cluster.queues.specs.values())))
        again.fold(NodesSeen(life.inventory))
        for job in order:
            again.fold(gang_placed(life.requests[job], Placement(placed[job].tasks), 0.0))
        assert again.hived.algorithm.differences() == []
        assert again.hived.algorithm.broken_guarantees() == []
        assert set(again.hived.algorithm.groups) == set(life.running)


@pytest.mark.parametrize("scenario", range(7))
def test_the_recorded_configurations_are_followed(data_folder: Path, scenario: int) -> None:
    config = read_cases(data_folder)["scenarios"][scenario]["config"]
    life = HivedLife(json.loads(json.dumps(config)))
    devices = {(node, number) for node, number in life.hived.algorithm.state.forest.devices}
    seen = {(node.name.removeprefix("local/"), each.index) for node in life.inventory.nodes for each in node.devices}
    assert devices == seen
    for at, vc in enumerate(config["virtualClusters"]):
        life.submit(gang(f"job{at}", role(1, 1), queue=vc, priority=0, at=float(at)))
        life.submit(gang(f"oppo{at}", role(1, 1), queue=vc, priority=-1, at=float(at)))
    life.settle()
    assert len(life.running) == 2 * len(config["virtualClusters"])
