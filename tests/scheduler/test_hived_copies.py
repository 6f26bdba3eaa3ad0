"""A copy of HiveD's algorithm is complete: it decides alike and shares no mutable object."""

from __future__ import annotations

import gc
from types import FunctionType, ModuleType

import pytest

from corral.kernel.draw import draw_integer
from corral.kernel.ids import JobId
from corral.scheduler import TasksReleased
from corral.scheduler.planners.hived.algorithm import Group
from corral.scheduler.planners.hived.algorithm.cell_ledger import Ledger
from corral.scheduler.planners.hived.algorithm.cells import Cell
from corral.scheduler.planners.hived.algorithm.free_list import FreeList
from corral.scheduler.planners.hived.algorithm.groups import Slot
from corral.scheduler.planners.hived.algorithm.state import State
from corral.scheduler.planners.hived.algorithm.topology import RankedNodes
from tests.scheduler.machines import gang, role
from tests.scheduler.test_hived_decides import HivedLife

CODE = (type, ModuleType, FunctionType)
CHANGING = (Cell, Group, Slot, Ledger, FreeList, State, RankedNodes, set)


def _lived(seed: int) -> HivedLife:
    """Running gangs, preempted ones, a bad node, and perhaps reserved cells."""
    life = HivedLife(lazy=seed % 2 == 0)
    for step in range(25):
        dice = [draw_integer("hived-copies", seed, step, part) for part in range(4)]
        if dice[0] % 4 == 0 and life.running:
            life.end(sorted(life.running)[dice[1] % len(life.running)])
        shape = role(1 + dice[1] % 2, (1, 2, 4)[dice[2] % 3])
        queue, priority = ("prod", "test", "own")[dice[3] % 3], (-1, 0, 10, 100)[dice[2] % 4]
        life.submit(gang(f"j{step}", shape, queue=queue, priority=priority, at=float(step)))
        life.cycle(float(step))
    life.hived.algorithm.set_node_health("n3", healthy=False)
    return life


def _reached(root: object) -> dict[int, object]:
    """Every mutable object that can be reached from an object, by identity."""
    seen: dict[int, object] = {id(root): root}
    left = [root]
    while left:
        for each in gc.get_referents(left.pop()):
            if id(each) not in seen and not isinstance(each, CODE):
                seen[id(each)] = each
                left.append(each)
    return {key: each for key, each in seen.items() if isinstance(each, CHANGING)}


@pytest.mark.parametrize("seed", range(6))
def test_nothing_that_changes_is_in_both_and_both_are_alike(seed: int) -> None:
    original = _lived(seed).hived.algorithm
    twin = original.copy()
    assert twin.digest() == original.digest() and twin.consistent()
    mine, its = _reached(original.state), _reached(twin.state)
    assert not mine.keys() & its.keys()
    assert sorted(type(each).__name__ for each in mine.values()) == sorted(type(each).__name__ for each in its.values())


@pytest.mark.parametrize("seed", range(6))
def test_what_happens_to_one_does_not_happen_to_the_other(seed: int) -> None:
    original = _lived(seed).hived.algorithm
    twin, before = original.copy(), original.digest()
    for group in list(twin.groups.values()):
        for pod in group.pods:
            twin.delete_allocated(pod)
    for node in twin.nodes:
        twin.set_node_health(node, healthy=True)
    assert original.digest() == before and original.consistent() and twin.consistent()
    assert not any(group.pods for group in twin.groups.values())


def test_a_fork_of_the_planner_decides_as_it_does_and_shares_nothing_with_it() -> None:
    life = _lived(0)
    twin = life.planner.fork()
    assert twin.digest() == life.planner.digest() and twin.plan(99.0) == life.planner.plan(99.0)
    before = life.planner.digest()
    for job in sorted(life.running):
        assert twin.cluster.holds(JobId(job)) == life.cluster.holds(JobId(job))
        twin.fold(TasksReleased(JobId(job), tuple(twin.cluster.holds(JobId(job)))))
    assert life.planner.digest() == before != twin.digest() and twin.consistent()


def test_the_digest_of_the_planner_covers_what_hived_alone_knows() -> None:
    life = _lived(0)
    before, machines = life.planner.digest(), life.cluster.digest()
    life.hived.algorithm.set_node_health("n1", healthy=False)
    assert life.cluster.digest() == machines and life.planner.digest() != before
